package standby

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A commit is one that a server is asked for, as it goes.
type commit struct {
	takes  time.Duration
	warned bool
	err    error
}

// A server is one connection of a PostgreSQL that waits for a standby.
type server struct {
	id       int64
	sees     bool     // the user may see the standby
	has      []bool   // whether it has got so far, each time that somebody looks
	commits  []commit // the last goes on for ever
	old      bool     // before PostgreSQL 10
	closed   bool     // after a commit has failed
	breaks   string   // what fails after the first commit: look, begin or write
	moves    bool     // another server answers after a look
	log      []string
	frontend frontend
}

// A frontend is what pgx calls so.
type frontend struct{ tracer *tracer }

type tracer struct{ w io.Writer }

type options struct{ Regress bool }

func (f *frontend) Trace(w io.Writer, _ options) { f.tracer = &tracer{w} }
func (f *frontend) Untrace()                     { f.tracer = nil }

func (f *frontend) receive(message string) {
	if f.tracer != nil {
		_, _ = f.tracer.w.Write([]byte("2026-11-23\tB\t" + message + "\t12\n"))
	}
}

// hidden is a connection of a driver that shows no warnings.
type hidden struct{ s *server }

// shown is one of pgx.
type shown struct{ hidden }

func (c shown) Conn() *pgxConn { return &pgxConn{c.s} }

type pgxConn struct{ s *server }

func (c *pgxConn) PgConn() *pgConn { return &pgConn{c.s} }

type pgConn struct{ s *server }

func (c *pgConn) Frontend() *frontend { return &c.s.frontend }
func (c *pgConn) IsClosed() bool      { return c.s.closed }

func (hidden) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not prepared") }
func (hidden) Close() error                        { return nil }
func (c hidden) Begin() (driver.Tx, error)         { return c, nil }

func (c hidden) Rollback() error {
	c.s.log = append(c.s.log, "ROLLBACK")
	return nil
}

func (c hidden) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	if c.s.breaks == "begin" && len(c.s.log) > 0 {
		return nil, errNoAnswer
	}
	return c, nil
}

func (c hidden) Commit() error {
	c.s.log = append(c.s.log, "COMMIT")
	now := c.s.commits[0]
	if len(c.s.commits) > 1 {
		c.s.commits = c.s.commits[1:]
	}
	time.Sleep(now.takes)
	if now.warned {
		c.s.frontend.receive("NoticeResponse")
	}
	c.s.frontend.receive("CommandComplete")
	c.s.closed = now.err != nil
	return now.err
}

func (c hidden) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case text == progress && c.s.old:
		return nil, noFunctionError{}
	case text == progress:
		c.s.log = append(c.s.log, "look")
		if c.s.breaks == "look" {
			return nil, errNoAnswer
		}
		id := c.s.id
		if c.s.moves {
			c.s.id++
		}
		has := c.s.has[0]
		if len(c.s.has) > 1 {
			c.s.has = c.s.has[1:]
		}
		return &row{id, "0/700028", c.s.sees, has}, nil
	case strings.Contains(text, "pg_logical_emit_message"):
		c.s.log = append(c.s.log, "write")
		if c.s.breaks == "write" {
			return nil, errNoAnswer
		}
		return &row{c.s.id, nil, nil, ""}, nil
	}
	return nil, fmt.Errorf("unexpected: %s", text)
}

type noFunctionError struct{}

func (noFunctionError) Error() string    { return "function pg_current_wal_flush_lsn() does not exist" }
func (noFunctionError) SQLState() string { return "42883" }

// A row is read once.
type row []any

func (r *row) Columns() []string { return make([]string, len(*r)) }
func (*row) Close() error        { return nil }

func (r *row) Next(dest []driver.Value) error {
	if *r == nil {
		return io.EOF
	}
	for i, v := range *r {
		dest[i] = v
	}
	*r = nil
	return nil
}

