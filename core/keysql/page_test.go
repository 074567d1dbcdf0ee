package keysql_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// The test of the command that the pages name runs what they show.
func TestThePagesShowWhatIsWritten(t *testing.T) {
	days := map[keysql.Dialect][2]string{
		keysql.PostgreSQL: {"timestamptz '2026-05-04 00:00Z'", "timestamptz '2026-05-05 00:00Z'"},
		keysql.MySQL:      {"'2026-05-04'", "'2026-05-05'"},
		keysql.SQLite:     {"'2026-05-04'", "'2026-05-05'"},
	}
	for dialect, day := range days {
		c, err := keysql.New(dialect, core.Default(), "id")
		if err != nil {
			t.Fatal(err)
		}
		wantOnPage(t, "reading.md", dialect,
			c.Time()+" AS made_at", c.Worker()+" AS worker", c.Sequence()+" AS sequence", "WHERE "+c.Between(day[0], day[1])+";", "('id', "+c.Text()+", 'number', number)")
		if dialect != keysql.SQLite {
			p := partitions(t, dialect, core.Default(), keysql.Month, time.UTC)
			march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			plan, err := p.Maintain(rows(list(t, p, march, march.AddDate(0, 3, 0))), may, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			wantOnPage(t, "operations.md", dialect, "begin\n"+strings.Join(plan.Drop, ";\n")+";\nend\n")
		}
	}
}

// wantOnPage wants the texts in the blocks of a page that are for a database.
func wantOnPage(t *testing.T, page string, dialect keysql.Dialect, texts ...string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, blocks, err := markdown.BlocksOf(string(text), "TestWhatThePagesShowRuns")
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, b := range blocks {
		if slices.Contains(b.On, fmt.Sprint(dialect)) {
			shown += "begin\n" + b.Text + "end\n"
		}
	}
	for _, want := range texts {
		if !strings.Contains(shown, want) {
			t.Errorf("docs/%s does not show for %v:\n%s", page, dialect, want)
		}
	}
}
