package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// Every message between a program and its database may be lost, come late, or be the last
// on its connection. These tests record the messages of a call, repeat the call with one
// fault in one message, and compare what the call says with what is stored.
var (
	faultCells = flag.Int("faults.cells", 2, "how many faults per driver and kind of call, besides one at its COMMIT; 0 for all, negative for none")
	faultSeed  = flag.Uint64("faults.seed", 20261123, "which faults")
	faultOnly  = flag.String("faults.only", "", "only the faults whose name matches this regular expression, all of them")
)

const (
	// faultTime is how long the context of a call lasts, and faultHold how long a message
	// is held that arrives during the call.
	faultTime = time.Second
	faultHold = 250 * time.Millisecond
	// faultMost is the longest that a context lasts. Above 50 s, innodb_lock_wait_timeout, a call would need
	// fewer messages.
	faultMost = 45 * time.Second
	// faultGroups is how many kinds of calls are tried at the same time: most of the time
	// they wait. Each has up to five connections, and a PostgreSQL has a hundred.
	faultGroups = 8
)

// A faultTarget is a driver in one of its modes, on a server.
type faultTarget struct {
	name     string
	driver   string
	dialect  dialect.Dialect
	protocol faultproxy.Protocol
	server   string // its address
	// open returns a pool for a database or schema of the server at address.
	open  func(name, address string) (*sql.DB, error)
	admin *sqlx.DB
	// several: other servers may take writes, so a row that is missing proves nothing.
	several bool
}

func faultsOnPostgres(t *testing.T) (targets []faultTarget) {
	t.Helper()
	dsn := servertest.PostgreSQL(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("the URL of PostgreSQL cannot be parsed")
	}
	admin := openSqlx(t, "pgx", dsn)
	for _, name := range []string{"pgx", "pgx exec", "pgx simple protocol", "pq", "pq binary"} {
		mode := bulkModes[name]
		targets = append(targets, faultTarget{
			name: name, driver: mode.driver, dialect: dialect.PostgreSQL, protocol: faultproxy.PostgreSQL, admin: admin,
			server: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432")),
			open: func(schema, address string) (*sql.DB, error) {
				u, query := *u, u.Query()
				query.Set("search_path", schema)
				query.Set("sslmode", "disable")
				for i := 0; i < len(mode.parameters); i += 2 {
					query.Set(mode.parameters[i], mode.parameters[i+1])
				}
				u.Host, u.RawQuery = address, query.Encode()
				if mode.driver != "pgx" {
					return sql.Open(mode.driver, u.String())
				}
				config, err := pgx.ParseConfig(u.String())
				if err != nil {
					return nil, err
				}
				// It would ping after a second without a statement, which a busy machine takes, and the call have more messages.
				return stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })), nil
			},
		})
	}
	return targets
}

func faultsOnMySQL(t *testing.T, name, dsn string) (targets []faultTarget) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal("the DSN of the server cannot be parsed")
	}
	config.TLSConfig = ""
	admin := openSqlx(t, "mysql", dsn)
	for _, mode := range []string{"prepared", "text"} {
		targets = append(targets, faultTarget{
			name: name + " " + mode, driver: "mysql", dialect: dialect.MySQL, protocol: faultproxy.MySQL, server: config.Addr, admin: admin, several: isTiDB(t, admin.DB),
			open: func(database, address string) (*sql.DB, error) {
				c := config.Clone()
				c.DBName, c.Addr, c.InterpolateParams = database, address, mode == "text"
				c.Logger = &mysql.NopLogger{} // of broken connections
				connector, err := mysql.NewConnector(c)
				if err != nil {
					return nil, err
				}
				return sql.OpenDB(connector), nil
			},
		})
	}
	return targets
}

func TestEachCallSaysWhatIsStoredWhicheverMessageIsLost(t *testing.T) {
	servers := newCrowd(t, 3)
	defer servers.wait()
	servers.run("PostgreSQL", func(t *testing.T) { runFaults(t, faultsOnPostgres(t)) })
	servers.run("MariaDB", func(t *testing.T) { runFaults(t, faultsOnMySQL(t, "MariaDB", servertest.MariaDB(t))) })
	servers.run("MySQL", func(t *testing.T) { runFaults(t, faultsOnMySQL(t, "MySQL", servertest.MySQL(t))) })
}