type connector struct{ driver.Conn }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.Conn, nil }
func (connector) Driver() driver.Driver                          { return nil }

// connect returns a connection to s, by a driver that shows warnings or hides them.
func (s *server) connect(t *testing.T, shows bool) *sql.Conn {
	t.Helper()
	s.id = cmp.Or(s.id, 42)
	if s.has == nil {
		s.has = []bool{false}
	}
	var c driver.Conn = hidden{s}
	if shows {
		c = shown{hidden{s}}
	}
	pool := sql.OpenDB(connector{c})
	t.Cleanup(func() { _ = pool.Close() })
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// commitOn commits a transaction on a connection.
func commitOn(ctx context.Context, t *testing.T, conn *sql.Conn) error {
	t.Helper()
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		t.Fatal(err)
	}
	return Server{42, conn}.Commit(ctx, tx.Commit)
}

var (
	fast        = commit{takes: 2 * time.Millisecond}
	slow        = commit{takes: time.Second}
	cut         = commit{takes: time.Second, warned: true}
	fastCut     = commit{takes: time.Millisecond, warned: true}
	errNoAnswer = errors.New("no answer")
)

func TestCommitCountsOnceTheStandbyHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		s     server
		shows bool
		want  string // what is sent
		err   error
	}{
		"no warning":                            {server{commits: []commit{slow}}, true, "COMMIT", nil},
		"a warning, then none":                  {server{commits: []commit{cut, fastCut, slow}}, true, "COMMIT look write COMMIT write COMMIT", nil},
		"the standby is seen":                   {server{commits: []commit{fastCut}, sees: true, has: []bool{false, false, true}}, false, "COMMIT look look look", nil},
		"a warning, and the standby is seen":    {server{commits: []commit{fastCut}, sees: true, has: []bool{false, true}}, true, "COMMIT look look", nil},
		"what is not to be seen does not count": {server{commits: []commit{fastCut, fast}, has: []bool{true}}, false, "COMMIT look write COMMIT", nil},
		"warnings are hidden":                   {server{commits: []commit{fast}}, false, "COMMIT look write COMMIT", nil},
		"hidden, and cut off again":             {server{commits: []commit{cut, cut, cut, fast}}, false, "COMMIT look write COMMIT write COMMIT write COMMIT", nil},
		"before PostgreSQL 10":                  {server{commits: []commit{fast}, old: true}, false, "COMMIT write COMMIT", nil},
		"the commit fails":                      {server{commits: []commit{{err: errNoAnswer}}}, false, "COMMIT", errNoAnswer},
		"the commit fails with a warning":       {server{commits: []commit{{err: errNoAnswer, warned: true}}}, true, "COMMIT", errNoAnswer},
		"the write fails":                       {server{commits: []commit{cut, {err: errNoAnswer}}}, true, "COMMIT look write COMMIT", ErrUnknown},
		"hidden, and the write fails":           {server{commits: []commit{fast, {err: errNoAnswer}}}, false, "COMMIT look write COMMIT", ErrUnknown},
		"the look fails":                        {server{commits: []commit{fast}, breaks: "look"}, false, "COMMIT look", ErrUnknown},
		"the write cannot begin":                {server{commits: []commit{fast}, breaks: "begin"}, false, "COMMIT look", ErrUnknown},
		"the write is refused":                  {server{commits: []commit{fast}, breaks: "write"}, false, "COMMIT look write ROLLBACK", ErrUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			err := commitOn(t.Context(), t, test.s.connect(t, test.shows))
			if got := strings.Join(test.s.log, " "); got != test.want || !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("Commit, %s = %v after %s; want %v after %s", name, err, got, test.err, test.want)
			}
			// pgx closes a connection in a goroutine, which must be left alone.
			if listens := test.s.frontend.tracer != nil; listens != (test.shows && test.s.closed) {
				t.Errorf("after Commit, %s, the connection is listened to: %t; want that only if it is closed", name, listens)
			}
		})
	}
}

