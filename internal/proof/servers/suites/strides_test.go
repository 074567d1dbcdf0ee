package servers

import (
	"fmt"
	"testing"
)

// Two databases become three, whose increments are set one after the other, as operators do it,
// and each continues from its own number. Each database is a table here, and the settings are
// made in the statements' session.
func TestAThirdDatabaseGivesNumbersOfTheFirstTwo(t *testing.T) {
	eachServer(t, func(t *testing.T, server string, make func(t *testing.T) leaseTarget) {
		if server == "PostgreSQL" {
			t.Skip("it has no increment of its own")
		}
		db := make(t).openOne(t) // its session has the settings
		given, twice := map[int64]bool{}, int64(0)
		take := func(table string, increment, offset, n int) {
			t.Helper()
			_, err := db.Exec("CREATE TABLE IF NOT EXISTS " + table + " (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
			must(t, err)
			_, err = db.Exec(fmt.Sprintf("SET SESSION auto_increment_increment = %d, auto_increment_offset = %d", increment, offset))
			must(t, err)
			for range n {
				result, err := db.Exec("INSERT INTO " + table + " VALUES ()")
				must(t, err)
				id, err := result.LastInsertId()
				must(t, err)
				if given[id] {
					twice = id
				}
				given[id] = true
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
