//go:build cgo

package feed_test

import (
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

var feedSpan = flag.Duration("feed.span", shortSpan, "how long processes of the feed are killed; longer than the default: in both journal modes")

// processes runs processes on a database, on systems that are Unix.
var processes = func(*testing.T, feedcases.Database, time.Duration) {}

func TestTheFeedOfSQLiteMissesNoRow(t *testing.T) {
	for _, journal := range []string{"WAL", "DELETE"} {
		if journal == "DELETE" && *feedSpan <= shortSpan {
			continue
		}
		t.Run(journal, func(t *testing.T) {
			dsn := filepath.Join(t.TempDir(), "a.db") + "?_journal_mode=" + journal + "&_busy_timeout=20000&_synchronous=OFF"
			d := feedcases.Database{Driver: "sqlite3", DSN: dsn, Dialect: feed.SQLite}
			if journal == "WAL" { // without it, a reader holds writers up
				feedcases.Run(t, d)
			}
			t.Run("Processes", func(t *testing.T) { processes(t, d, *feedSpan) })
		})
	}
}
