package main

import (
	"cmp"
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/release/markdown"
	"github.com/snowkey/snowkey/types"
)

// The pages for people who have a database and no Go. Whatever they show is run, or the test
// fails: a new block of sh or sql needs no entry here, and a block of another language does.
var pages = []string{"operations.md", "errors.md", "logs.md", "reading.md"}

// A step is what a page shows to be run: a block of sh or sql, or code in a line that begins as
// one.
type step struct {
	page, section  string // the heading; what is below ### is of the ## above
	line           int
	language, text string
	shown          string   // the block of text after it: what it prints
	kinds          []string // the databases that it is for
}

var (
	inLine = regexp.MustCompile("`([^`]+)`")
	asStep = regexp.MustCompile(`^(snowkey|psql|mysql|sqlite3|fuser|SELECT|INSERT|UPDATE|DELETE|ALTER|DROP) `)
)

// inCode are the words of commands that are for one database alone.
var inCode = map[string]*regexp.Regexp{
	"PostgreSQL": regexp.MustCompile(`\b(postgresql|psql)\b`),
	"MySQL":      regexp.MustCompile(`\bmysql\b`),
	"MariaDB":    regexp.MustCompile(`\bmysql\b`),
	"SQLite":     regexp.MustCompile(`\b(sqlite3?|fuser)\b`),
}

// namedIn returns the databases that commands are for by their own words: all, if one names none.
func namedIn(commands string) (kinds []string) {
	all := slices.Collect(maps.Keys(inCode))
	for command := range strings.Lines(commands) {
		named := slices.DeleteFunc(slices.Clone(all), func(kind string) bool { return !inCode[kind].MatchString(command) })
		if len(named) == 0 {
			return all
		}
		kinds = append(kinds, named...)
	}
	return kinds
}

// on returns the step's text for a database. A line of sh that names others is left out.
func (s step) on(kind string) string {
	if s.language != "sh" {
		return s.text
	}
	var b strings.Builder
	for line := range strings.Lines(s.text) {
		if slices.Contains(namedIn(line), kind) {
			b.WriteString(line)
		}
	}
	return b.String()
}

const buildTheCommand = "CGO_ENABLED=0 go build -o snowkey ./cmd/snowkey\n"

// steps returns what a page shows to be run here. What nothing runs is an error.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := markdown.Blocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	number, next, skip := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		number++
		if next < len(blocks) && number == blocks[next].Line-1 { // its fence
			b := blocks[next]
			next++
			skip = b.Line + strings.Count(b.Text, "\n")
			s := step{page: page, section: section, line: b.Line, language: b.Language, text: b.Text}
			if next < len(blocks) && blocks[next].Language == "text" && blocks[next].Line == skip+3 {
				s.shown = blocks[next].Text
			}
			if s.kinds = b.On; s.kinds == nil {
				s.kinds = namedIn(b.Text)
			}
			switch {
			case b.RunBy != nil && !slices.Contains(b.RunBy, "TestWhatThePagesShowRuns"): // by another test
			case b.Language == "sh" || b.Language == "sql":
				all = append(all, s)
			case b.Language == "text" && len(all) > 0 && all[len(all)-1].shown == b.Text:
			case !b.Comment:
				t.Errorf("%s:%d: nothing runs this block of %q", page, b.Line, b.Language)
			}
		}
		if number <= skip {
			continue
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(heading)
		}
		for _, found := range inLine.FindAllStringSubmatch(line, -1) {
			if code := found[1]; asStep.MatchString(code) {
				s := step{page: page, section: section, line: number, language: "sql", text: code + ";\n", kinds: namedIn(code)}
				if code[0] >= 'a' {
					s.language, s.text = "sh", code+"\n"
				}
				all = append(all, s)
			}
		}
	}
	return all
}

// A pageShop is a database with orders and leases, as a section of a page finds it.
type pageShop struct {
	testDB
	kind, dir string
	env       string // of the clients
}

