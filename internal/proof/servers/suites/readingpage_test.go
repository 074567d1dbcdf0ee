package servers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// onPage returns the blocks of a page that the test runs, and the setting of the page.
func onPage(t *testing.T, name string) (setting string, blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/" + name)
	must(t, err)
	setting, all, err := markdown.BlocksOf(string(page), t.Name())
	must(t, err)
	for _, b := range all {
		blocks = append(blocks, b.Text)
	}
	return setting, blocks
}

// buildPage builds a program of a page's setting, with more imports and a main of statements, and returns its file.
func buildPage(t *testing.T, setting, imports, statements string) (program string) {
	t.Helper()
	folder := t.TempDir()
	file, program := filepath.Join(folder, "page.go"), filepath.Join(folder, "page")
	text := strings.Replace(setting, "package main\n", "package main\n\nimport (\n\"os\"\n"+imports+")\n", 1) + "\nfunc main() {\n" + statements + "}\n"
	must(t, os.WriteFile(file, []byte(text), 0o600))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("the page's program: %v\n%s", err, out)
	}
	return program
}

// runGo runs statements of a page's setting on PostgreSQL, and returns what they print.
func runGo(t *testing.T, setting, imports, dsn, statements string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), buildPage(t, setting, imports, statements), dsn).CombinedOutput()
	if err != nil {
		t.Fatalf("the page's program: %v\n%s", err, out)
	}
	return string(out)
}

// Three orders; the second is of Monday, 4 May 2026.
func TestThePageSelectsByTheKeys(t *testing.T) {
	setting, blocks := onPage(t, "reading.md")
	dsn, _ := servertest.StartPostgreSQL(t)
	orders := openSqlx(t, "pgx", dsn)
	execSqlx(t, orders, "CREATE TABLE orders (id BIGINT PRIMARY KEY, number TEXT)")
	execSqlx(t, orders, "INSERT INTO orders VALUES (176845278412799999, 'Sunday'), (177026472345612305, 'Monday'), (177207666278400000, 'Tuesday')")
	statements := `
	ctx = context.Background()
	gen, err := core.New(core.Config{Worker: core.StaticWorker(3)})
	if err != nil {
		log.Fatal(err)
	}
	db, err = gorm.Open(postgres.Open(os.Args[1]), &gorm.Config{})
	if err == nil {
		err = db.Use(gormplugin.New(gen))
	}
	if err == nil {
		sqldb, err = db.DB()
	}
	if err != nil {
		log.Fatal(err)
	}
	xdb = sqlx.NewDb(sqldb, "pgx")
	layout, last = core.Default(), 177026472345612305
	monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	_ = []any{feed.New, sql.Open, orderFeed, ctx} // used
`
	for _, b := range blocks {
		statements += "{\n" + strings.NewReplacer("id > ? ", "id > $1 ", "BETWEEN ? AND ?", "BETWEEN $1 AND $2").Replace(b) +
			"}\nfor _, o := range orders {\nfmt.Println(o.ID, o.Number)\n}\norders = nil\n"
	}
	const want = "2026-05-04 12:00:00 +0000 UTC 3 17\n" +
		"177026472345612305 Monday\n177026472345612305 Monday\n" +
		"177207666278400000 Tuesday\n177207666278400000 Tuesday\n"
	if got := runGo(t, setting, "\"gorm.io/driver/postgres\"\n", dsn, statements); got != want {
		t.Errorf("the page's program prints\n%s\nwant\n%s", got, want)
	}
}

func TestThePagePublishesWhatToWatch(t *testing.T) {
	setting, blocks := onPage(t, "logs.md")
	dsn, _ := servertest.StartPostgreSQL(t)
	statements := `
	db, err := sql.Open("pgx", os.Args[1])
	if err == nil {
		gen, err = snowkey.Open(context.Background(), db, snowkey.Config{})
	}
	if err != nil {
		log.Fatal(err)
	}
	worker = gen.Worker().(*lease.Lease)
` + strings.Join(blocks, "") + `
	fmt.Println(expvar.Get("snowkey"))
	_ = gen.Close(context.Background())
`
	imports := "\"context\"\n\"database/sql\"\n\"fmt\"\n\"log\"\n_ \"github.com/jackc/pgx/v5/stdlib\"\n\"github.com/snowkey/snowkey\"\n"
	got := runGo(t, setting, imports, dsn, statements)
	for _, want := range []string{`"ahead_seconds":`, `"reserved_seconds":5`, `"losses":0`} {
		if !strings.Contains(got, want) {
			t.Errorf("the page's program prints %s; want %s", got, want)
		}
	}
}
