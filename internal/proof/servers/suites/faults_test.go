package servers

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/servers/faultproxy"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// Every message between a program and its database may be lost, come late, or be the last on its connection
// or that any connection carries. These tests record the messages of a call, repeat the call with one fault in
// one message, and compare what the call says with what is stored.
var (
	faultCells = flag.Int("faults.cells", 2, "how many faults per driver and kind of call, besides those at its COMMIT; 0 for all, negative for none")
	faultSeed  = flag.Uint64("faults.seed", 20261123, "which faults")
	faultOnly  = flag.String("faults.only", "", "only the faults whose name matches this regular expression, all of them")
)

const (
	// faultHold is how long a message is held that arrives during the call, and how much longer the context of
	// a call lasts whose answer never comes.
	faultHold = 250 * time.Millisecond
	// faultMost is the longest that a context lasts. Above 50 s, innodb_lock_wait_timeout, a call would need
	// fewer messages.
	faultMost = 45 * time.Second
	// faultGroups is how many kinds of calls are tried on a server at the same time: most of the time
	// they wait. Each has up to five connections, and a PostgreSQL has a hundred.
	faultGroups = 8
)

func TestEachCallSaysWhatIsStoredWhicheverMessageIsLost(t *testing.T) {
	t.Logf("-faults.cells=%d -faults.seed=%d", *faultCells, *faultSeed)
	var all sync.WaitGroup
	defer all.Wait()
	for server := range servers {
		all.Go(func() {
			groups := newCrowd(t, faultGroups)
			defer groups.wait()
			for _, w := range waysTo(server) {
				for _, call := range faultCalls {
					if call.on == nil || call.on(w) {
						groups.run(w.name+"/"+call.name, func(t *testing.T) { runFaults(t, w.place(t), call) })
					}
				}
			}
		})
	}
}

// runFaults tries a kind of call.
func runFaults(t *testing.T, p place, call faultCall) {
	ctx := t.Context()
	g := &faultGroup{t: t, place: p, call: call, around: p.open(t), cell: mathrand.Int64N(1<<24) << 20, outcomes: map[string]int{}}
	// On TiDB other servers may take writes, so a row that is missing proves nothing.
	g.several = p.server == "MySQL" && isTiDB(t, g.around.DB)
	must(t, call.tables(ctx, g))
	messages, err := g.record(ctx)
	for call.ends && errors.Is(err, context.DeadlineExceeded) { // a limit of the call's own, on a busy machine
		messages, err = g.record(ctx)
	}
	if err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	cells, of := g.choose(messages)
	for _, c := range cells {
		if err := g.try(ctx, c); err != nil {
			g.outcomes["WRONG"]++
			t.Errorf("%s: %v", c.name, err)
		}
	}
	t.Logf("%v of %d faults", g.outcomes, of)
}

// A faultCall is a kind of call.
type faultCall struct {
	name string
	on   func(way) bool // nil: all
	// make returns the call of a cell, to be made over db. What it needs in the database is made before.
	make func(ctx context.Context, g *faultGroup, cell int64, db *sqlx.DB) (*faultRun, error)
	// tables makes the tables of the group. It is called once.
	tables func(ctx context.Context, g *faultGroup) error
	// ends is set if all that is claimed is that the call ends with its context.
	ends bool
}

// A faultRun is one call, and the claims about it.
type faultRun struct {
	// do is the call.
	do func(ctx context.Context, db *sqlx.DB) error
	// judge says what is wrong with its outcome, or returns nil. It is called when the
	// call has returned, and again when all has arrived that was sent. Until then a
	// transaction may be open, so it must not wait for locks. It may be nil.
	judge func(ctx context.Context, outcome error) error
	// again repeats the call without a fault, and says what is wrong then. It may be nil.
	again func(ctx context.Context, db *sqlx.DB, outcome error) error
	// known says that the outcome has to be known while there is time: the server ends the transaction, and
	// can be asked.
	known bool
	// unsure says that the outcome is unknown if the answer is lost: a row with the key may be somebody
	// else's, or there is no other connection on which to ask.
	unsure bool
	// within says that the transaction is the caller's, who commits it.
	within bool
}

// A faultGroup is a kind of call in a place of its own. Its cells run in turn.
type faultGroup struct {
	t *testing.T
	place
	call     faultCall
	several  bool
	around   *sqlx.DB // to the server, not through a proxy
	proxy    *faultproxy.Proxy
	cell     int64 // whose rows have keys that no other cell's have, in no database
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
	// asked: what is late arrives when the server is asked for it.
	asked bool
	// sure cells are tried in every run: silence from the first message on, and what becomes of a COMMIT, or of
	// a statement that commits by itself, and of the answer to it.
	sure bool
	// early: the COMMIT comes after an answer that follows the message.
	early bool
}

