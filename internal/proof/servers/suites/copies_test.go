package servers

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A dump has what keysql writes in a column, an index and a view, and what the stores have given out: the
// copy reads its keys alike, and goes on where the original was.
func TestADumpKeepsKeysAndGoesOnWithTheNumbers(t *testing.T) {
	eachServer(t, func(t *testing.T, w way) {
		original, restored := w.copied(t)
		for _, table := range []string{"orders", "order_times", "snowkey_leases", "snowkey_leases_meta", "snowkey_counters", "snowkey_series", "snowkey_segments"} {
			query := "SELECT * FROM " + table
			got, want := linesOf(t, restored.admin, query), linesOf(t, original.admin, query)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("%s of the copy = %q; want %q", table, got, want)
			}
		}
		before, after := original.giveOut(t), restored.giveOut(t)
		if before != after || before.invoice != 2 || before.segment != 101 {
			t.Errorf("the copy gives out %+v; want what the original gives out after its first, %+v", after, before)
		}
	})
}

// copied returns a database with keys and numbers that were given out, and another one that was restored from
// its dump, by the programs of PostgreSQL's version or by MariaDB's.
func (w way) copied(t *testing.T) (original, restored leaseTarget) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dump")
	if w.dialect() == sqlstore.MySQL {
		original, restored = w.target(t), w.target(t)
		original.fillToCopy(t)
		command(t, "", "mariadb-dump", original.client(t, "--result-file="+file)...)
		command(t, file, "mariadb", restored.client(t)...)
		return original, restored
	}
	dsn, programs := servertest.StartPostgreSQL(t)
	at := func(dsn string) leaseTarget {
		g := leaseTarget{place: place{way: w, schema: "public", dsn: dsn}}
		g.admin = g.open(t)
		return g
	}
	original = at(dsn)
	original.fillToCopy(t)
	original.exec(t, "CREATE DATABASE restored")
	restored = at(inDatabase(t, dsn, "restored"))
	command(t, "", filepath.Join(programs, "pg_dump"), "--file="+file, dsn)
	command(t, file, filepath.Join(programs, "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", restored.dsn)
	return original, restored
}

// command runs a program, whose input is a file unless that is empty.
func command(t *testing.T, input, name string, args ...string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		servertest.Missing(t, "a program that copies databases is missing: ", err, "; apt-get install mariadb-client")
	}
	c := exec.CommandContext(t.Context(), program, args...)
	if input != "" {
		f, err := os.Open(input)
		must(t, err)
		defer func() { _ = f.Close() }()
		c.Stdin = f
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s = %v: %s", name, err, out)
	}
}

// client are the arguments by which MariaDB's programs reach the database of g.
func (g leaseTarget) client(t *testing.T, more ...string) []string {
	t.Helper()
	config, err := mysql.ParseDSN(g.dsn)
	must(t, err)
	host, port, _ := strings.Cut(config.Addr, ":")
	return append(more, "--protocol=tcp", "--host="+host, "--port="+port, "--user="+config.User, "--password="+config.Passwd, config.DBName)
}

// fillToCopy makes tables with keys around the greatest integer that a double has, and has the stores give
// out their first numbers.
func (g leaseTarget) fillToCopy(t *testing.T) {
	t.Helper()
	column, err := keysql.New(g.dialect(), core.Default(), "id")
	must(t, err)
	worker := "worker BIGINT GENERATED ALWAYS AS (" + column.Worker() + ") STORED"
	if g.server == "MySQL" { // which refuses what mariadb-dump writes for one
		worker = "worker BIGINT"
	}
	g.exec(t, "CREATE TABLE orders (id BIGINT PRIMARY KEY, "+worker+")", "CREATE INDEX orders_worker ON orders (worker)",
		"CREATE VIEW order_times AS SELECT id, "+column.Time()+" AS made, "+column.UUID()+" AS uuid FROM orders WHERE id < 1152921504606846976")
	if g.dialect() == sqlstore.PostgreSQL {
		g.exec(t, "CREATE INDEX orders_uuid ON orders (("+column.UUID()+"))")
	}
	for _, id := range []int64{1<<53 - 1, 1 << 53, 1<<53 + 1, int64(core.Default().Max(time.Now())), math.MaxInt64} {
		g.exec(t, fmt.Sprintf("INSERT INTO orders (id) VALUES (%d)", id))
	}
	s := g.segments(t, g.admin, "")
	must(t, s.CreateTables(t.Context()))
	must(t, s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1}))
	if first := g.giveOut(t); first.invoice != 1 || first.segment != 1 {
		t.Fatalf("first numbers = %+v; want 1", first)
	}
}

// givenOut are numbers of the three stores.
type givenOut struct{ epoch, invoice, segment int64 }

// giveOut claims the free worker number of a space, the only one, and takes the others.
func (g leaseTarget) giveOut(t *testing.T) (n givenOut) {
	t.Helper()
	leases, c := g.store(t, g.admin), newLease()
	c.Space.Workers = 1
	g.exec(t, "UPDATE snowkey_leases SET owner = '', reserved_until = 1")
	n.epoch = mustClaim(t, leases, c).Row.Epoch
	serials, err := sqlserial.New(g.admin, g.config(sqlserial.DefaultTable))
	must(t, err)
	must(t, serials.CreateTables(t.Context()))
	series := serial.Series{Name: "invoices", Digits: 6}
	must(t, serials.Define(t.Context(), series))
	n.invoice, err = serials.Take(t.Context(), series.Name, "", time.Now(), 1)
	must(t, err)
	r, err := g.segments(t, g.admin, "").Take(t.Context(), segment.Take{Tag: "orders"})
	must(t, err)
	n.segment = r.First
	return n
}
