package dialect

import "testing"

func TestEachDialectWritesNamesAndParametersItsWay(t *testing.T) {
	for _, test := range []struct {
		dialect            Dialect
		name, quoted, bind string
	}{
		{SQLite, "SQLite", `"main"."orders"`, "a = ? AND b = ?"},
		{PostgreSQL, "PostgreSQL", `"main"."orders"`, "a = $1 AND b = $2"},
		{MySQL, "MySQL", "`main`.`orders`", "a = ? AND b = ?"},
		{DuckDB, "DuckDB", `"main"."orders"`, "a = ? AND b = ?"},
		{ClickHouse, "ClickHouse", "`main`.`orders`", "a = ? AND b = ?"},
		{BigQuery, "BigQuery", "`main`.`orders`", "a = ? AND b = ?"},
	} {
		if got := test.dialect.String(); got != test.name {
			t.Errorf("Dialect(%d).String() = %q; want %q", test.dialect, got, test.name)
		}
		if got := test.dialect.Quote("main.orders"); got != test.quoted {
			t.Errorf("%v.Quote(main.orders) = %s; want %s", test.dialect, got, test.quoted)
		}
		if got := test.dialect.Bind("a = ? AND b = ?"); got != test.bind {
			t.Errorf("%v.Bind(a = ? AND b = ?) = %s; want %s", test.dialect, got, test.bind)
		}
		if got, want := test.dialect.Valid(), test.dialect < DuckDB; got != want {
			t.Errorf("%v.Valid() = %v; want %v", test.dialect, got, want)
		}
	}
}

func TestNumbersThatAreNoDialectSaySo(t *testing.T) {
	for d, want := range map[Dialect]string{0: "Dialect(0)", BigQuery + 1: "Dialect(7)"} {
		if got := d.String(); got != want || d.Valid() {
			t.Errorf("Dialect(%d) = %s, valid %v; want %s, false", uint8(d), got, d.Valid(), want)
		}
	}
}
