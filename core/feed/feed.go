package feed

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/types"
)

// A Dialect is the SQL of a database. The zero value is not a valid one.
type Dialect = dialect.Dialect

// The dialects.
const (
	SQLite     = dialect.SQLite
	PostgreSQL = dialect.PostgreSQL
	MySQL      = dialect.MySQL // and MariaDB
)

var (
	// ErrUnknownHorizon is returned where the database does not know which transactions are open, or
	// where rows may pass by the fence: on a standby or a replica, without the privileges that MySQL and
	// MariaDB want for that, and where the fence is missing. The text says which. Nothing was read.
	ErrUnknownHorizon = errors.New("feed: the database does not know the horizon")

	// ErrWentBack is returned after the database has lost writes, by a restore or by a failover to
	// a standby that lagged: a reader has read further than the database has noted for it, or the fence is
	// behind where a running Feed has left it. Rows that were read may be gone, and others may have come
	// in their place. The database keeps the fact: every Feed of the table, in every process, returns the
	// error until [Feed.Acknowledge]. Compare from the key in the text on before. The package comment says
	// what is not noticed.
	ErrWentBack = errors.New("feed: the database has gone back")
)

// Config says which table is read, and by whom. DB, Dialect, Table and Reader are required.
type Config struct {
	// DB is the database that the writers write to, not a replica.
	DB *sql.DB

	Dialect Dialect

	// Layout is the layout of the keys. Defaults to core.Default().
	Layout core.Layout

	// Table is the table's name, up to 50 bytes without the schema. On PostgreSQL it has its
	// schema, as in public.orders, and on SQLite none. On MySQL the schema defaults to the default
	// database of the connection that the Feed uses first, and remains that one, whatever USE does later.
	Table string

	// Reader is the name of the reader, such as mail, for which the database notes how far it has
	// read. Processes that go on from one stored position share a name; readers with positions of
	// their own have different ones.
	Reader string

	// Column is the primary key. Defaults to id.
	Column string

	// Slack is the greatest age of a key when it is inserted, by the clocks of the generator and of
	// the database: the database refuses older ones. It is also the smallest lag. Defaults to 5 s.
	Slack time.Duration

	// Replica, if set, is a physical standby of DB on which the rows are read. PostgreSQL only. Where
	// it leads to several standbys in turn, Keys never misses a row, but returns ErrUnknownHorizon from
	// those that are behind, and the result of Horizon holds for none but the one that was asked.
	Replica *sql.DB
}

const (
	defaultSlack = 5 * time.Second
	longestTable = 50 // 63 and 64 bytes are the limits of PostgreSQL and MySQL, with what is appended
	mostGates    = 100
)

// A Feed finds the horizon of a table. [New] creates it; the zero value is not usable. It may be
// used by one goroutine at a time. Any number of Feeds, in any number of processes, may read a table.
type Feed struct {
	config Config
	names        // with their schema once located is true
	fence  fence // with these names
	row    int64 // its own
	reader int64 // the row of Config.Reader

	located bool
	given   types.Snowflake // what the row of Config.Reader had in this call
	known
}

// known is what a Feed knows of the transactions of a database, which another database, or the same one
// after it has gone back, contradicts.
type known struct {
	gates   []gate          // oldest first; each waits for a transaction, and for another set than the others
	passed  []shipped       // settled on DB, oldest first, and perhaps not on Replica
	horizon types.Snowflake // the last result
	lsn     int64           // where Replica has to be for horizon
	raised  types.Snowflake // where the fence was left
}

// A gate is a position that the fence was given, and the names of the transactions that may not have
// seen it there and have not ended yet.
type gate struct {
	key  types.Snowflake
	open map[string]struct{}
}

// A shipped key is a horizon of the primary, and the place in its log that the replica has to reach.
type shipped struct {
	key types.Snowflake
	lsn int64
}

// A session is a connection of the pool. A call of Horizon or Keys uses one for all of its statements,
// because a pool may have connections to several servers, as after a failover.
type session interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
	querier
}

