//go:build linux && cgo

package fire

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/robust/fire/disk"
)

// The names are those of the table.
const (
	sqliteWAL    = "SQLite WAL"
	sqliteDelete = "SQLite DELETE"
	sqliteLying  = "SQLite WAL, fsync lies"
	sqliteOff    = "SQLite WAL, OFF"
)

func init() {
	for name, options := range map[string]string{
		sqliteWAL:    "_journal_mode=WAL&_synchronous=OFF", // which the store does not leave so
		sqliteDelete: "_journal_mode=DELETE&_synchronous=OFF",
		sqliteLying:  "_journal_mode=WAL",
	} {
		stores[name] = sqliteAt("sqlite3", options)
	}
	for name, options := range map[string]string{
		sqliteOff: "_journal_mode=WAL&_synchronous=OFF",
	} {
		stores[name] = sqliteAt("careless", options)
	}
	sql.Register("careless", careless{})
}

// A clocked store is on a machine with a clock of its own.
type clocked struct {
	lease.Store
	now func() time.Time
}

func (c clocked) Now() time.Time { return c.now() }

var _ chaos.Clocked = clocked{}

// onMachine opens a store on a machine when its power is on.
func onMachine(dir string, open func(now func() time.Time) (lease.Store, error)) (lease.Store, error) {
	late, err := Powered(dir)
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return time.Now().Add(-late) }
	s, err := open(now)
	return clocked{s, now}, err
}

// sqliteAt returns a function that opens a database on the disk of a machine.
func sqliteAt(driver, options string) chaos.Open[lease.Store] {
	return func(dir string) (lease.Store, error) {
		return onMachine(dir, func(now func() time.Time) (lease.Store, error) {
			db, err := sql.Open(driver, "file:"+sqlitePath(dir)+"?"+options)
			if err != nil {
				return nil, err
			}
			s, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, AllowFUSE: true, Logger: quiet})
			if err != nil {
				return nil, err
			}
			setClock(s, now)
			return s, patiently(s.CreateTables)
		})
	}
}

// setClock sets the clock of a store on SQLite, which has the clock of its host. There is no setting
// for it, because only this test has another.
func setClock(s *sqllease.Store, now func() time.Time) {
	field := reflect.ValueOf(s).Elem().FieldByName("register").Elem().FieldByName("now")
	*(*func() time.Time)(field.Addr().UnsafePointer()) = now
}

func sqlitePath(dir string) string { return filepath.Join(dir, "leases.db") }

// patiently calls f until it returns nil. Others may have the database locked for as
// long as they repair it.
func patiently(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A careless driver does not let the level of syncs be raised.
type careless struct{ sqlite3.SQLiteDriver }

func (c careless) Open(dsn string) (driver.Conn, error) {
	conn, err := c.SQLiteDriver.Open(dsn)
	if err != nil {
		return nil, err
	}
	return &carelessConn{conn.(*sqlite3.SQLiteConn)}, nil
}

type carelessConn struct{ *sqlite3.SQLiteConn }

func (c *carelessConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.Contains(query, "synchronous = ") {
		return driver.ResultNoRows, nil
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

// A lister reads rows from the disk of a machine, and opens it when it is asked: before,
// the power may fail.
type lister struct{ dir string }

func (l lister) Rows(ctx context.Context, space leasestore.Space) (rows []leasestore.Row, now leasestore.Millis, err error) {
	db, err := sql.Open("sqlite3", "file:"+sqlitePath(l.dir))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, AllowFUSE: true, Logger: quiet})
	if err != nil {
		return nil, 0, err
	}
	return s.Rows(ctx, space)
}

// A power is a run on one machine whose power fails again and again.
type power struct {
	chaos.Leases

	disk disk.Config
	most time.Duration // between two cuts
	late time.Duration // by how much the clock may be after a cut

	// noBattery lets the clock begin at the same time after each cut. Without what was
	// lost IDs begin at the clock, so all that come after a cut repeat those before.
	noBattery bool
}

func (p power) run(t *testing.T) {
	t.Helper()
	Need(t, "nsenter")
	p.disk.Seed = rand.Uint64()
	t.Logf("seed of the disk: %d", p.disk.Seed)
	m := NewNetwork(t).Machine(t, "machine", p.disk)
	c := p.Leases
	c.DSN, c.Processes, c.Rows, c.For = m.Dir, Holders, Rows, *lasts
	if c.Broken {
		c.For /= 4 // and more, if that shows nothing
	}
	c.Enter = func(_ int, cmd *exec.Cmd) { m.Enter(cmd) }
	c.Lister = lister{m.Dir}
	cuts := 0
	var began time.Time // what the clock shows after each cut, without a battery
	c.During = func(ctx context.Context) error {
		for Rest(ctx, p.most/8, p.most) {
			late := rand.N(p.late)
			if p.noBattery {
				if cuts == 0 {
					began = time.Now()
				}
				late = time.Since(began)
			}
			if err := m.CutPower(rand.IntN(6), late); err != nil {
				return fmt.Errorf("power cut %d: %w", cuts+1, err)
			}
			cuts++
		}
		return nil
	}
	result := conduct(t, c, chaos.Fence, Allowance{})
	t.Logf("%d power cuts: %+v", cuts, m.Lost)
	if !c.Broken {
		Shown(t, cuts > 0 && result.Takeovers >= leastTakeovers, "%d power cuts and %d takeovers; want 1 and %d", cuts, result.Takeovers, leastTakeovers)
	}
}

// What it must find are TestSQLiteNeedsFsync and
// TestSQLiteNeedsTheLevelOfSyncsThatTheStoreSets, which need no night.
//
// A row that somebody had when the power failed is free when its time is over, for which there is
// time between the cuts.
func TestSQLiteRepeatsNoIDWhenThePowerFails(t *testing.T) {
	for _, store := range []string{sqliteWAL, sqliteDelete} {
		t.Run(store, func(t *testing.T) {
			power{
				Leases: chaos.Leases{Store: store},
				most:   6 * time.Second, late: 2 * time.Second,
			}.run(t)
		})
	}
}

func TestSQLiteNeedsFsync(t *testing.T) {
	power{
		Leases: chaos.Leases{Store: sqliteLying, Broken: true},
		disk:   disk.Config{LieOfFiles: true, LieOfDirs: true, LoseAll: true},
		most:   5 * time.Second, late: time.Second, noBattery: true,
	}.run(t)
}

// OFF syncs nothing. NORMAL syncs at a checkpoint only, but sqlrow makes one after each
// commit, so it loses something only while a reader is in the way of that.
func TestSQLiteNeedsTheLevelOfSyncsThatTheStoreSets(t *testing.T) {
	power{
		Leases: chaos.Leases{Store: sqliteOff, Broken: true},
		disk:   disk.Config{LoseAll: true}, // some of all would spoil the database
		most:   5 * time.Second, late: time.Second, noBattery: true,
	}.run(t)
}
