package servers

import (
	"database/sql"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// What the server reads is what was bound, or Bind refuses it, whatever the settings say of
// backslashes.
func FuzzLiteralsAreReadAsTheyWere(f *testing.F) {
	pools := map[string]*sql.DB{}
	open := func(name, driver, dsn string) {
		pool, err := sql.Open(driver, dsn)
		if err != nil {
			f.Fatalf("no pool for %s", name)
		}
		f.Cleanup(func() { _ = pool.Close() })
		pools[name] = pool
	}
	u, err := url.Parse(servertest.PostgreSQL(f))
	if err != nil {
		f.Fatal("the URL of PostgreSQL cannot be parsed")
	}
	for _, conforming := range []string{"on", "off"} {
		query := u.Query()
		query.Set("standard_conforming_strings", conforming)
		u.RawQuery = query.Encode()
		open("PostgreSQL, conforming strings "+conforming, "postgres", u.String())
	}
	mysqls := map[string]string{"MariaDB": servertest.MariaDB(f)}
	if os.Getenv("SNOWKEY_MYSQL_DSN") != "" { // otherwise it would skip the others
		mysqls["MySQL"] = servertest.MySQL(f)
	}
	for name, dsn := range mysqls {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		open(name, "mysql", dsn)
		open(name+", no escapes", "mysql", dsn+separator+"sql_mode="+url.QueryEscape("'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'"))
	}
	for _, s := range []string{"", "shop", "'", "''", `\`, `\'`, `\\'`, "a\x00b", "\xbf'", "\xbf\\'", "\u00fc", "?", "$1", "%s", "\x1b\n\r\t", "\x7f", `"`, "`", "--", "/*", ";", "E'"} {
		for _, n := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
			f.Add(s, n)
		}
	}
	f.Fuzz(func(t *testing.T, s string, n int64) {
		refused := strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r > '~' })
		for name, pool := range pools {
			d := dialect.PostgreSQL
			if !strings.HasPrefix(name, "PostgreSQL") {
				d = dialect.MySQL
			}
			text, args, err := sqlrow.New(pool, sqlrow.Config{Dialect: d}).Bind("SELECT ?, ?, ?", s, n, "end")
			if refused {
				if err == nil {
					t.Errorf("%s: Bind(%q) = %s; want an error", name, s, text)
				}
				continue
			}
			if err != nil || len(args) > 0 {
				t.Fatalf("%s: Bind(%q) = %d arguments, %v; want none, nil", name, s, len(args), err)
			}
			var (
				gotS, end string
				gotN      int64
			)
			if err := pool.QueryRowContext(t.Context(), text).Scan(&gotS, &gotN, &end); err != nil || gotS != s || gotN != n || end != "end" {
				t.Errorf("%s: %s = %q, %d, %q, %v; want %q, %d, end", name, text, gotS, gotN, end, err, s, n)
			}
		}
	})
}