// ends reports whether no answer comes while the call lasts, so that its context ends soon after the fault.
func (c faultCell) ends() bool {
	switch c.do {
	case faultproxy.Silence, faultproxy.Swallow, faultproxy.Delay:
		return true
	case faultproxy.Late:
		return c.hold == 0 && !c.asked
	}
	return false
}

// start makes a call, with a pool through a new proxy.
func (g *faultGroup) start(ctx context.Context) (*faultRun, *sqlx.DB, error) {
	through, proxy := g.through(g.t)
	g.proxy = proxy
	connector, err := through.connector()
	if err != nil {
		return nil, nil, err
	}
	db := sqlx.NewDb(sql.OpenDB(connector), g.driver)
	db.SetMaxOpenConns(4)
	if err := db.PingContext(ctx); err != nil {
		return nil, nil, err
	}
	g.cell++
	r, err := g.call.make(ctx, g, g.cell, db)
	return r, db, err
}

// stop ends the proxy first, because a driver may wait for answers when its pool is closed.
func (g *faultGroup) stop(db *sqlx.DB) {
	g.proxy.Stop()
	if db != nil {
		_ = db.Close()
	}
}

// record returns the messages of a call without a fault.
func (g *faultGroup) record(ctx context.Context) ([]faultproxy.Message, error) {
	r, db, err := g.start(ctx)
	defer g.stop(db)
	if err != nil {
		return nil, err
	}
	g.proxy.Arm(faultproxy.Fault{})
	if err := r.do(expiring{ctx, make(chan struct{})}, db); err != nil {
		return nil, err
	}
	messages := g.proxy.Messages()
	if len(messages) == 0 {
		return nil, errors.New("no messages")
	}
	if r.judge == nil {
		return messages, nil
	}
	return messages, r.judge(ctx, nil)
}

// isAfterwards matches statements on which no outcome depends.
var isAfterwards = regexp.MustCompile("(?i)^(rollback|set session)")

// runs reports whether a request runs a statement, and does not prepare it.
func runs(m faultproxy.Message) bool { return faultproxy.Running("")(m) }

// commits returns which message is the first COMMIT, or else the last statement, which commits by itself.
func commits(messages []faultproxy.Message) (at int, byItself bool) {
	at = slices.IndexFunc(messages, func(m faultproxy.Message) bool {
		return m.From == faultproxy.Client && strings.EqualFold(m.Text, "COMMIT")
	})
	if at >= 0 {
		return at, false
	}
	for i, m := range messages {
		if runs(m) && !isAfterwards.MatchString(m.Text) {
			at = i
		}
	}
	return at, true
}

// choose returns the faults to try, and how many there are. It chooses those that are sure, and all others or a sample.
func (g *faultGroup) choose(messages []faultproxy.Message) (some []faultCell, of int) {
	only := regexp.MustCompile(*faultOnly)
	commit, byItself := commits(messages)
	answer := commit + slices.IndexFunc(messages[max(commit, 0):], faultproxy.From(faultproxy.Server))
	var others []faultCell
	count := map[faultproxy.Side]int{}
	for i, m := range messages {
		count[m.From]++
		if i != commit && i > 0 && i+1 < len(messages) && same(m, messages[i-1]) && same(m, messages[i+1]) {
			continue // like the rows of a COPY, of which the first and the last will do
		}
		faults := []faultCell{
			{do: faultproxy.CutBefore, sure: i == commit || i == answer}, {do: faultproxy.CutAfter},
			{do: faultproxy.Swallow}, {do: faultproxy.Delay},
		}
		if m.From == faultproxy.Client {
			late := i == commit && !byItself
			faults = append(faults, faultCell{do: faultproxy.Late, sure: late}, faultCell{do: faultproxy.Late, hold: faultHold, sure: late})
			if late {
				faults = append(faults, faultCell{do: faultproxy.Late, asked: true, sure: true})
			}
		}
		if g.call.ends {
			faults = nil
		}
		if m.From == faultproxy.Client {
			wants := i == commit && !(g.call.ends && byItself) // an answer, which at the end of some reads it may do without
			faults = append(faults, faultCell{do: faultproxy.Silence, sure: count[m.From] == 1 || wants})
		}
		for _, c := range faults {
			c.from, c.n = m.From, count[m.From]
			c.early = i < commit && !byItself && slices.ContainsFunc(messages[i:commit], faultproxy.From(faultproxy.Server))
			c.name = fmt.Sprintf("%s %d %s", m.From, c.n, m.Name)
			if m.Text != "" {
				c.name += fmt.Sprintf(" %.20q", m.Text)
			}
			c.name += "/" + c.do.String()
			switch {
			case c.asked:
				c.name += " until asked"
			case c.hold > 0:
				c.name += " " + c.hold.String()
			}
			switch {
			case !only.MatchString(g.name + "/" + g.call.name + "/" + c.name):
			case c.sure || *faultOnly != "" || *faultCells == 0:
				some = append(some, c)
			default:
				others = append(others, c)
			}
		}
	}
	of = len(some) + len(others)
	h := fnv.New64a()
	_, _ = h.Write([]byte(g.name + "/" + g.call.name)) // which never fails
	random := mathrand.New(mathrand.NewPCG(*faultSeed, h.Sum64()))
	for _, i := range random.Perm(len(others))[:min(max(0, *faultCells), len(others))] {
		some = append(some, others[i])
	}
	return some, of
}

