//go:build cgo

package feed_test

import (
	"database/sql"
	"flag"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/internal/proof/cases/feedcases"
)

// shortSpan is for the edit loop, which has the usual journal mode alone.
const shortSpan = 750 * time.Millisecond

var feedSpan = flag.Duration("feed.span", shortSpan, "how long writers of the feed fail; longer than the default: in both journal modes")

func TestTheFeedOfSQLiteMissesNoRow(t *testing.T) {
	for _, journal := range []string{"WAL", "DELETE"} {
		if journal == "DELETE" && *feedSpan <= shortSpan {
			continue
		}
		t.Run(journal, func(t *testing.T) {
			db, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "a.db")+"?_journal_mode="+journal+"&_busy_timeout=20000&_synchronous=OFF")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			d := feedcases.Database{DB: db, Dialect: feed.SQLite}
			if journal == "WAL" { // without it, a reader holds writers up
				feedcases.Run(t, d)
			}
			t.Run("Chaos", func(t *testing.T) { feedcases.Chaos(t, d, 4, *feedSpan) })
		})
	}
}
