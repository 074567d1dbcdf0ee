package servers

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// Some drivers have database/sql send a statement again that was run, and the row is then a
// duplicate of itself.
func TestStatementOnAPoolWhoseAnswerIsLostIsNoDuplicate(t *testing.T) {
	for name, open := range map[string]behind{
		"Pq":        postgresBehind("postgres"),
		"PqBinary":  postgresBehind("postgres", "binary_parameters", "yes"),
		"Pgx":       postgresBehind("pgx"),
		"PgxSimple": postgresBehind("pgx", "default_query_exec_mode", "simple_protocol"),
	} {
		t.Run(name, func(t *testing.T) { lostStatements(t, open) })
	}
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) {
		lostStatements(t, mysqlBehind(dsn))
		t.Run("Interpolating", func(t *testing.T) {
			lostStatements(t, mysqlBehind(dsn, func(c *mysql.Config) { c.InterpolateParams = true }))
		})
	})
}

func lostStatements(t *testing.T, open behind) {
	t.Helper()
	for _, c := range []struct {
		name    string
		what    loss
		preset  bool
		unknown bool
	}{
		{"AnswerLost", answerLost, false, false},
		{"StatementLost", commitLost, false, false},
		// If the caller has set the key, the stored row does not prove who has stored it.
		{"PresetAnswerLost", answerLost, true, true},
		{"PresetStatementLost", commitLost, true, false},
	} {
		for _, n := range []int{1, 3} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				proxy := &losing{what: c.what, at: "insert into"}
				through, around := open(t, proxy)
				table := "suppressed_" + strings.ToLower(rand.Text()) // no other schema has it
				execSqlx(t, around.DB, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, n BIGINT)")
				h := sqlxhelper.New(sqlxcases.NewCounter(0))
				rows := make([]suppressed, n)
				for i := range rows {
					if c.preset {
						rows[i].ID = 100 + rows[i].ID + 1<<i
					}
				}
				err := h.InsertMany(t.Context(), through.DB, table, rows)
				if errors.Is(err, sqlxhelper.ErrCommitUnknown) != c.unknown || !c.unknown && err != nil {
					t.Errorf("InsertMany() = %v; want ErrCommitUnknown: %v", err, c.unknown)
				}
				var stored int
				if err := around.DB.Get(&stored, "SELECT COUNT(*) FROM "+table); err != nil || stored != n {
					t.Errorf("rows = %d, %v; want %d", stored, err, n)
				}
				if !proxy.lost() {
					t.Error("the proxy has lost nothing")
				}
				// A duplicate of another row is one.
				twice := sqlxhelper.New(nil).InsertMany(t.Context(), around.DB, table, rows)
				if !errors.Is(twice, sqlxhelper.ErrDuplicateKey) || errors.Is(twice, sqlxhelper.ErrCommitUnknown) {
					t.Errorf("InsertMany(stored rows) = %v; want ErrDuplicateKey", twice)
				}
			})
		}
	}
}