func runFaults(t *testing.T, targets []faultTarget) {
	var wg sync.WaitGroup
	running := make(chan struct{}, faultGroups)
	var groups []*faultGroup
	for _, target := range targets {
		for _, call := range faultCalls {
			if call.on != nil && !call.on(target) {
				continue
			}
			g := &faultGroup{t: t, target: target, call: call, name: target.name + "/" + call.name}
			g.proxy = faultproxy.Start(t, target.protocol, target.server)
			groups = append(groups, g)
			wg.Go(func() {
				running <- struct{}{}
				defer func() { <-running }()
				if err := g.run(t.Context()); err != nil {
					t.Errorf("%s: %v", g.name, err)
				}
			})
		}
	}
	wg.Wait()
	for _, g := range groups {
		if len(g.outcomes) > 0 {
			t.Logf("%s: %v of %d faults", g.name, g.outcomes, g.cells)
		}
	}
	t.Logf("-faults.cells=%d -faults.seed=%d", *faultCells, *faultSeed)
}

// A faultCall is a kind of call.
type faultCall struct {
	name string
	on   func(faultTarget) bool // nil: all
	// make returns the call of a cell. What it needs in the database is made before.
	make func(ctx context.Context, g *faultGroup, cell int64) (*faultRun, error)
	// tables makes the tables of the group. It is called once.
	tables func(ctx context.Context, g *faultGroup) error
}

// A faultRun is one call, and the claims about it.
type faultRun struct {
	// do is the call.
	do func(ctx context.Context, db *sqlx.DB) error
	// judge says what is wrong with its outcome, or returns nil. It is called when the
	// call has returned, and again when all has arrived that was sent. Until then a
	// transaction may be open, so it must not wait for locks.
	judge func(ctx context.Context, outcome error) error
	// again repeats the call without a fault, and says what is wrong then. It may be nil.
	again func(ctx context.Context, db *sqlx.DB, outcome error) error
	// known says that the outcome has to be known after a cut, while there is time: the
	// server ends the transaction, and can be asked.
	known bool
}

// A faultGroup is a kind of call on a target. It has a schema and a proxy of its own. Its
// cells run in turn.
type faultGroup struct {
	t        *testing.T
	target   faultTarget
	call     faultCall
	name     string
	proxy    *faultproxy.Proxy
	schema   string
	around   *sqlx.DB // to the server, not through the proxy
	cell     int64
	cells    int // how many there are
	outcomes map[string]int
	state    any // of the call
}

// A faultCell is a fault in one message of a call.
type faultCell struct {
	name string
	from faultproxy.Side
	n    int // which message of its side
	do   faultproxy.Action
	hold time.Duration
}

func (g *faultGroup) run(ctx context.Context) (err error) {
	g.schema, g.outcomes = "faults_"+strings.ToLower(rand.Text()), map[string]int{}
	create, drop := "CREATE SCHEMA "+g.schema, "DROP SCHEMA "+g.schema+" CASCADE"
	if g.target.dialect == dialect.MySQL {
		create, drop = "CREATE DATABASE "+g.schema, "DROP DATABASE "+g.schema
	}
	if _, err := g.target.admin.ExecContext(ctx, create); err != nil {
		return err
	}
	defer func() {
		_, dropped := g.target.admin.ExecContext(context.WithoutCancel(ctx), drop)
		err = errors.Join(err, dropped)
	}()
	if g.around, err = g.open(ctx, g.target.server); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.around.Close()) }()
	if err := g.call.tables(ctx, g); err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	messages, err := g.record(ctx)
	if err != nil {
		return fmt.Errorf("without a fault: %w", err)
	}
	var cells []faultCell
	cells, g.cells = g.choose(messages)
	for _, c := range cells {
		if err := g.try(ctx, c); err != nil {
			g.outcomes["WRONG"]++
			g.t.Errorf("%s/%s: %v", g.name, c.name, err)
		}
	}
	return nil
}

