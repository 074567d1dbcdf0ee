//go:build cgo

package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

// A clocked is the fence of a database whose clock is ahead of that of this process, or behind it.
type clocked struct {
	sqlite
	ahead time.Duration
}

func (c clocked) now(context.Context, session) (time.Time, error) {
	return time.Now().Add(c.ahead), nil
}

// clockedFeed returns a Feed that a database with such a clock has.
func clockedFeed(t *testing.T, ahead time.Duration) (*Feed, *sql.DB) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "orders.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{DB: db, Dialect: SQLite, Table: "orders", Reader: "mail", Slack: time.Millisecond})
	if err == nil {
		err = f.Install(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	f.fence = clocked{f.fence.(sqlite), ahead}
	return f, db
}

// Otherwise the database would refuse every row until the other clock gets there.
func TestTheHorizonIsPastNeitherClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		f, _ := clockedFeed(t, ahead)
		h, err := f.Horizon(t.Context(), 0)
		if last := f.config.Layout.Max(time.Now().Add(min(ahead, 0))); err != nil || h == 0 || h > last {
			t.Errorf("Horizon() where the clock of the database is %v ahead = %d, %v; want at most %d", ahead, h, err, last)
		}
	}
}

// The database is another one after a failover, and so is its clock.
func TestAFenceThatWentBackIsRaisedToWhereItWasThoughTheClockIsBehind(t *testing.T) {
	f, db := clockedFeed(t, 0)
	h, err := f.Horizon(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE orders_feed SET closed = 5"); err != nil {
		t.Fatal(err)
	}
	f.fence = clocked{f.fence.(clocked).sqlite, -time.Hour}
	if _, err := f.Horizon(t.Context(), 0); !errors.Is(err, ErrWentBack) {
		t.Errorf("Horizon() after the fence was put back = %v; want ErrWentBack", err)
	}
	if _, err := db.Exec(fmt.Sprintf("INSERT INTO orders VALUES (%d)", h-1)); err == nil || !strings.Contains(err.Error(), "below the horizon") {
		t.Errorf("INSERT of %d, below the horizon %d that was given = %v; want it refused", h-1, h, err)
	}
}
