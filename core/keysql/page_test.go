package keysql_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
)

// The cases run these statements on each database.
func TestThePageShowsWhatIsWritten(t *testing.T) {
	text, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, dialect := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL, keysql.SQLite} {
		blocks = append(blocks, keysqlcases.Statements(dialect), keysqlcases.JSON(dialect))
	}
	blocks = append(blocks, keysqlcases.CSV(keysql.PostgreSQL), keysqlcases.CSV(keysql.MySQL))
	for _, block := range blocks {
		if want := "\n```sql\n" + block + "```\n"; !strings.Contains(string(text), want) {
			t.Errorf("docs/reading.md is without this block:\n%s", want)
		}
	}
}

func TestThePageShowsHowFunctionsAreCalled(t *testing.T) {
	text, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL} {
		if want := "\n```sql\n" + keysqlcases.CallingFunctions(dialect) + "```\n"; !strings.Contains(string(text), want) {
			t.Errorf("docs/reading.md is without the functions on %v; want this block:\n%s", dialect, want)
		}
	}
}

// Package servers runs such statements.
func TestThePageShowsHowAMonthIsDropped(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL} {
		p := partitions(t, dialect, core.Default(), keysql.Month, time.UTC)
		march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		plan, err := p.Maintain(rows(list(t, p, march, march.AddDate(0, 3, 0))), may, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if want := "\n```sql\n" + strings.Join(plan.Drop, ";\n") + ";\n```\n"; !strings.Contains(string(text), want) {
			t.Errorf("docs/operations.md is without the end of a month on %v; want this block:\n%s", dialect, want)
		}
	}
}
