package servers

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// Two databases become three, whose increments are set one after the other, as operators do it,
// and each continues from its own number. Each database is a table here, and the settings are
// made in the statements' session.
func TestAThirdDatabaseGivesNumbersOfTheFirstTwo(t *testing.T) {
	for name, server := range map[string]func(testing.TB) string{"MariaDB": servertest.MariaDB, "MySQL": servertest.MySQL} {
		t.Run(name, func(t *testing.T) {
			db, err := sql.Open("mysql", server(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			c, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // its session's settings are not the pool's
			run := func(ctx context.Context, query string) sql.Result {
				t.Helper()
				result, err := c.ExecContext(ctx, query)
				if err != nil {
					t.Fatal(query, err)
				}
				return result
			}
			for _, table := range []string{"first", "second", "third"} {
				run(t.Context(), "DROP TABLE IF EXISTS strides_"+table)
				run(t.Context(), "CREATE TABLE strides_"+table+" (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
				defer run(context.WithoutCancel(t.Context()), "DROP TABLE strides_"+table)
			}
			given, twice := map[int64]string{}, int64(0)
			take := func(table string, increment, offset, n int) {
				t.Helper()
				run(t.Context(), fmt.Sprintf("SET SESSION auto_increment_increment = %d, auto_increment_offset = %d", increment, offset))
				for range n {
					id, err := run(t.Context(), "INSERT INTO strides_"+table+" VALUES ()").LastInsertId()
					if err != nil {
						t.Fatal(err)
					}
					if given[id] != "" {
						twice = id
					}
					given[id] = table
				}
			}
			take("first", 2, 1, 10) // 1, 3, …, 19
			take("second", 2, 2, 10)
			if twice != 0 {
				t.Errorf("of two databases the number given twice is %d; want none", twice)
			}
			take("first", 3, 1, 3) // 22, 25, 28
			take("second", 2, 2, 5)
			if twice != 28 {
				t.Errorf("the number given twice is %d; want 28: the second has still the increment 2", twice)
			}
			// Even when all three are set, the third begins with numbers that were given.
			take("third", 3, 3, 1)
			if twice != 3 {
				t.Errorf("the number given twice is %d; want 3: the third begins at the start", twice)
			}
		})
	}
}
