package main

import "fmt"

// A titledWay is a way to get keys in the table, and what one key reveals, or two.
type titledWay struct{ name, title, reveals string }

const (
	showsCount = "count"
	showsTime  = "time"
	showsPart  = "time and rank"
)

var titledWays = []titledWay{
	{"uuid-v4", "UUIDv4", "nothing"},
	{"uuid-v7", "UUIDv7, google/uuid", showsTime},
	{"uuid-v7-go", "UUIDv7, Go 1.27", showsTime},
	{"nextval-postgresql", "sequence, PostgreSQL", showsCount},
	{"nextval-many", "… 100 in one SELECT", showsCount},
	{"nextval-mariadb", "sequence, MariaDB", showsCount},
	{"table-postgresql", "sequence table, PostgreSQL", showsCount},
	{"table-mariadb", "sequence table, MariaDB", showsCount},
	{"two-databases", "two databases, offset and stride", "rough " + showsCount},
	{"segments-postgresql", "**segments**, PostgreSQL", "rough " + showsCount},
	{"segments-mariadb", "**segments**, MariaDB", "rough " + showsCount},
	{"leaf-postgresql", "… with Leaf's rule, PostgreSQL", "rough " + showsCount},
	{"snowflake-fixed", "**Snowflake**, fixed worker", "time and worker"},
	{"snowflake-lease", "**Snowflake**, lease in PostgreSQL", "time and worker"},
	{"redis-incr", "Redis, `INCR` per millisecond", showsPart},
	{"redis-script", "Redis, a script", showsPart},
	{"redis-pipelined", "… 100 in a pipeline", showsPart},
	{"redis-three", "… over three servers", showsPart},
}

// rowKinds are the keys of rows, by the names of their ways.
var rowKinds = []entry{{"uuid-v4", "UUIDv4"}, {"uuid-v7", "UUIDv7"}, {identity, "identity"}, {"snowflake-fixed", "**Snowflake**"}}

const identity = "identity" // keys that the database makes

func waySections(r *results) map[string]string {
	ways := [][]string{{"way", "keys/s, c = 1", "c = 8", "c = 64", "round trips per key", "server's CPU, µs", "reveals"}}
	for _, w := range titledWays {
		row := []string{w.title}
		for _, c := range []string{"c=1", "c=8", "c=64"} {
			row = append(row, r.cell("Ways/"+c+"/"+w.name, "IDs/s"))
		}
		ways = append(ways, append(row, r.cell("Ways/c=8/"+w.name, "trips/ID"), r.cell("Ways/c=8/"+w.name, "server-µs/ID"), w.reveals))
	}
	var rows []entry
	for _, db := range []string{"PostgreSQL", "MariaDB"} {
		for _, kind := range rowKinds {
			rows = append(rows, entry{db + "/" + kind.name, db + ", " + kind.title})
		}
	}
	return map[string]string{
		"ways": table(ways),
		"fetch": grid("a fetch", []entry{{"PostgreSQL", "PostgreSQL"}, {"MariaDB", "MariaDB"}}, []entry{{"trips/fetch", "round trips"}, {"ns/op", "ms"}}, func(db, unit string) string {
			return r.scaled("Fetch/"+db, unit, map[string]float64{"ns/op": 1e6, "trips/fetch": 1}[unit])
		}),
		"rows": grid("k rows/s (CPU, µs per row)", rows, []entry{
			{"Rows", "200,000 rows"}, {"References", "50,000, five foreign keys"}, {"Large", "1,000,000, above memory"}, {"MB", "their table and indexes, MB"},
		}, func(row, column string) string {
			if column == "MB" {
				t, _ := r.median("Large/"+row, "table-MB")
				i, _ := r.median("Large/"+row, "index-MB")
				return fmt.Sprintf("%.0f + %.0f", t, i)
			}
			return r.scaled(column+"/"+row, "rows/s", 1e3) + " (" + r.cell(column+"/"+row, "server-µs/row") + ")"
		}),
	}
}

func noGoals() []goal { return nil }
