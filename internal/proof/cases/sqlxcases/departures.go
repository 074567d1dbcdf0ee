package sqlxcases

import (
	"database/sql/driver"
	"fmt"
	"runtime"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// departing is a number whose Value method does not return for some values.
type departing int64

const valueExits departing = 1

func (d departing) Value() (driver.Value, error) {
	if d == valueExits {
		runtime.Goexit()
	}
	return int64(d), nil
}

type departingRow struct {
	types.Model
	N departing `db:"n"`
}

// departures: code of the caller's that ends its goroutine, as testing's FailNow
// does, or panics. Nothing is stored. No connection and no lock is kept. The
// transaction of the caller can go on.
func (d Database) departures(t *testing.T) {
	d.tables(t, "CREATE TABLE departing (id BIGINT PRIMARY KEY, n BIGINT)")
	many := func(n int, last departing) []departingRow {
		rows := make([]departingRow, n)
		rows[n-1].N = last
		return rows
	}
	for name, call := range map[string]func(h *sqlxhelper.Helper, db sqlxhelper.DB) error{
		"Value, one row": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			return h.Insert(ctx, db, "departing", &many(1, valueExits)[0])
		},
		"Value, few rows": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			return h.InsertMany(ctx, db, "departing", many(5, valueExits))
		},
		"Value, many rows": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			return h.InsertMany(ctx, db, "departing", many(7000, valueExits))
		},
		"Value, upsert": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			return h.With(sqlxhelper.OnConflictDoNothing("id")).InsertMany(ctx, db, "departing", many(50, valueExits))
		},
		"OnProgress": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			return h.With(sqlxhelper.OnProgress(func(int, int) { runtime.Goexit() })).InsertMany(ctx, db, "departing", many(7000, 0))
		},
		"the function of InTx": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			if _, ok := db.(*sqlx.DB); !ok {
				runtime.Goexit()
			}
			return sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
				_ = h.InsertMany(ctx, tx, "departing", many(50, 0))
				runtime.Goexit()
				return nil
			})
		},
		"Value in InTx": func(h *sqlxhelper.Helper, db sqlxhelper.DB) error {
			if _, ok := db.(*sqlx.DB); !ok {
				runtime.Goexit()
			}
			return sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
				return h.InsertMany(ctx, tx, "departing", many(7000, valueExits))
			})
		},
	} {
		for _, inTx := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a transaction %v", name, inTx), func(t *testing.T) { d.departs(t, inTx, call) })
		}
	}
}

// departs makes a call that does not return, and checks what it leaves.
func (d Database) departs(t *testing.T, inTx bool, call func(h *sqlxhelper.Helper, db sqlxhelper.DB) error) {
	t.Helper()
	h := sqlxhelper.New(NewCounter(0))
	_ = d.onEither(t, inTx, func(db sqlxhelper.DB) error {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			t.Errorf("the call has returned %v", call(h, db))
		}()
		<-gone
		return nil
	})
	if used := d.DB.Stats().InUse; used != 0 {
		t.Errorf("connections in use = %d; want 0", used)
	}
	d.wantCount(t, "departing", 0)
	// It waits for locks that are held.
	if err := h.InsertMany(ctx, d.DB, "departing", make([]departingRow, 3)); err != nil {
		t.Errorf("InsertMany(afterwards) = %v; want nil", err)
	}
	d.exec(t, "DELETE FROM departing")
}