// open returns a pool with a connection to address.
func (g *faultGroup) open(ctx context.Context, address string) (*sqlx.DB, error) {
	db, err := g.target.open(g.schema, address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return sqlx.NewDb(db, g.target.driver), nil
}

// start makes a call and opens a pool through the proxy.
func (g *faultGroup) start(ctx context.Context) (*faultRun, *sqlx.DB, error) {
	g.proxy.Arm(faultproxy.Fault{})
	g.cell++
	r, err := g.call.make(ctx, g, g.cell)
	if err != nil {
		return nil, nil, err
	}
	db, err := g.open(ctx, g.proxy.Addr())
	return r, db, err
}

// record returns the messages of a call without a fault.
func (g *faultGroup) record(ctx context.Context) ([]faultproxy.Message, error) {
	r, db, err := g.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	// With a deadline, because some calls send more then.
	within, cancel := context.WithTimeout(ctx, faultMost)
	defer cancel()
	g.proxy.Arm(faultproxy.Fault{})
	if err := r.do(within, db); err != nil {
		return nil, err
	}
	messages := g.proxy.Messages()
	if len(messages) == 0 {
		return nil, errors.New("no messages")
	}
	return messages, r.judge(ctx, nil)
}

// choose returns the faults to try, and how many there are. It chooses all, or a sample
// in which one hits a COMMIT.
func (g *faultGroup) choose(messages []faultproxy.Message) (some []faultCell, of int) {
	only := regexp.MustCompile(*faultOnly)
	var all, commit []faultCell
	count := map[faultproxy.Side]int{}
	commits := false // the last request is a COMMIT
	for i, m := range messages {
		count[m.From]++
		if i > 0 && i+1 < len(messages) && same(m, messages[i-1]) && same(m, messages[i+1]) {
			continue // like the rows of a COPY, of which the first and the last will do
		}
		if m.From == faultproxy.Client {
			commits = strings.EqualFold(m.Text, "COMMIT")
		}
		faults := []faultCell{{do: faultproxy.CutBefore}, {do: faultproxy.CutAfter}, {do: faultproxy.Swallow}, {do: faultproxy.Delay}}
		if m.From == faultproxy.Client {
			faults = append(faults, faultCell{do: faultproxy.Late}, faultCell{do: faultproxy.Late, hold: faultHold})
		}
		for _, c := range faults {
			c.from, c.n = m.From, count[m.From]
			c.name = fmt.Sprintf("%s %d %s", m.From, c.n, m.Name)
			if m.Text != "" {
				c.name += fmt.Sprintf(" %.20q", m.Text)
			}
			c.name += "/" + c.do.String()
			if c.hold > 0 {
				c.name += " " + c.hold.String()
			}
			if !only.MatchString(g.name + "/" + c.name) {
				continue
			}
			all = append(all, c)
			if commits {
				commit = append(commit, c)
			}
		}
	}
	if *faultOnly != "" || *faultCells == 0 || *faultCells >= len(all) {
		return all, len(all)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(g.name)) // which never fails
	random := mathrand.New(mathrand.NewPCG(*faultSeed, h.Sum64()))
	if len(commit) > 0 {
		some = append(some, commit[random.IntN(len(commit))])
	}
	for _, i := range random.Perm(len(all))[:max(0, *faultCells)] {
		some = append(some, all[i])
	}
	return some, len(all)
}

func same(a, b faultproxy.Message) bool {
	return a.From == b.From && a.Name == b.Name && a.Text == b.Text
}

// errNoFault means that the context ended before the fault, which takes a busy machine.
var errNoFault = errors.New("the message did not come")

// try makes the call with a fault. It returns what is wrong.
func (g *faultGroup) try(ctx context.Context, c faultCell) error {
	began := time.Now()
	for limit := faultTime; ; limit = min(3*limit, faultMost) {
		err := g.tryWithin(ctx, c, limit)
		if !errors.Is(err, errNoFault) || time.Since(began) > hangs {
			return err
		}
	}
}

func (g *faultGroup) tryWithin(ctx context.Context, c faultCell, limit time.Duration) (wrong error) {
	r, db, err := g.start(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	hit := g.proxy.Arm(faultproxy.Fault{On: faultproxy.Nth(c.n, faultproxy.From(c.from)), Do: c.do, For: c.hold})
	outcome, hanging := call(ctx, db, r, limit)
	if hanging {
		g.outcomes["hangs"]++
		wrong = fmt.Errorf("the call has not returned %v after its context ended", hangs)
		return errors.Join(wrong, g.proxy.Release())
	}
	select {
	case <-hit:
	default:
		return fmt.Errorf("%w; the call returned %v", errNoFault, outcome)
	}
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	kind := outcomeOf(outcome)
	g.outcomes[kind]++
	err = r.judge(ctx, outcome)
	if cut := c.do == faultproxy.CutBefore || c.do == faultproxy.CutAfter; err == nil && cut && r.known && !g.target.several &&
		errors.Is(outcome, sqlxhelper.ErrCommitUnknown) && !errors.Is(outcome, context.DeadlineExceeded) {
		err = errors.New("the outcome could have been found out")
	}
	if released := g.proxy.Release(); err == nil {
		err = released
	}
	if err == nil {
		if err = r.judge(ctx, outcome); err != nil {
			err = fmt.Errorf("when all has arrived: %w", err)
		}
	}
	if err == nil && r.again != nil {
		if err = r.again(ctx, db, outcome); err != nil {
			err = fmt.Errorf("the same call again: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; it had returned (%s) %v", err, kind, outcome)
	}
	return nil
}

// outcomeOf names an outcome for the table.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, sqlxhelper.ErrCommitUnknown):
		return "unknown"
	}
	return "error"
}

// call makes the call.
func call(ctx context.Context, db *sqlx.DB, r *faultRun, limit time.Duration) (outcome error, hanging bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.do(ctx, db) }()
	timer := time.NewTimer(limit + hangs)
	defer timer.Stop()
	select {
	case outcome = <-done:
		return outcome, false
	case <-timer.C:
		return nil, true
	}
}
