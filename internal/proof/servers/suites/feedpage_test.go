package servers

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// startPage builds a program that runs statements of the page's setting, and starts it on a database. It
// returns what the program prints, line by line. The program ends with the test.
func startPage(t *testing.T, setting, driver, dsn, statements string) (next func() string) {
	t.Helper()
	imports := map[string]string{"pgx": "github.com/jackc/pgx/v5/stdlib", "sqlite": "modernc.org/sqlite"}
	program := buildPage(t, setting, fmt.Sprintf("_ %q\n", imports[driver]), "var err error\nctx = context.Background()\n"+
		"_ = []any{fmt.Print, log.Print, time.Now, sql.Open, core.Default, feed.New, gormplugin.New} // used\n"+
		"if xdb, err = sqlx.Connect(\""+driver+"\", os.Args[1]); err != nil {\nlog.Fatal(err)\n}\nsqldb = xdb.DB\n"+statements)
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
	cmd := exec.CommandContext(ctx, program, dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	return func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the page's program has ended (%v); want more lines", lines.Err())
		}
		return lines.Text()
	}
}

func pageKeys(t *testing.T, at time.Time, n int) (keys []types.Snowflake) {
	t.Helper()
	for i := range n {
		id, err := core.Default().Compose(core.Parts{Time: at, Worker: 3, Sequence: int64(i)})
		must(t, err)
		keys = append(keys, id)
	}
	return keys
}

func TestThePageReadsNewRowsAsTheyCome(t *testing.T) {
	setting, blocks := onPage(t, "reading.md")
	dsn, _ := servertest.StartPostgreSQL(t)
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	past := pageKeys(t, time.Now().Add(-time.Hour), 3)
	execSqlx(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d), (%d)", past[1], past[0]))
	next := startPage(t, setting, "pgx", dsn, blocks[0])
	key := func() string {
		for {
			if line := next(); !strings.HasPrefix(line, "behind by ") {
				return line
			}
		}
	}
	wait := func(want ...types.Snowflake) {
		t.Helper()
		for _, id := range want {
			if got := key(); got != id.String() {
				t.Fatalf("the page's program prints the key %s; want %d", got, id)
			}
		}
	}
	wait(past[0], past[1])
	_, err := db.Exec(fmt.Sprintf("INSERT INTO orders VALUES (%d)", past[2]))
	if err == nil {
		t.Error("INSERT of a key of an hour ago = nil; want it refused, as the page says")
	}

	var now []types.Snowflake
	var tx *sql.Tx
	for { // again if the machine has rested for longer than the slack of 5 s
		drawn := time.Now()
		now = pageKeys(t, drawn, 2)
		tx, err = db.DB.Begin()
		must(t, err)
		if _, err = tx.Exec(fmt.Sprintf("INSERT INTO orders VALUES (%d)", now[0])); err == nil {
			_, err = db.Exec(fmt.Sprintf("INSERT INTO orders VALUES (%d)", now[1]))
		}
		if err == nil {
			break
		}
		must(t, tx.Rollback())
		if age := time.Since(drawn); !strings.Contains(err.Error(), "below the horizon") || age < 5*time.Second {
			t.Fatalf("INSERT of keys that are %v old = %v; want them stored", age, err)
		}
	}
	defer func() { _ = tx.Rollback() }()
	for lag := time.Duration(0); lag < 8*time.Second; { // 5 s and the pause between two calls are the least
		behind, ok := strings.CutPrefix(next(), "behind by ")
		if !ok {
			t.Fatalf("the page's program prints the key %s while a transaction is open; want none", behind)
		}
		lag, err = time.ParseDuration(behind)
		must(t, err)
	}
	must(t, tx.Commit())
	wait(now...)
}

// The statements of the page have the placeholders of SQLite and MySQL.
func TestThePageReadsWholeRowsUpToTheHorizon(t *testing.T) {
	setting, blocks := onPage(t, "reading.md")
	file := filepath.Join(t.TempDir(), "orders.db")
	db := openSqlx(t, "sqlite", file)
	execSqlx(t, db, "CREATE TABLE orders (id INTEGER PRIMARY KEY, number TEXT NOT NULL)")
	var want []string
	for i, id := range slices.Concat(pageKeys(t, time.Now().Add(-time.Hour), 3), pageKeys(t, time.Now().Add(time.Hour), 1)) {
		execSqlx(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d, 'A-%d')", id, i))
		want = append(want, fmt.Sprintf("%d A-%d", id, i))
	}
	next := startPage(t, setting, "sqlite", file, fmt.Sprintf(`
	orderFeed, err = feed.New(feed.Config{DB: sqldb, Dialect: feed.SQLite, Table: "orders", Reader: "mail"})
	if err == nil {
		err = orderFeed.Install(ctx)
	}
	if err == nil {
		_, err = orderFeed.Horizon(ctx, 0) // a new reader, which does not begin at 0
	}
	if err != nil {
		log.Fatal(err)
	}
	last = %s
	%s
	for _, o := range orders {
		fmt.Println(o.ID, o.Number)
	}
	fmt.Println("end")
`, strings.Fields(want[0])[0], blocks[0]))
	for _, line := range []string{want[1], want[2], "end"} { // the first was read, the last is past the horizon
		if got := next(); got != line {
			t.Errorf("the page's program prints %q; want %q", got, line)
		}
	}
}
