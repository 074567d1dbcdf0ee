package keysql_test

import (
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

// The statements for worker 1023, which lease.Retire has taken out of use.
func ExampleDefault() {
	statements, err := keysql.Default(keysql.PostgreSQL, core.Default(), 0, 1023, "public")
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range append(statements, "ALTER TABLE orders ALTER COLUMN id SET DEFAULT public.id_next()") {
		fmt.Println(statement + ";")
	}
	// Output:
	// CREATE SEQUENCE IF NOT EXISTS "public"."snowkey_next" AS bigint MINVALUE 1 MAXVALUE 9007199254740991 CACHE 1 NO CYCLE;
	// CREATE OR REPLACE FUNCTION "public"."id_next"() RETURNS bigint
	// LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	// DECLARE
	//   tick CONSTANT bigint := floor((extract(epoch FROM clock_timestamp()) - 1735689600) * 1000);
	//   lock CONSTANT bigint := (1936617335::bigint << 32) | '"public"."snowkey_next"'::regclass::oid::bigint;
	//   n bigint;
	// BEGIN
	//   BEGIN
	//     PERFORM pg_advisory_xact_lock_shared(lock);
	//     n := nextval('"public"."snowkey_next"');
	//     RAISE SQLSTATE 'SNOWK'; -- ends the lock
	//   EXCEPTION WHEN SQLSTATE 'SNOWK' THEN
	//   END;
	//   IF n < (tick - 16) * 4096 OR n >= (tick + 17) * 4096 THEN
	//     BEGIN
	//       PERFORM pg_advisory_xact_lock(lock);
	//       SELECT setval('"public"."snowkey_next"', greatest(last_value + 1, tick * 4096)) INTO n FROM "public"."snowkey_next";
	//       RAISE SQLSTATE 'SNOWK';
	//     EXCEPTION WHEN SQLSTATE 'SNOWK' THEN
	//     END;
	//   END IF;
	//   RETURN ((n >> 12) << 22) | 4190208 | (n & 4095);
	// END
	// $$;
	// ALTER TABLE orders ALTER COLUMN id SET DEFAULT public.id_next();
}

func TestDefaultRefusesWhatItCannotWrite(t *testing.T) {
	fraction := core.Default()
	fraction.Unit = 1500 * time.Nanosecond
	shards := core.Default()
	shards.ShardBits = 4
	for _, test := range []struct {
		dialect            keysql.Dialect
		layout             core.Layout
		datacenter, worker int64
		schema             string
		want               string
	}{
		{0, core.Default(), 0, 1, "public", "Dialect(0)"},
		{keysql.MySQL, core.Default(), 0, 1, "public", "want PostgreSQL"},
		{keysql.SQLite, core.Default(), 0, 1, "public", "RequireKey"},
		{keysql.DuckDB, core.Default(), 0, 1, "public", "want PostgreSQL"},
		{keysql.PostgreSQL, core.Layout{}, 0, 1, "public", "Layout."},
		{keysql.PostgreSQL, fraction, 0, 1, "public", "1.5µs"},
		{keysql.PostgreSQL, shards, 0, 1, "public", "Layout.ShardBits is 4: want 0"},
		{keysql.PostgreSQL, core.Default(), 1, 1, "public", "keysql: datacenter is 1: want 0"},
		{keysql.PostgreSQL, core.Default(), 0, 1024, "public", "keysql: worker is 1024: want 0"},
		{keysql.PostgreSQL, core.Default(), 0, -1, "public", "-1"},
		{keysql.PostgreSQL, core.Default(), 0, 1, "", `""`},
		{keysql.PostgreSQL, core.Default(), 0, 1, "a.b", `"a.b"`},
		{keysql.PostgreSQL, core.Default(), 0, 1, `a"b`, "quotation"},
		{keysql.PostgreSQL, core.Default(), 0, 1, "a'b", "quotation"},
		{keysql.PostgreSQL, core.Default(), 0, 1, "a$$b", "dollar"},
		{keysql.PostgreSQL, core.Default(), 0, 1, `a\b`, "backslash"},
	} {
		statements, err := keysql.Default(test.dialect, test.layout, test.datacenter, test.worker, test.schema)
		var refused *core.ValueError
		if statements != nil || !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "keysql: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Default(%v, …, %d, %d, %q) = %v; want a *core.ValueError with %s", test.dialect, test.datacenter, test.worker, test.schema, err, test.want)
		}
	}
}

func TestRequireKeyRefusesWhatItCannotWrite(t *testing.T) {
	for _, test := range []struct {
		dialect             keysql.Dialect
		table, column, want string
	}{
		{keysql.PostgreSQL, "orders", "id", "see Default"},
		{keysql.BigQuery, "orders", "id", "MySQL or SQLite"},
		{keysql.MySQL, "", "id", `""`},
		{keysql.MySQL, "shop.", "id", `""`},
		{keysql.MySQL, "or`ders", "id", "quotation"},
		{keysql.SQLite, "orders", "i`d", "quotation"},
		{keysql.SQLite, "orders", "orders.id", `"orders.id"`},
	} {
		statements, err := keysql.RequireKey(test.dialect, test.table, test.column)
		var refused *core.ValueError
		if statements != nil || !errors.As(err, &refused) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("RequireKey(%v, %q, %q) = %v; want a *core.ValueError with %s", test.dialect, test.table, test.column, err, test.want)
		}
	}
}