func same(a, b faultproxy.Message) bool {
	return a.From == b.From && a.Name == b.Name && a.Text == b.Text
}

// fault returns the fault of a cell.
func (c faultCell) fault() faultproxy.Fault {
	f := faultproxy.Fault{On: faultproxy.Nth(c.n, faultproxy.From(c.from)), Do: c.do, For: c.hold}
	if c.asked { // as MySQL, and PostgreSQL, is asked
		mysql, postgres := faultproxy.Sending(faultproxy.Client, "SELECT 1 FROM"), faultproxy.Sending(faultproxy.Client, "txid_status")
		f.Until = func(m faultproxy.Message) bool { return mysql(m) || postgres(m) }
	}
	return f
}

// try makes the call with a fault. It returns what is wrong.
func (g *faultGroup) try(ctx context.Context, c faultCell) error {
	ctx, cancel := context.WithTimeout(ctx, 2*hangs)
	defer cancel()
	r, db, err := g.start(ctx)
	defer g.stop(db)
	if err != nil {
		return err
	}
	hit := g.proxy.Arm(c.fault())
	outcome, hanging := c.call(ctx, db, r, hit)
	if hanging {
		g.outcomes["hangs"]++
		return fmt.Errorf("the call has not returned %v after its context ended", hangs)
	}
	select {
	case <-hit:
	case <-time.After(hangs): // what a driver has sent last, such as COM_STMT_CLOSE, may come after the call has returned
		return fmt.Errorf("the message did not come; the call returned %v", outcome)
	}
	kind := outcomeOf(outcome)
	g.outcomes[kind]++
	if err := g.wrong(ctx, c, r, db, outcome); err != nil {
		return fmt.Errorf("%w; it had returned (%s) %v", err, kind, outcome)
	}
	return nil
}

// wrong returns what is wrong with the outcome of a call.
func (g *faultGroup) wrong(ctx context.Context, c faultCell, r *faultRun, db *sqlx.DB, outcome error) error {
	if err := c.wrong(r, outcome, g.several); err != nil {
		return err
	}
	judge := r.judge
	if judge == nil {
		return g.proxy.Release()
	}
	if err := errors.Join(judge(ctx, outcome), g.proxy.Release()); err != nil {
		return err
	}
	if err := judge(ctx, outcome); err != nil {
		return fmt.Errorf("when all has arrived: %w", err)
	}
	if r.again == nil {
		return nil
	}
	if c.do == faultproxy.Silence {
		db = g.around
	}
	if err := r.again(ctx, db, outcome); err != nil {
		return fmt.Errorf("the same call again: %w", err)
	}
	return nil
}

// wrong returns what is wrong with an outcome, whatever is stored.
func (c faultCell) wrong(r *faultRun, outcome error, several bool) error {
	unknown, ended := errors.Is(outcome, sqlxhelper.ErrCommitUnknown), errors.Is(outcome, context.DeadlineExceeded)
	cut := c.do == faultproxy.CutBefore || c.do == faultproxy.CutAfter || c.do == faultproxy.Late && c.sure && !c.ends()
	answerLost := c.sure && c.from == faultproxy.Server
	switch {
	case c.do == faultproxy.Silence && c.sure && !ended:
		return errors.New("want the end of its context")
	case c.do == faultproxy.Silence && (c.early || r.within) && unknown:
		return errors.New("nothing can have been committed")
	case cut && r.known && unknown && !several:
		return errors.New("the outcome could have been found out")
	case answerLost && r.unsure && !unknown:
		return errors.New("the outcome cannot be known")
	}
	return nil
}

// outcomeOf names an outcome for the log.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "nil"
	case errors.Is(err, sqlxhelper.ErrCommitUnknown):
		return "unknown"
	}
	return "error"
}

// call makes the call. Its context ends some time after the fault.
func (c faultCell) call(ctx context.Context, db *sqlx.DB, r *faultRun, hit <-chan struct{}) (outcome error, hanging bool) {
	lasts := faultMost
	if c.ends() {
		lasts = faultHold
	}
	over, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.do(expiring{ctx, over}, db) }()
	timeout := time.NewTimer(hangs)
	defer timeout.Stop()
	for {
		select {
		case outcome = <-done:
			return outcome, false
		case <-hit:
			hit = nil
			defer time.AfterFunc(lasts, func() { close(over) }).Stop()
		case <-timeout.C:
			return nil, true
		}
	}
}