type querier interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// A fence is a key, stored in the database, below which a trigger refuses new rows.
type fence interface {
	// statements creates it.
	statements() []string
	// check returns an error that matches ErrUnknownHorizon unless the fence is whole.
	check(ctx context.Context, s session) error
	// now returns the time of the database's clock.
	now(ctx context.Context, s session) (time.Time, error)
	// begin begins a transaction, which no other of begin runs beside, and which is durable when it has
	// ended.
	begin(ctx context.Context, s session) (*sql.Tx, error)
	// raise moves the fence up to a key, never down, and returns where it is.
	raise(ctx context.Context, tx *sql.Tx, key types.Snowflake) (types.Snowflake, error)
	// open is called after raise. It returns a superset of the open transactions that may not have seen
	// the raised fence; ok is false if one has no name.
	open(ctx context.Context, s session) (names map[string]struct{}, ok bool, err error)
}

// New returns a Feed. It sends nothing to the database. It returns a [*core.ValueError] for a value
// that is refused.
func New(c Config) (*Feed, error) {
	if c.Layout == (core.Layout{}) {
		c.Layout = core.Default()
	}
	if c.Column == "" {
		c.Column = "id"
	}
	if c.Slack == 0 {
		c.Slack = defaultSlack
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	f := &Feed{config: c, row: firstFeed + rand.Int64N(math.MaxInt64-firstFeed), reader: rowOf(c.Reader)}
	f.at(sqlrow.NameOf(c.Dialect, c.Table))
	return f, nil
}

// at makes name that of the table.
func (f *Feed) at(name sqlrow.Name) {
	f.names, f.located = f.config.names(name), name.Schema != ""
	switch f.config.Dialect {
	case PostgreSQL:
		f.fence = postgreSQL{f.names}
	case MySQL:
		f.fence = innoDB{f.names}
	default:
		f.fence = sqlite{f.names}
	}
}

// locate finds the schema of the table, once. Otherwise USE on a connection of the pool would lead the Feed
// to the table of another tenant, and to the fence there.
func (f *Feed) locate(ctx context.Context, e dialect.Executor) error {
	if f.located {
		return nil
	}
	name, err := sqlrow.Locate(ctx, e, f.config.Dialect, f.config.Table)
	if err == nil {
		f.at(name)
	}
	return err
}

func (c Config) validate() error {
	invalid := func(name, value, want string) error {
		return &core.ValueError{Package: "feed", Name: "Config." + name, Value: value, Want: want}
	}
	if err := c.Layout.Validate(); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	schema, table, qualified := strings.Cut(c.Table, ".")
	if !qualified {
		schema, table = "x", c.Table
	}
	switch {
	case c.DB == nil:
		return invalid("DB", "nil", "a database")
	case !c.Dialect.Valid():
		return invalid("Dialect", c.Dialect.String(), "SQLite, PostgreSQL or MySQL")
	case schema == "" || table == "" || len(table) > longestTable || strings.ContainsAny(c.Table, "\"'`\\$\x00") || strings.Contains(table, "."):
		return invalid("Table", strconv.Quote(c.Table), "a name of up to "+strconv.Itoa(longestTable)+" bytes without quotation marks, dollar signs and backslashes")
	case qualified != (c.Dialect == PostgreSQL) && c.Dialect != MySQL:
		return invalid("Table", strconv.Quote(c.Table), "a name with its schema on PostgreSQL, such as public.orders, and without one on SQLite")
	case strings.ContainsAny(c.Column, "\"'`\\$.\x00"):
		return invalid("Column", strconv.Quote(c.Column), "a name without quotation marks, dollar signs, backslashes and dots")
	case c.Reader == "":
		return invalid("Reader", `""`, "a name for the reader, such as mail, which no reader with another position has")
	case c.Slack < 0:
		return invalid("Slack", c.Slack.String(), "more than 0")
	case c.Replica != nil && c.Dialect != PostgreSQL:
		return invalid("Replica", "", "none, except on PostgreSQL")
	}
	return nil
}

// names are what the statements call things, quoted, except for name.
type names struct {
	name                                          sqlrow.Name
	table, column, fence, readers, insert, update string
}

func (c Config) names(name sqlrow.Name) names {
	with := func(suffix string) string {
		return sqlrow.Name{Schema: name.Schema, Table: name.Table + suffix}.Quote(c.Dialect)
	}
	return names{name, with(""), c.Dialect.Quote(c.Column), with("_feed"), with("_feed_readers"), with("_feed_insert"), with("_feed_update")}
}

// Statements returns the SQL that [Feed.Install] runs, for a migration. Each is one statement, to be
// run in order. They may run again, as they must when a partition was added without the fence. On MySQL
// they name a table without its schema as Config.Table does.
func (f *Feed) Statements() []string {
	named := Feed{config: f.config}
	named.at(sqlrow.NameOf(f.config.Dialect, f.config.Table))
	return named.fence.statements()
}

// Install creates the fence: a sequence or a table of one row, a table of the Feeds, and a trigger on
// the table. It waits for the transactions that write to the table. On a database that has the fence it
// changes nothing.
func (f *Feed) Install(ctx context.Context) error {
	tx, err := f.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("feed: Install: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := f.locate(ctx, tx); err != nil {
		return fmt.Errorf("feed: Install: %w", err)
	}
	statements := f.fence.statements()
	if here, err := sqlrow.Locate(ctx, tx, f.config.Dialect, f.config.Table); err == nil && here == f.name {
		statements = f.Statements() // with a schema, a dump of the triggers fits no other
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("feed: Install: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("feed: Install: %w", err)
	}
	return nil
}

// Horizon raises the fence and returns a key H: each row with a key below H that will ever be
// committed is visible to statements that begin from now on, on Config.Replica if that is set. It is 0
// until the transactions that were open at the first call have ended. Horizon does not wait for any
// transaction: while one is open, H stays where it is and [Feed.Lag] grows. H never decreases, but begins
// at 0 again after [ErrWentBack], and after a day without a call.
//
// Pass the last key that was processed, which the reader has stored, or 0. If it has processed all rows below
// an earlier result, that is the result less 1. By it the Feed notices that the database has gone back; a
// new reader that does not begin at 0 is explained at [Feed.Keys].
//
// Errors match [ErrUnknownHorizon] or [ErrWentBack], or are the driver's.
func (f *Feed) Horizon(ctx context.Context, after types.Snowflake) (types.Snowflake, error) {
	return f.advance(ctx, after, func(querier) (types.Snowflake, error) { return f.horizon - 1, nil })
}

// Lag returns how far the last result of Horizon is behind the clock of this process: at least
// Config.Slack, and more while transactions are open. Before the first horizon it is the time since the
// layout's epoch.
func (f *Feed) Lag() time.Duration {
	return time.Since(f.config.Layout.Parts(f.horizon).Time)
}

// Keys returns the next keys after a key, in order, up to the horizon and at most limit of them. An
// empty result means that there are none yet. It calls [Feed.Horizon], whose errors it returns.
//
// Pass the last key that was processed, which the reader has stored, or 0. A new reader that begins
// anywhere else first calls Horizon with 0, until it returns a greater key, and never does so again, because
// a position that the reader was never given is taken for one from before the database went back. A
// limit below 1 gives a [*core.ValueError].
func (f *Feed) Keys(ctx context.Context, after types.Snowflake, limit int) ([]types.Snowflake, error) {
	if limit < 1 {
		return nil, &core.ValueError{Package: "feed", Name: "limit", Value: strconv.Itoa(limit), Want: "1 or more"}
	}
	var keys []types.Snowflake
	_, err := f.advance(ctx, after, func(q querier) (read types.Snowflake, err error) {
		if after+1 >= f.horizon { // a replica may not even have the table yet
			return 0, nil
		}
		keys, err = list[types.Snowflake](ctx, q, f.config.Dialect.Bind("SELECT "+f.column+" FROM "+f.table+" WHERE "+f.column+" > ? AND "+f.column+
			" < ? ORDER BY "+f.column+" LIMIT "+strconv.Itoa(limit)), int64(after), int64(f.horizon))
		if err != nil {
			return 0, fmt.Errorf("feed: Keys: %w", err)
		}
		if len(keys) > 0 {
			read = keys[len(keys)-1]
		}
		return read, nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// advance is Horizon for a caller that has read up to the key read. It calls then with a connection to
// the server for which the horizon holds. The caller may have read up to what then returns when advance has
// returned, and not before.
func (f *Feed) advance(ctx context.Context, read types.Snowflake, then func(querier) (types.Snowflake, error)) (types.Snowflake, error) {
	named := func(err error) error {
		if errors.Is(err, ErrUnknownHorizon) || errors.Is(err, ErrWentBack) {
			return err
		}
		return fmt.Errorf("feed: Horizon: %w", err)
	}
	s, err := f.session(ctx)
	if err != nil {
		return 0, named(err)
	}
	defer func() { _ = s.Close() }() // it goes back to the pool
	if err := f.settle(ctx, s, read); err != nil {
		return 0, named(err)
	}
	give := func(q querier) (types.Snowflake, error) {
		last, err := then(q)
		if err != nil {
			return 0, err
		}
		if last >= f.given {
			if err := f.give(ctx, s); err != nil {
				return 0, named(err)
			}
		}
		return f.horizon, nil
	}
	if f.config.Replica == nil {
		return give(s)
	}
	// Behind a pooler, a transaction is what stays on one server. Its statements have snapshots of their own.
	tx, err := f.config.Replica.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted, ReadOnly: true})
	if err != nil {
		return 0, named(err)
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	if err := f.replayed(ctx, s, tx); err != nil {
		return 0, named(err)
	}
	return give(tx)
}

// session returns a connection to a server that knows the horizon.
func (f *Feed) session(ctx context.Context) (*sql.Conn, error) {
	for try := 1; ; try++ {
		s, err := f.config.DB.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if err = f.locate(ctx, s); err == nil {
			err = f.fence.check(ctx, s)
		}
		if err == nil {
			return s, nil
		}
		_ = s.Close()
		if !errors.Is(err, driver.ErrBadConn) || try == 3 { // one that has ended in the pool
			return nil, err
		}
	}
}

func (f *Feed) settle(ctx context.Context, s session, read types.Snowflake) error {
	now, err := f.fence.now(ctx, s)
	if err != nil {
		return err
	}
	// A clock that is ahead makes the database refuse every row until the others get there, so both
	// have to be. Nothing but that depends on a clock.
	if own := time.Now(); own.Before(now) {
		now = own
	}
	after, err := f.raise(ctx, s, f.config.Layout.Min(now.Add(-f.config.Slack)), read)
	if err != nil {
		return err
	}
	open, all, err := f.fence.open(ctx, s)
	if err != nil {
		return err
	}
	key, ok := f.pass(gate{after, open}, all)
	if !ok {
		return nil
	}
	if f.config.Replica == nil {
		f.horizon = key
		return nil
	}
	return f.ship(ctx, s, key)
}

// pass adds a gate, and returns the key of the newest for which all has ended, and false if there is none.
// Its names are the transactions that are open now, all of them or not.
func (f *Feed) pass(newest gate, all bool) (key types.Snowflake, ok bool) {
	var kept []gate
	for _, g := range f.gates {
		if all {
			maps.DeleteFunc(g.open, func(name string, _ struct{}) bool { _, open := newest.open[name]; return !open })
			if len(g.open) == 0 {
				key, ok, kept = g.key, true, nil
				continue
			}
		}
		kept = add(kept, g)
	}
	if all && len(newest.open) == 0 {
		f.gates = nil
		return newest.key, true
	}
	f.gates = add(kept, newest)
	if len(f.gates) > mostGates { // so many transactions stay open, and the lag grows more coarsely
		kept = nil
		for i := 0; i < len(f.gates); i += 2 {
			kept = append(kept, f.gates[i])
		}
		f.gates = kept
	}
	return key, ok
}

// add appends a gate, in place of the last one if that waits for the same and is lower.
func add(gates []gate, g gate) []gate {
	if n := len(gates); n > 0 && maps.Equal(gates[n-1].open, g.open) {
		gates[n-1] = g
		return gates
	}
	return append(gates, g)
}

// list returns the only column of a query.
func list[T any](ctx context.Context, db querier, query string, args ...any) ([]T, error) {
	var all []T
	err := dialect.Each(ctx, db, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	}, query, args...)
	return all, err
}

// refusal is the text of the trigger.
const refusal = "feed: the key is below the horizon, to which the rows were read already; insert the row under a new key"
