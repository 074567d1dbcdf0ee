package copies

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/types"
)

// dump dumps tables, and returns what restores them as they were.
func (p postgres) dump(s shop, tables ...string) (restore func()) {
	p.Helper()
	file := filepath.Join(p.TempDir(), "dump")
	args := []string{"--format=custom", "--file=" + file}
	for _, table := range tables {
		args = append(args, "--table="+table)
	}
	p.run("pg_dump", append(args, p.in(s.name))...)
	return func() {
		p.Helper()
		p.run("pg_restore", "--exit-on-error", "--clean", "--if-exists", "--dbname="+p.in(s.name), file)
	}
}

func (s shop) acquire(c lease.Config) *lease.Lease {
	s.Helper()
	c.Logger = quiet
	l, err := lease.Acquire(s.Context(), s.leases(), c)
	must(s, err)
	return l
}

// next returns the first key of a generator with the lease, and closes both.
func (s shop) next(l *lease.Lease) types.Snowflake {
	s.Helper()
	gen, err := core.New(core.Config{Worker: l})
	must(s, err)
	id, err := gen.Next(s.Context())
	must(s, err)
	must(s, gen.Close(s.Context()))
	return id
}

// A dump from before a process got its worker number is restored while the process runs. The
// next process gets the same number for the same time. In one process core notices that; two
// processes would repeat keys.
func TestARestoredLeaseTableGivesANumberTwice(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	s := p.shop("shop")
	config := lease.Config{Namespace: "twice", Workers: []int64{7}, Window: 10 * time.Minute} // no renewal meanwhile
	s.lease(config)                                                                           // makes the rows
	restore := p.dump(s, "snowkey_leases", "snowkey_leases_meta")
	before := s.acquire(config)
	gen, err := core.New(core.Config{Worker: before})
	must(t, err)
	defer func() { _ = gen.Close(t.Context()) }() // its row is another's
	restore()
	after := s.acquire(config)
	if second, err := core.New(core.Config{Worker: after}); !errors.Is(err, core.ErrWorkerInUse) {
		t.Errorf("New with a lease from the restored table = %v, %v; want ErrWorkerInUse: both may use the same time", second, err)
	}
	must(t, after.Close(t.Context()))
}

// The steps of docs/operations.md: the process has ended, and the fence is at the greatest key.
func TestAFenceKeepsKeysAfterARestoreAboveAllBefore(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	s := p.shop("shop")
	config := lease.Config{Namespace: "fenced", Workers: []int64{7}, Logger: quiet}
	s.lease(config)
	restore := p.dump(s, "snowkey_leases", "snowkey_leases_meta")
	statements(t, s.db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	for range 3 {
		statements(t, s.db, "INSERT INTO orders VALUES ("+s.next(s.acquire(config)).String()+")")
	}
	restore()

	var greatest types.Snowflake
	must(t, s.db.QueryRowContext(t.Context(), "SELECT max(id) FROM orders").Scan(&greatest))
	until := core.Default().Parts(greatest).Time.Add(time.Second)
	must(t, lease.Fence(t.Context(), s.leases(), config, until))
	id := s.next(s.acquire(config))
	if at := core.Default().Parts(id).Time; at.Before(until) {
		t.Errorf("first key after the restore has the time %v; want %v or later", at, until)
	}
}

// With the loss guard no fence is needed: the next process begins beyond all that another may have
// reserved, whatever the restored table knows.
func TestTheLossGuardSurvivesARestoredLeaseTable(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	s := p.shop("shop")
	config := lease.Config{Namespace: "guarded", Workers: []int64{7}, LossGuard: 100 * time.Millisecond}
	s.lease(config)
	restore := p.dump(s, "snowkey_leases", "snowkey_leases_meta")
	before := s.acquire(config)
	limit := before.Status().Limit
	must(t, before.Close(t.Context())) // or it would take its row back by a renewal
	restore()
	id := s.next(s.acquire(config))
	if at := core.Default().Parts(id).Time; at.Before(limit) {
		t.Errorf("first key after the restore has the time %v; want %v or later, which another process had reserved", at, limit)
	}
}

func TestARestoredSegmentRowRepeatsNumbersUntilItIsRaised(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	s := p.shop("shop")
	segments := s.segments()
	must(t, segments.CreateTables(t.Context()))
	must(t, segments.Create(t.Context(), segment.Row{Tag: "orders", Next: 1<<53 + 1, Step: 100, Stride: 1}))
	restore := p.dump(s, "snowkey_segments")
	statements(t, s.db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	keys := sqlsegment.Column{Table: "orders", Name: "id"}
	next := func(c segment.Config) (id types.Snowflake, err error) {
		c.Tag, c.Hold, c.Logger = "orders", -1, quiet
		orders, err := segment.New(segments, c)
		must(t, err)
		defer func() { must(t, orders.Close(t.Context())) }()
		return orders.Next(t.Context())
	}
	first, err := next(segment.Config{})
	must(t, err)
	statements(t, s.db, "INSERT INTO orders VALUES ("+first.String()+")")
	restore()
	if id, err := next(segment.Config{Floor: segments.Floor(keys)}); id != 0 || !errors.Is(err, segment.ErrWentBack) {
		t.Errorf("Next with a Floor = %d, %v; want ErrWentBack", id, err)
	}
	restore()
	if id, err := next(segment.Config{}); err != nil || id != first {
		t.Errorf("Next without a Floor = %d, %v; want %d again", id, err, first)
	}
	restore()
	_, err = segments.RaiseAboveMax(t.Context(), "orders", keys)
	must(t, err)
	if id, err := next(segment.Config{Floor: segments.Floor(keys)}); err != nil || id <= first {
		t.Errorf("Next after RaiseAboveMax = %d, %v; want more than %d", id, err, first)
	}
}