// orders are the times and workers of the shop's keys. The key of A-16 is the one on the pages.
var orders = map[string]core.Parts{
	"March":   {Time: time.Date(2026, 3, 10, 8, 0, 0, 0, time.UTC), Worker: 3},
	"Sunday":  {Time: time.Date(2026, 5, 3, 23, 59, 59, 999e6, time.UTC), Worker: 3, Sequence: 4095},
	"A-16":    {Time: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Worker: 3, Sequence: 17},
	"Tuesday": {Time: time.Date(2026, 5, 5, 0, 0, 0, 0, time.UTC), Worker: 3},
	"June":    {Time: time.Date(2026, 6, 10, 8, 0, 0, 0, time.UTC), Worker: 7},
}

// makeOrders makes the table, on PostgreSQL with partitions if it may have some.
func (s *pageShop) makeOrders(t *testing.T, partitions bool) {
	t.Helper()
	table, divide := "CREATE TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20))", partitions && s.kind == "PostgreSQL"
	if divide {
		table += " PARTITION BY RANGE (id)"
	}
	s.exec(t, table)
	if divide {
		s.sh(t, "snowkey partitions -apply -every month orders 2026-03 2026-07\n")
	}
	for number := range orders {
		s.order(t, number)
	}
	if partitions && !divide {
		s.sh(t, "snowkey partitions -apply -every month orders 2026-03 2026-07\n")
	}
}

// order inserts an order.
func (s *pageShop) order(t *testing.T, number string) {
	t.Helper()
	id, err := core.Default().Compose(orders[number])
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, '%s')", id, number))
}

