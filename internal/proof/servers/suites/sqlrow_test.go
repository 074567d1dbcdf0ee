package servers

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

var errNoTag = errors.New("no such tag")

// A counter takes ranges of numbers from a row, as a store of segments does.
type counter struct {
	dialect dialect.Dialect
	rows    *sqlrow.DB
}

func newCounter(g leaseTarget, pool *sql.DB) counter {
	return counter{g.dialect, sqlrow.New(pool, sqlrow.Config{
		Dialect: g.dialect,
		Table:   "segments",
		Verdict: func(err error) bool { return errors.Is(err, errNoTag) },
		Warn:    func(context.Context, string, ...any) {},
		Now:     time.Now,
	})}
}

// create makes the table with one row, from which no number has been taken.
func (c counter) create(ctx context.Context) error {
	_, err := sqlrow.Do(ctx, c.rows, func(t *sqlrow.Tx) (struct{}, error) {
		_, err := t.Exec(ctx, sqlrow.CreateTable(c.dialect, sqlrow.Quote(c.dialect, "segments"), "tag VARCHAR(128) NOT NULL", "next BIGINT NOT NULL", "PRIMARY KEY (tag)"))
		if err == nil {
			_, err = t.Exec(ctx, "INSERT INTO "+sqlrow.Quote(c.dialect, "segments")+" (tag, next) VALUES ('orders', 1)")
		}
		return struct{}{}, err
	})
	return err
}

// take returns the first of count numbers that no other call gets.
func (c counter) take(ctx context.Context, tag string, count int64) (first int64, err error) {
	table := sqlrow.Quote(c.dialect, "segments")
	return sqlrow.Do(ctx, c.rows, func(t *sqlrow.Tx) (end int64, err error) {
		if c.dialect == dialect.MySQL {
			result, err := t.Exec(ctx, "UPDATE "+table+" SET next = LAST_INSERT_ID(next + ?) WHERE tag = ?", count, tag)
			if err != nil {
				return 0, err
			}
			if n, err := result.RowsAffected(); err != nil || n == 0 {
				return 0, errors.Join(err, errNoTag)
			}
			end, err = result.LastInsertId()
			return end - count, err
		}
		err = t.Returning(ctx, []any{&end}, c.dialect.Bind("UPDATE "+table+" SET next = next + ? WHERE tag = ? RETURNING next"), count, tag)
		if errors.Is(err, sql.ErrNoRows) {
			err = errNoTag
		}
		return end - count, err
	})
}

func TestRangesOfARowAreTakenOnceThoughCommitsAreLost(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		const takers, takes, count = 8, 20, 10
		connector, err := g.connect(g.dsn)
		if err != nil {
			t.Fatalf("no connector for %s", g.driver)
		}
		var commits atomic.Int64
		c := newCounter(g, g.pool(t, losingConnector{connector, func() bool { return commits.Add(1)%5 == 0 }}))
		if err := c.create(t.Context()); err != nil {
			t.Fatalf("create() = %v", err)
		}
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			taken = map[int64]bool{}
			lost  int
		)
		for range takers {
			wg.Go(func() {
				for range takes {
					first, err := c.take(t.Context(), "orders", count)
					mu.Lock()
					switch {
					case errors.Is(err, sqlrow.ErrCommit) && first == 0:
						lost++
					case err != nil:
						t.Errorf("take() = %d, %v; want a range, or an unknown outcome", first, err)
					case taken[first] || first%count != 1:
						t.Errorf("take() = %d; want the first number of a range that nobody has", first)
					}
					taken[first] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		delete(taken, 0)
		if want := int(commits.Load() / 5); len(taken) != takers*takes-lost || lost < want {
			t.Errorf("%d ranges taken and %d lost; want %d in all, %d lost", len(taken), lost, takers*takes, want)
		}
		// What was lost is taken nevertheless.
		first, err := newCounter(g, g.open(t)).take(t.Context(), "orders", count)
		if want := int64(takers*takes*count + 1); first != want || err != nil {
			t.Errorf("take() at the end = %d, %v; want %d", first, err, want)
		}
		if first, err := newCounter(g, g.open(t)).take(t.Context(), "invoices", count); first != 0 || !errors.Is(err, errNoTag) {
			t.Errorf("take() of a tag without a row = %d, %v; want errNoTag", first, err)
		}
	})
}

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
