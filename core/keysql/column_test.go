package keysql_test

import (
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

func TestNewRefusesWhatNoExpressionIsRightFor(t *testing.T) {
	fraction, early := core.Default(), core.Default()
	fraction.Unit = 1500 * time.Nanosecond
	early.Epoch = early.Epoch.Add(1)
	for _, test := range []struct {
		dialect keysql.Dialect
		layout  core.Layout
		name    string
		want    string
	}{
		{0, core.Default(), "id", "Dialect(0)"},
		{keysql.SQLite, core.Layout{}, "id", "Layout."},
		{keysql.SQLite, fraction, "id", "1.5µs"},
		{keysql.SQLite, early, "id", "00.000000001Z"},
		{keysql.SQLite, core.Default(), "", `""`},
		{keysql.SQLite, core.Default(), "orders.", `"orders."`},
		{keysql.PostgreSQL, core.Default(), `id" OR "1`, `"id\" OR`},
		{keysql.MySQL, core.Default(), "id` OR 1", "id` OR 1"},
		{keysql.ClickHouse, core.Default(), "id` OR 1", "id` OR 1"},
		{keysql.BigQuery, core.Default(), `id\`, `"id\\"`},
		{keysql.BigQuery + 1, core.Default(), "id", "Dialect(7)"},
	} {
		_, err := keysql.New(test.dialect, test.layout, test.name)
		if err == nil || !strings.HasPrefix(err.Error(), "keysql: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New(%v, …, %q) = %v; want an error with %s", test.dialect, test.name, err, test.want)
		}
	}
}

// Databases read the moment of the epoch as one in UTC.
func TestTheZoneOfTheEpochDoesNotMatter(t *testing.T) {
	utc, elsewhere := core.Default(), core.Default()
	elsewhere.Epoch = utc.Epoch.In(time.FixedZone("", 3600))
	for _, dialect := range []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL, keysql.SQLite} {
		want, err := keysql.New(dialect, utc, "id")
		if err != nil {
			t.Fatal(err)
		}
		got, err := keysql.New(dialect, elsewhere, "id")
		if err != nil || got != want {
			t.Errorf("%v: New() = %+v, %v; want %+v", dialect, got, err, want)
		}
	}
}

// A column that does not exist is an error on SQLite too, and not a string.
func TestNamesAreQuoted(t *testing.T) {
	for dialect, want := range map[keysql.Dialect]string{
		keysql.PostgreSQL: `"Order"."my id" & 4095`,
		keysql.MySQL:      "`Order`.`my id` & 4095",
		keysql.SQLite:     "`Order`.`my id` & 4095",
		keysql.DuckDB:     `"Order"."my id" & 4095`,
		keysql.ClickHouse: "bitAnd(`Order`.`my id`, 4095)",
		keysql.BigQuery:   "`Order`.`my id` & 4095",
	} {
		c, err := keysql.New(dialect, core.Default(), "Order.my id")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Sequence(); got != want {
			t.Errorf("%v: Sequence() = %s; want %s", dialect, got, want)
		}
	}
}