func TestCommitIsUnknownWhenTheContextEndsBeforeTheStandbyAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		s     server
		shows bool
		want  error
	}{
		"warned each time":    {server{commits: []commit{cut}}, true, errCut},
		"hidden and slow":     {server{commits: []commit{slow}}, false, errSlow},
		"hidden, and ended":   {server{commits: []commit{{takes: 9970 * time.Millisecond}, {takes: 50 * time.Millisecond}}}, false, errCut},
		"seen not to have it": {server{commits: []commit{cut}, sees: true}, false, errLags},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := commitOn(ctx, t, test.s.connect(t, test.shows))
			if !errors.Is(err, ErrUnknown) || !errors.Is(err, test.want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Commit, %s = %v; want it to match %v, %v and the end of ctx", name, err, ErrUnknown, test.want)
			}
		})
	}
}

// A failover comes between the commit and the look, and a pooler hides it.
func TestCommitIsNotConfirmedByAnotherServer(t *testing.T) {
	for name, s := range map[string]server{
		"before the look": {id: 43}, "before a look that shows the standby": {id: 43, sees: true}, "before the write": {moves: true},
	} {
		s.commits, s.has = []commit{fast}, []bool{true}
		conn := s.connect(t, false)
		if err := commitOn(t.Context(), t, conn); !errors.Is(err, ErrUnknown) || !errors.Is(err, errElsewhere) {
			t.Errorf("Commit, then another server %s = %v; want %v", name, err, errElsewhere)
		}
	}
}

// There is room for one who listens.
func TestTraceOfTheProgramGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trace bytes.Buffer
		s := server{commits: []commit{fast}}
		conn := s.connect(t, true)
		s.frontend.tracer = &tracer{&trace}
		if err := commitOn(t.Context(), t, conn); err != nil {
			t.Error(err)
		}
		if s.frontend.tracer == nil || !strings.Contains(trace.String(), "CommandComplete") || !slices.Contains(s.log, "write") {
			t.Errorf("with a trace of the program, sent %q and traced %q; want a write that confirms, and the trace", s.log, trace.String())
		}
	})
}

func TestConnectionThatIsGoneIsNotHeard(t *testing.T) {
	s := server{commits: []commit{fast}}
	conn := s.connect(t, true)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if got := listen(conn).stop(); got != unheard {
		t.Errorf("what a closed connection says = %v; want %v", got, unheard)
	}
}

// A proof is the transaction of [Ensure].
type proof struct {
	refused error
	commit
	ends context.CancelFunc // during the commit, if not nil
}

func (p proof) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, p.refused
}

func (p proof) Commit() error {
	time.Sleep(p.takes)
	if p.ends != nil {
		p.ends()
	}
	return p.err
}

func TestEnsureProvesNothingUnlessItsCommitCannotHaveBeenCutOff(t *testing.T) {
	for name, test := range map[string]struct {
		proof
		ends bool
		want error
	}{
		"in time":                 {proof{commit: fast}, false, nil},
		"slow":                    {proof{commit: commit{takes: Slow}}, false, ErrSlow},
		"as ctx ends":             {proof{commit: fast}, true, context.Canceled},
		"slow, as ctx ends":       {proof{commit: commit{takes: Slow}}, true, context.Canceled},
		"the write is refused":    {proof{refused: errNoAnswer, commit: fast}, false, errNoAnswer},
		"the commit fails":        {proof{commit: commit{err: errNoAnswer}}, false, errNoAnswer},
		"no standby, CockroachDB": {proof{refused: noFunctionError{}, commit: commit{err: errNoAnswer}}, false, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.ends {
				test.proof.ends = cancel
			}
			if err := Ensure(ctx, test.proof); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("Ensure(%s) = %v; want %v", name, err, test.want)
			}
		})
	}
}
