package main

import "fmt"

// gormDatabases are the columns of the tables.
var gormDatabases = []entry{
	{"SQLite", "SQLite"}, {"PostgreSQL", "PostgreSQL"}, {"MariaDB", "MariaDB"}, {"MariaDBWithoutReturning", "… without RETURNING"}, {"MySQL", "MySQL"},
}

func gormSections(r *results) map[string]string {
	return map[string]string{
		"gorm": grid("", []entry{
			{"one/auto-increment", "**1,000 orders of 5 items, one `Create`:** auto-increment, ms"}, {"one/snowkey", "snowkey"}, {"one/snowkey-unnest", "snowkey, `WithUnnest`"},
			{"one/preset", "no plugin, keys set by hand"}, {"one/snowkey-assign", "`Assign`, one statement per table"},
			{"each/auto-increment", "**… 1,000 `Create`s:** auto-increment, ms"}, {"each/snowkey", "snowkey"}, {"each/preset", "no plugin"},
			{"save/auto-increment", "**… one `Save`:** auto-increment, ms"}, {"save/snowkey", "snowkey"}, {"save/snowkey-unnest", "snowkey, `WithUnnest`"},
			{"belongs/auto-increment", "**1,000 shipments with a customer each:** auto-increment, ms"}, {"belongs/snowkey", "snowkey"}, {"belongs/snowkey-unnest", "snowkey, `WithUnnest`"},
			{"many/auto-increment", "**1,000 articles with two tags each:** auto-increment, ms"}, {"many/snowkey", "snowkey"}, {"many/snowkey-unnest", "snowkey, `WithUnnest`"},
		}, gormDatabases, func(row, database string) string { return r.against("GORM/"+database+"/"+row, "auto-increment") }),
		"upserts": grid("10,000 rows", []entry{
			{"all/plain", "**all stored:** plain, ms"}, {"all/snowkey", "snowkey"}, {"half/plain", "**half:** plain, ms"}, {"half/snowkey", "snowkey"},
			{"none/plain", "**none:** plain, ms"}, {"none/snowkey", "snowkey"},
		}, gormDatabases, func(row, database string) string { return r.against("Upsert/"+database+"/"+row, "plain") }),
	}
}

// against shows the time of the variant base in ms, and of another variant how many times
// as long it takes: the ratio of the two medians, and the middle half of the rounds.
func (r *results) against(name, base string) string {
	beside := sibling(name, base)
	if name == beside {
		return r.scaled(name, "ns/op", 1e6)
	}
	x, ok := r.median(name, "ns/op")
	y, ok2 := r.median(beside, "ns/op")
	s, ok3 := r.ratio(name, beside, "ns/op")
	if !ok || !ok2 || !ok3 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", x/y, s.low, s.high)
}

func gormGoals() []goal {
	var list []goal
	for _, d := range gormDatabases {
		inTime := func(title, name, base string, limit float64) {
			list = append(list, goal{d.title + ", " + title, true, limit, "%.2f ×", quotient(name, sibling(name, base), "ns/op")})
		}
		inTime("one `Create` against keys set by hand", "GORM/"+d.name+"/one/snowkey", "preset", 1.03)
		inTime("1,000 `Create`s against keys set by hand", "GORM/"+d.name+"/each/snowkey", "preset", 1.03)
		if d.name == "PostgreSQL" {
			inTime("one `Create`, `WithUnnest`", "GORM/PostgreSQL/one/snowkey-unnest", "auto-increment", 0.8)
		}
		inTime("upsert of stored rows, against plain", "Upsert/"+d.name+"/all/snowkey", "plain", 1.6)
		inTime("upsert, half stored", "Upsert/"+d.name+"/half/snowkey", "plain", 1.4)
		inTime("upsert, none stored", "Upsert/"+d.name+"/none/snowkey", "plain", 1.05)
	}
	for _, source := range []string{"free", "generator"} {
		name := "Assignment/" + source + "/structs/n=5000"
		list = append(list,
			goal{"assignment of 5,000 structs (" + source + "), ns per row", true, 25, "%.0f", func(r *results) float64 { return r.of(name, "ns/row") }},
			goal{"… allocations per row", true, 0.001, "%.4f", func(r *results) float64 { return r.of(name, "allocs/op") / 5000 }})
	}
	return list
}
