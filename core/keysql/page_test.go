package keysql_test

import (
	"os"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/conformance/keysqlcases"
)

// The cases run these statements on each database.
func TestThePageShowsWhatIsWritten(t *testing.T) {
	text, err := os.ReadFile("../../docs/reading.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL, keysql.SQLite} {
		if want := "\n```sql\n" + keysqlcases.Statements(dialect) + "```\n"; !strings.Contains(string(text), want) {
			t.Errorf("docs/reading.md is without the statements for %v; want this block:\n%s", dialect, want)
		}
	}
}