func newPageShop(t *testing.T, kind, section string, steps []step) *pageShop {
	t.Helper()
	client := map[string]string{"PostgreSQL": "psql", "SQLite": "sqlite3"}[kind]
	if !has(t, cmp.Or(client, "mysql")) {
		t.Skip("its statements need it")
	}
	s := &pageShop{kind: kind, dir: t.TempDir()}
	where := ""
	if kind == "SQLite" {
		where = "sqlite:" + filepath.Join(s.dir, "shop.db")
		if err := os.WriteFile(filepath.Join(s.dir, "shop.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.testDB = openURL(t, where)
	} else {
		s.testDB = databases[kind](t)
		where = s.url
	}
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	env := []string{"HOME=" + s.dir, dbVariable + "=" + where,
		"PGHOST=" + u.Hostname(), "PGPORT=" + u.Port(), "PGUSER=" + u.User.Username(), "PGPASSWORD=" + password, "PGDATABASE=" + strings.TrimPrefix(u.Path, "/")}
	for _, v := range env {
		s.env += "export '" + v + "'\n"
	}
	s.env += "cd '" + s.dir + "'\n"
	options := fmt.Sprintf("[client]\nprotocol=tcp\nhost=%s\nport=%s\nuser=%s\npassword=%s\n[mysql]\ndatabase=%s\n", u.Hostname(), u.Port(), u.User.Username(), password, strings.TrimPrefix(u.Path, "/"))
	if err := os.WriteFile(filepath.Join(s.dir, ".my.cnf"), []byte(options), 0o600); err != nil {
		t.Fatal(err)
	}

	if slices.ContainsFunc(steps, func(s step) bool { return strings.Contains(s.text, "snowkey doctor ") }) {
		_ = newShop(t, s.testDB) // in which nothing is wrong
		return s
	}
	s.makeOrders(t, section == "Partitions by time")

	// The number 7 is held, or was by a process whose clock was wrong.
	store := leasePlace{url: where}.open(t)
	window := 10 * time.Minute
	if section == "A row far ahead" {
		window = 365 * 24 * time.Hour
	}
	_, err = store.Claim(t.Context(), leasestore.Claim{
		Space: leasestore.Space{Namespace: "shop", Workers: 1024, Layout: lease.Fingerprint(core.Default())},
		Only:  []int64{7}, Owner: rand.Text(), Nonce: rand.Text(), Holder: "orders-2",
		Window: leasestore.Millis(window.Milliseconds()), Now: leasestore.MillisOf(time.Now()), Skew: minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sh runs commands, and answers yes to what they ask.
func (s *pageShop) sh(t *testing.T, text string) (out string) {
	t.Helper()
	return s.do(t, "set -e -o pipefail\nexec < <(yes | head -c 65536)\n"+text, "")
}

// sql runs statements with the client of the database.
func (s *pageShop) sql(t *testing.T, text string) (out string) {
	t.Helper()
	client := map[string]string{"PostgreSQL": "psql -X -q -v ON_ERROR_STOP=1 -At", "SQLite": "sqlite3 -bail shop.db"}[s.kind]
	if client == "" {
		client = "mysql --batch --skip-column-names"
	}
	return s.do(t, client, text)
}

func (s *pageShop) do(t *testing.T, text, stdin string) (out string) {
	t.Helper()
	out, bad, code := snowkey(t, s.env+text, stdin)
	if code != 0 || strings.Contains(bad, "snowkey: ") {
		t.Errorf("%s%s= %s, %s, %d; want it done", text, stdin, out, bad, code)
	}
	return out
}

// answers are the sections that answer a question, whatever the database. Each function looks at
// the shop after a step.
var answers = map[string]func(t *testing.T, s *pageShop, text, out string){
	"The orders of last Monday": func(t *testing.T, s *pageShop, text, out string) {
		if strings.Contains(text, "SELECT") && (!strings.Contains(out, "A-16") || strings.Contains(out, "day")) {
			t.Errorf("%s= %s; want the order of Monday alone", text, out)
		}
	},
	"Drop March": func(t *testing.T, s *pageShop, text, _ string) {
		if left := s.text(t, "SELECT count(*) FROM orders"); left != "4" || s.has(t, "March") {
			t.Errorf("%s leaves %s orders; want those of other months", text, left)
		}
		if strings.Contains(text, "DELETE") && s.kind != "SQLite" { // again, in a partition
			s.exec(t, "DROP TABLE orders")
			s.makeOrders(t, true)
		}
	},
	"Insert a row by hand": func(t *testing.T, s *pageShop, text, out string) {
		if strings.Contains(text, "require-key") {
			if _, err := s.ExecContext(t.Context(), "INSERT INTO orders (id, number) VALUES (0, 'A-18')"); err == nil {
				t.Errorf("after %sa row without a key is inserted", text)
			}
		}
		if strings.Contains(text, "INSERT") {
			id, err := strconv.ParseInt(s.text(t, "SELECT max(id) FROM orders WHERE number = 'A-17'"), 10, 64)
			if p := core.Default().Parts(types.Snowflake(id)); err != nil || p.Worker != 1023 || time.Since(p.Time).Abs() > time.Hour {
				t.Errorf("%sinserts the key %d of %+v, %v; want one of now and worker 1023", text, id, p, err)
			}
		}
	},
	"Who holds worker 7?": func(t *testing.T, _ *pageShop, text, out string) {
		if !strings.Contains(text, "help") && !strings.Contains(out, " orders-2\n") {
			t.Errorf("%s= %s; want the name of the process", text, out)
		}
		if strings.Contains(text, " free ") && !strings.HasSuffix(out, "free: done\n") {
			t.Errorf("%s= %s; want the lease ended", text, out)
		}
	},
	"Is anything wrong?": func(t *testing.T, _ *pageShop, text, out string) {
		if !strings.Contains(text, "-json") && !strings.HasSuffix(out, "nothing is wrong with what was looked at\n") {
			t.Errorf("%s= %s; want that nothing is wrong", text, out)
		}
	},
}

// alsoSeen look at the shop in other sections.
var alsoSeen = map[string]func(t *testing.T, s *pageShop, text, out string){
	"In SQL": func(t *testing.T, s *pageShop, text, out string) {
		// The first statement of a block has all orders, and the last those of Monday.
		if strings.Contains(text, "SELECT") && strings.Count(out, "A-16") != strings.Count(out, "Sunday")+1 {
			t.Errorf("%s= %s; want the order of Monday, once more than the others", text, out)
		}
	},
	"JSON and files that SQL makes": func(t *testing.T, _ *pageShop, text, out string) {
		if strings.Contains(text, "SELECT") && !strings.Contains(out, `"177026472345612305"`) {
			t.Errorf("%s= %s; want the key of A-16 as text", text, out)
		}
	},
	"Restore from a backup": func(t *testing.T, s *pageShop, text, out string) {
		if strings.Contains(text, " fence") && (out != "fence: done\n" || s.text(t, "SELECT count(*) FROM snowkey_leases WHERE holder <> ''") != "0") {
			t.Errorf("%s= %s; want the leases ended", text, out)
		}
	},
	"A row far ahead": func(t *testing.T, s *pageShop, text, out string) {
		if strings.Contains(text, "SELECT") && out != "190374425395228672\n" {
			t.Errorf("%s= %s; want the key of number 7", text, out)
		}
		if strings.Contains(text, " free ") && !strings.HasSuffix(out, "free: done\n") {
			t.Errorf("%s= %s; want the number freed", text, out)
		}
	},
}

func (s *pageShop) has(t *testing.T, number string) bool {
	t.Helper()
	return s.text(t, "SELECT count(*) FROM orders WHERE number = '"+number+"'") != "0"
}

func TestWhatThePagesShowRuns(t *testing.T) {
	for _, page := range pages {
		sections := map[string][]step{}
		for _, s := range steps(t, page) {
			sections[s.section] = append(sections[s.section], s)
		}
		for section, steps := range sections {
			for kind := range inCode {
				if !slices.ContainsFunc(steps, func(s step) bool { return slices.Contains(s.kinds, kind) }) {
					continue
				}
				t.Run(section+"/"+kind, func(t *testing.T) {
					t.Parallel()
					shop := newPageShop(t, kind, section, steps)
					for _, s := range steps {
						if slices.Contains(s.kinds, kind) {
							shop.run(t, s)
						}
					}
				})
			}
		}
	}
}

// run runs a step, and compares what it prints with what the page shows.
func (s *pageShop) run(t *testing.T, step step) {
	text, do := step.on(s.kind), s.sh
	for word := range strings.FieldsSeq(text) {
		if slices.Contains([]string{"psql", "mysql", "sqlite3", "fuser"}, word) && !has(t, word) {
			return
		}
	}
	if step.language == "sql" {
		do = s.sql
	}
	out := do(t, text)
	if step.shown != "" && !alike(out, step.shown) {
		t.Errorf("%s:%d: %s= %s; want %s", step.page, step.line, text, out, step.shown)
	}
	if step.language == "sql" && strings.Contains(text, "SELECT") && out == "" {
		t.Errorf("%s:%d: %s= nothing; want rows", step.page, step.line, text)
	}
	for _, looks := range []map[string]func(*testing.T, *pageShop, string, string){answers, alsoSeen} {
		if look := looks[step.section]; look != nil {
			look(t, s, text, out)
		}
	}
	if t.Failed() {
		t.Fatalf("%s:%d: so far", step.page, step.line)
	}
}

// alike compares the words of what a command prints with those of the page. A time of now, and
// how long something lasts from now on, are other ones on the page.
func alike(out, page string) bool {
	got, want := strings.Fields(out), strings.Fields(page)
	return slices.EqualFunc(got, want, func(got, want string) bool {
		at, err := time.Parse(time.RFC3339, got)
		_, bad := time.Parse(time.RFC3339, want)
		left, unclear := time.ParseDuration(got)
		_, worse := time.ParseDuration(want)
		return got == want ||
			err == nil && bad == nil && time.Until(at).Abs() < time.Hour ||
			unclear == nil && worse == nil && left < time.Hour
	})
}

func TestEachQuestionIsAnsweredForEachDatabase(t *testing.T) {
	found := map[string][]string{}
	for _, page := range pages {
		for _, s := range steps(t, page) {
			found[s.section] = append(found[s.section], s.kinds...)
		}
	}
	for section := range answers {
		for kind := range inCode {
			if !slices.Contains(found[section], kind) {
				t.Errorf("under %q nothing is for %s", section, kind)
			}
		}
	}
	for section := range alsoSeen {
		if found[section] == nil {
			t.Errorf("nothing is run under %q", section)
		}
	}
}

var pagesBuild = flag.Bool("pages.build", false, "build the command as the page says: some ten seconds after each change, and minutes without a build cache")

// Without the flag, go only says what it would do, and finds all that the command imports.
func TestTheCommandIsBuiltAsThePageSays(t *testing.T) {
	program := filepath.Join(t.TempDir(), "snowkey")
	script := strings.Replace(buildTheCommand, "-o snowkey", "-o "+program, 1) // and not into the tree
	if *pagesBuild {
		script += program + " decode 177026472345612305"
	} else {
		script = strings.Replace(script, "go build", "go build -n", 1)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if want := map[bool]string{true: "2026-05-04T12:00:00.000Z", false: program}[*pagesBuild]; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%s= %v\n%s", buildTheCommand, err, out)
	}
}
