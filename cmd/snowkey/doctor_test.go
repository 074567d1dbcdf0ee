package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

// A shop is a database in which nothing is wrong: orders and lines with keys of a generator that has
// a lease, tickets with numbers of segments, and invoices with serial numbers.
type shop struct {
	testDB
	namespace string
	keys      *core.Generator
	leases    *sqllease.Store
	lease     *lease.Lease
	counters  *sqlserial.Store
	invoices  serial.Series
}

const shopColumns = "orders.id items.id segment:tickets=tickets.id serial:invoices=invoices.number"

func newShop(t *testing.T, d testDB) *shop {
	t.Helper()
	s := &shop{testDB: d, namespace: namespace(t), invoices: serial.Series{Name: "invoices", Prefix: "INV-", Period: serial.Yearly, Separator: "-", Digits: 5}}
	id := "id BIGINT PRIMARY KEY"
	if d.dialect == keysql.SQLite {
		id = "id INTEGER PRIMARY KEY"
	}
	d.exec(t, "CREATE TABLE orders ("+id+", number VARCHAR(20))", "CREATE TABLE items ("+id+", order_id BIGINT NOT NULL)",
		"CREATE TABLE tickets ("+id+")", "CREATE TABLE invoices ("+id+", number VARCHAR(40))")
	o := &options{}
	store, err := sqllease.New(d.DB, o.store(d.dialect))
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.leases = store
	s.lease, err = lease.Acquire(t.Context(), store, lease.Config{Namespace: s.namespace, Holder: "web 1", Logger: silent})
	if err == nil {
		s.keys, err = core.New(core.Config{Worker: s.lease})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.keys.Close(context.Background()) })
	for range 3 {
		order := s.next(t)
		d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 'A')", order), fmt.Sprintf("INSERT INTO items VALUES (%d, %d)", s.next(t), order))
	}
	if _, bad, code := d.on(t, "snowkey segments -yes create tickets", ""); code != 0 {
		t.Fatal(bad)
	}
	if _, bad, code := d.on(t, "snowkey segments -yes raise tickets 100", ""); code != 0 {
		t.Fatal(bad)
	}
	d.exec(t, "INSERT INTO tickets VALUES (100)")
	if s.counters, err = sqlserial.New(d.DB, o.store(d.dialect)); err == nil {
		err = s.counters.CreateTables(t.Context())
	}
	if err == nil {
		err = s.counters.Define(t.Context(), s.invoices)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s.invoice(t, i)
	}
	return s
}

func (s *shop) next(t *testing.T) types.Snowflake {
	t.Helper()
	id, err := s.keys.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *shop) invoice(t *testing.T, id int) {
	t.Helper()
	tx, err := s.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.counters.NextIn(t.Context(), tx, s.invoices, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
	if err == nil {
		_, err = tx.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO invoices VALUES (%d, '%s')", id+1, n.Text))
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// examine runs doctor, and returns what it finds but for the clock of the kernel.
func (s *shop) examine(t *testing.T, args string) (findings []diagnosis, code int) {
	t.Helper()
	out, bad, code := s.on(t, "snowkey doctor -json "+args, "")
	if bad != "" {
		t.Errorf("doctor %s writes %q to standard error", args, bad)
	}
	for line := range strings.Lines(out) {
		var f diagnosis
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("doctor %s: %q is no JSON: %v", args, line, err)
		}
		if f.Where != "clock" || f.Severity != "note" {
			findings = append(findings, f)
		}
	}
	return findings, code
}

// A diagnosis is a line of JSON.
type diagnosis struct{ Severity, Where, Reason, Mend string }

// wants examines, and compares the exit code and one of the findings.
func (s *shop) wants(t *testing.T, args string, code int, severity, where, reason, mend string) {
	t.Helper()
	found, got := s.examine(t, args)
	for _, f := range found {
		if f.Severity == severity && strings.HasPrefix(f.Where, where) && strings.Contains(f.Reason, reason) && strings.Contains(f.Mend, mend) && got == code {
			return
		}
	}
	t.Errorf("doctor %s = %d with\n%+v\nwant %d with %s of %s: %s\n%s", args, got, found, code, severity, where, reason, mend)
}

// well examines, and wants nothing but notes.
func (s *shop) well(t *testing.T, args string) {
	t.Helper()
	if found, code := s.examine(t, args); code != 0 {
		t.Errorf("doctor %s = %d, %+v; want 0", args, code, found)
	}
}

func TestDoctorFindsNothingInAWellShop(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		s := newShop(t, d)
		s.well(t, shopColumns)
		s.well(t, "-full "+shopColumns)
		out, bad, code := s.on(t, "snowkey doctor "+shopColumns, "")
		if bad != "" || code != 0 || !strings.HasSuffix(out, "nothing is wrong with what was looked at\n") {
			t.Errorf("doctor = %q, %q, %d; want that nothing is wrong", out, bad, code)
		}
		s.wants(t, "orders.id "+s.next(t).String(), 0, "note", "key ", "the number was leased by web 1 in namespace "+s.namespace, "1. the same row inserted twice")
	})
}

func TestDoctorFindsWhatIsWrongUntilItIsMended(t *testing.T) {
	l := core.Default()
	key := func(at time.Time, worker int64) types.Snowflake {
		id, err := l.Compose(core.Parts{Time: at, Worker: worker, Sequence: 3})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	onDatabases(t, func(t *testing.T, d testDB) {
		s := newShop(t, d)
		holds := s.lease.Status().Worker
		other, ended := (holds+1)%1024, (holds+2)%1024
		if l, err := lease.Acquire(t.Context(), s.leases, lease.Config{Namespace: s.namespace, Workers: []int64{ended}, Holder: "web 3", Logger: silent}); err != nil || l.Close(t.Context()) != nil {
			t.Fatal(err)
		}
		now := time.Now()
		until := s.text(t, fmt.Sprintf("SELECT reserved_until FROM snowkey_leases WHERE worker = %d", other))
		type wrong struct {
			name, do, undo string
			args           string
			code           int
			severity       string
			reason, mend   string
		}
		insert := func(id types.Snowflake) string { return fmt.Sprintf("INSERT INTO orders VALUES (%d, 'X')", id) }
		const undo = "DELETE FROM orders WHERE number = 'X'"
		tests := []wrong{
			{"below zero", insert(-5), undo, "orders.id", 2, "error", "there is the key -5", "WHERE"},
			{"zero", insert(0), undo, "orders.id", 2, "error", "there is the key 0", "WHERE"},
			{"counted", insert(7), undo, "orders.id", 0, "note", "from 7 on that were counted", "stay valid"},
			{"all counted", "CREATE TABLE odd (id BIGINT PRIMARY KEY)", "", "odd.id", 0, "", "", ""},
			{"all counted", "INSERT INTO odd VALUES (7)", "DROP TABLE odd", "odd.id", 1, "warning", "its keys, up to 7, were counted", "A program stores rows without a key"},
			{"after the lease", insert(key(now.Add(50*time.Second), ended)), undo, "orders.id", 1, "warning", fmt.Sprintf("of worker %d of datacenter 0, which no lease had", ended), "the last one of web 3"},
			{"future", insert(key(now.Add(time.Hour), holds)), undo, "orders.id", 2, "error", "is in the future", "a clock was wrong"},
			{"Twitter", insert(core.Twitter().Min(now)), undo, "orders.id", 2, "error", "is in the future", "would fit another layout, twitter"},
			{"nobody's worker", insert(key(now.Add(-time.Second), other)), undo, "orders.id", 1, "warning", "1 keys, the last of them ", fmt.Sprintf("-namespace %s -datacenter 0 -reason 'who has it' retire %d", s.namespace, other)},
			{"before the lease", insert(key(now.Add(-2*time.Hour), holds)), undo, "orders.id", 1, "warning", fmt.Sprintf("of worker %d of datacenter 0, which no lease had", holds), "the last one of web 1"},
			{"text", "CREATE TABLE odd (id VARCHAR(20) PRIMARY KEY)", "DROP TABLE odd", "odd.id", 2, "error", "column is of the wrong type", ""},
			{"counting", map[keysql.Dialect]string{
				keysql.PostgreSQL: "CREATE TABLE odd (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)",
				keysql.MySQL:      "CREATE TABLE odd (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
				keysql.SQLite:     "CREATE TABLE odd (id INTEGER PRIMARY KEY AUTOINCREMENT)",
			}[d.dialect], "DROP TABLE odd", "odd.id", 1, "warning", "database counts as well", ""},
			{"no table", "", "", "nowhere.id", 2, "error", "table is missing", "Is the name right"},
			{"no column", "", "", "orders.nothing", 2, "error", "column is missing", "Is the name right"},
			{"segment behind", "INSERT INTO tickets VALUES (5000)", "", "segment:tickets=tickets.id", 2, "error", "will give numbers up to it again", "snowkey segments move tickets tickets.id"},
			{"no tag", "", "", "segment:nobody=tickets.id", 2, "error", "could not be looked at", ""},
			{"number lost", "UPDATE invoices SET number = NULL WHERE id = 2", "UPDATE invoices SET number = 'INV-2026-00002' WHERE id = 2", "serial:invoices=invoices.number", 1, "warning", "the period 2026 of the series invoices are missing: 2", "Auditors"},
			{"number twice", "INSERT INTO invoices VALUES (9, 'INV-2026-00003')", "DELETE FROM invoices WHERE id = 9", "serial:invoices=invoices.number", 2, "error", "are repeated: 3", "unique index"},
			{"number of nobody", "INSERT INTO invoices VALUES (9, 'INV-2026-00004')", "", "serial:invoices=invoices.number", 2, "error", "are foreign: 4", "raise invoices 2026 4"},
			{"text of nobody", "INSERT INTO invoices VALUES (10, 'A-17')", "DELETE FROM invoices WHERE id = 10", "serial:invoices=invoices.number", 1, "warning", `1 texts, such as "A-17"`, ""},
			{"no series", "", "", "serial:nobody=invoices.number", 2, "error", "could not be looked at", ""},
			{"another layout", "", "", "-layout twitter", 2, "error", "their layout is not that of the flags, but epoch", ""},
			{"row ahead", fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d WHERE worker = %d", now.Add(48*time.Hour).UnixMilli(), other),
				fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %s WHERE worker = %d", until, other), "", 2, "error", fmt.Sprintf("worker %d is reserved until", other), fmt.Sprintf("-above KEY free %d", other)},
		}
		if d.dialect != keysql.SQLite {
			tests = append(tests, wrong{"narrow", "CREATE TABLE odd (id INT PRIMARY KEY)", "DROP TABLE odd", "odd.id", 2, "error", "column is too narrow", "bigint"})
		}
		if d.dialect == keysql.MySQL {
			tests = append(tests, wrong{"beyond 63 bits", "CREATE TABLE odd (id BIGINT UNSIGNED PRIMARY KEY)", "", "odd.id", 0, "", "", ""},
				wrong{"beyond 63 bits", "INSERT INTO odd VALUES (18446744073709551615)", "DROP TABLE odd", "odd.id", 2, "error", `its smallest value is "18446744073709551615", which is no key`, ""})
		}
		for _, test := range tests {
			if test.do != "" {
				d.exec(t, test.do)
			}
			if test.severity != "" {
				where, _, _ := strings.Cut(test.args, "=")
				if strings.Contains(where, ":") {
					_, where, _ = strings.Cut(test.args, "=")
				} else if !strings.Contains(where, ".") {
					where = "leases"
				}
				s.wants(t, test.args, test.code, test.severity, where, test.reason, test.mend)
			}
			switch {
			case test.undo != "":
				d.exec(t, test.undo)
			case strings.HasPrefix(test.mend, "snowkey "):
				if _, bad, code := d.on(t, strings.Replace(test.mend, " move", " -yes move", 1), ""); code != 0 {
					t.Fatal(test.mend, bad)
				}
			case strings.HasPrefix(test.mend, "raise "):
				if _, bad, code := d.on(t, "snowkey serials -yes -reason paper "+test.mend, ""); code != 0 {
					t.Fatal(test.mend, bad)
				}
			}
			if test.undo != "" || strings.Contains(test.mend, "move") {
				if s.well(t, shopColumns); t.Failed() {
					t.Fatalf("after %s", test.name)
				}
			}
		}
		d.exec(t, "DROP TABLE snowkey_leases_past")
		s.wants(t, "", 1, "warning", "leases", "the table of past holders is missing", "CreateTables")
	})
}

func TestDoctorLooksAtAllKeysWithFull(t *testing.T) {
	s := newShop(t, databases["SQLite"](t))
	parts := core.Default().Parts(s.next(t))
	parts.Time, parts.Worker = parts.Time.Add(-time.Millisecond), (parts.Worker+1)%1024 // before all that follow
	stranger, err := core.Default().Compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, "INSERT INTO orders SELECT max(id)+1, 'B' FROM orders", fmt.Sprintf("INSERT INTO orders VALUES (%d, 'X')", stranger))
	ids := make([]types.Snowflake, 2*newest-2) // no key is looked at twice where pages meet
	if err := s.keys.Fill(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = fmt.Sprintf("(%d, 'A')", id)
	}
	s.exec(t, "INSERT INTO orders VALUES "+strings.Join(rows, ","))
	s.well(t, "orders.id")
	s.wants(t, "-full orders.id", 1, "warning", "orders.id", "1 keys, the last of them "+stranger.String(), "retire")
}

func TestDoctorSaysWhoseADuplicateIs(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		s := newShop(t, d)
		id := s.next(t)
		d.exec(t, "CREATE TABLE copies (id BIGINT)", fmt.Sprintf("INSERT INTO copies VALUES (%d), (%[1]d)", id))
		s.wants(t, "copies.id "+id.String(), 2, "error", "key "+id.String(), "it is in 2 rows of copies.id", "Give all but one a new key")
		s.wants(t, "copies.id "+id.Base62(), 2, "note", "key "+id.String(), "leased by web 1", "2. a second program with this worker number fixed")

		parts := core.Default().Parts(id)
		for at, want := range map[core.Parts]string{
			{Time: parts.Time, Worker: (parts.Worker + 1) % 1024}:    "1. a second program with this worker number fixed",
			{Time: parts.Time.Add(-time.Hour), Worker: parts.Worker}: "3. a store that was restored",
		} {
			id, err := core.Default().Compose(at)
			if err != nil {
				t.Fatal(err)
			}
			s.wants(t, id.String(), 0, "note", "key", "no lease had the number then", want)
		}
		s.wants(t, "9223372036854775807 -bits 40/5/5/12 -epoch 2020-01-01T00:00:00Z", 2, "error", "key", "it is not a key of the layout", "")

		// A second namespace, which knows nothing of the first.
		store, err := sqllease.New(d.DB, (&options{}).store(d.dialect))
		if err != nil {
			t.Fatal(err)
		}
		twin, err := lease.Acquire(t.Context(), store, lease.Config{Namespace: namespace(t), Workers: []int64{parts.Worker}, Holder: "web 2", Logger: silent})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = twin.Close(context.Background()) })
		s.wants(t, s.next(t).String(), 0, "note", "key", "leased by web 2 in namespace", "1. the claims above, which overlap")
	})
}

func TestDoctorKnowsWhenNumbersAndYearsEnd(t *testing.T) {
	d := databases["SQLite"](t)
	d.exec(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	s := &shop{testDB: d}
	s.wants(t, "", 0, "note", "leases", "there are none in", "-leases names that store")
	s.wants(t, "-bits 41/5/5/12 -epoch 1960-01-01T00:00:00Z", 1, "warning", "layout", "its time bits end at 2029-", "Plan a new layout")
	s.wants(t, "-bits 41/5/5/12 -epoch 1950-01-01T00:00:00Z", 2, "error", "layout", "its time bits end at 2019-", "Plan a new layout")

	elsewhere := leasePlaces["SQLite"](t)
	elsewhere.table = ""
	store, name := elsewhere.open(t), namespace(t)
	for worker := range int64(7) {
		hold(t, store, name, worker, "web")
	}
	s.wants(t, "-leases "+elsewhere.url, 1, "warning", "leases of "+name, "7 of 8 worker numbers are in use", "run fewer processes")

	id, err := eight.Compose(core.Parts{Time: time.Now(), Datacenter: 3, Worker: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d)", id))
	s.wants(t, "-leases "+elsewhere.url+" orders.id", 1, "warning", "orders.id", "of worker 1 of datacenter 3, which no lease had", "No program with a lease in this store has the datacenter")

	second := namespace(t)
	l, err := lease.Acquire(t.Context(), store, lease.Config{Namespace: second, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	s.wants(t, "-leases "+elsewhere.url, 1, "note", "leases", "there are several layouts", "-namespace or -layout")
	s.well(t, "-leases "+elsewhere.url+" -namespace "+second)
}

// A doctor needs no right to write.
func TestDoctorNeedsNoRightToWrite(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		s := newShop(t, d)
		name := "reader_" + strings.ToLower(rand.Text()[:10])
		reader := *d.URL
		if d.dialect == keysql.PostgreSQL {
			d.exec(t, "CREATE ROLE "+name+" LOGIN PASSWORD 'secret'", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+name)
			t.Cleanup(func() { _, _ = d.DB.Exec("DROP OWNED BY " + name); _, _ = d.DB.Exec("DROP ROLE " + name) })
		} else {
			d.exec(t, "CREATE USER '"+name+"'@'%' IDENTIFIED BY 'secret'", "GRANT SELECT, LOCK TABLES ON "+strings.TrimPrefix(d.Path, "/")+".* TO '"+name+"'@'%'")
			t.Cleanup(func() { _, _ = d.DB.Exec("DROP USER '" + name + "'@'%'") })
		}
		reader.User = url.UserPassword(name, "secret")
		s.testDB = openURL(t, reader.String())
		if _, err := s.ExecContext(t.Context(), "DELETE FROM orders"); err == nil {
			t.Fatal("the reader may write")
		}
		s.well(t, shopColumns+" "+s.next(t).String())
	}, "PostgreSQL", "MariaDB", "MySQL")
}

func TestDoctorRefusesABadCommandLine(t *testing.T) {
	d := databases["SQLite"](t)
	for args, want := range map[string]string{
		"orders":                             "want a column such as orders.id",
		"'orders.id; DROP TABLE orders'":     "want a column such as orders.id",
		"segment:=orders.id":                 "want a column such as orders.id",
		"serial:invoices=":                   "want a column such as orders.id",
		"mysql://root:secret@db/shop":        "doctor: an address among the columns: -db names",
		"-namespace nobody -leases " + d.url: "no leases are there",
		"-layout nobody":                     "want one of",
		"-bits 41/5/5":                       "want",
		"-db oracle://x":                     "is no SQL database",
		"-leases mongodb://x":                "keeps no leases",
		"-table nobody_leases":               "no leases are there",
	} {
		out, bad, code := d.on(t, "snowkey doctor "+args, "")
		if code == 0 || out != "" || !strings.Contains(bad, want) {
			t.Errorf("doctor %s = %q, %q, %d; want %q", args, out, bad, code, want)
		}
	}
	if _, bad, code := snowkey(t, "unset "+dbVariable+"\nsnowkey doctor orders.id", ""); code != 2 || !strings.Contains(bad, "no database") {
		t.Errorf("doctor without a database = %q, %d; want 2", bad, code)
	}
	if out, bad, code := d.on(t, "snowkey doctor >/dev/full", ""); code == 0 || !strings.Contains(bad, "no space left") {
		t.Errorf("doctor without output = %q, %q, %d; want the error of the output", out, bad, code)
	}
}

func TestClocksAreJudgedByWhatIsCertain(t *testing.T) {
	for _, test := range []struct {
		apart, within time.Duration
		want          severity
		certain       time.Duration
	}{
		{0, time.Second, note, 0},
		{time.Second, 0, note, time.Second},
		{1500 * time.Millisecond, time.Second, note, 500 * time.Millisecond},
		{-2 * time.Second, 0, warning, -2 * time.Second},
		{5 * time.Second, 0, warning, 5 * time.Second},
		{6 * time.Second, time.Second / 2, sick, 5500 * time.Millisecond},
		{-time.Hour, time.Minute, sick, -59 * time.Minute},
	} {
		if got, certain := judge(test.apart, test.within); got != test.want || certain != test.certain {
			t.Errorf("judge(%v, %v) = %v, %v; want %v, %v", test.apart, test.within, got, certain, test.want, test.certain)
		}
	}
}

func TestDoctorFindsKeysThatNoIndexKeepsApart(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		key := core.Default().Min(time.Now().Add(-time.Hour))
		type table struct {
			make string
			code int
			want string
		}
		tables := map[string]table{
			"keyed":     {"id BIGINT NOT NULL PRIMARY KEY, n INT", 0, ""},
			"indexed":   {"id BIGINT NOT NULL UNIQUE, n INT", 0, ""},
			"composite": {"id BIGINT NOT NULL, n INT NOT NULL, PRIMARY KEY (id, n)", 1, "no unique index of the column alone"},
			"bare":      {"id BIGINT NOT NULL, n INT", 1, "no unique index of the column alone"},
		}
		if d.dialect != keysql.MySQL { // which has no indexes of some rows
			tables["partial"] = table{"id BIGINT NOT NULL, n INT); CREATE UNIQUE INDEX ids ON partial (id) WHERE (n < 0", 1, "no unique index of the column alone"}
		}
		for table, c := range tables {
			d.exec(t, "CREATE TABLE "+table+" ("+c.make+")", fmt.Sprintf("INSERT INTO %s VALUES (%d, 1), (%d, 2)", table, key, key+1))
			if out, bad, code := d.on(t, "snowkey doctor "+table+".id", ""); strings.Contains(out, "no unique index") != (c.want != "") || code < c.code {
				t.Errorf("doctor of the table %s = %s, %s, %d; want %q and %d", table, out, bad, code, c.want, c.code)
			}
			if c.want == "" {
				continue
			}
			d.exec(t, fmt.Sprintf("INSERT INTO %s VALUES (%d, 3), (%d, 4)", table, key, key+1))
			if out, bad, code := d.on(t, "snowkey doctor "+table+".id", ""); code != 2 || !strings.Contains(out, "2 keys are those of several rows each") {
				t.Errorf("doctor of the table %s, which has each key twice = %s, %s, %d; want 2", table, out, bad, code)
			}
			if d.dialect == keysql.PostgreSQL { // which keeps the index that could not be built
				if _, err := d.ExecContext(t.Context(), "CREATE UNIQUE INDEX CONCURRENTLY broken_"+table+" ON "+table+" (id)"); err == nil {
					t.Fatal("an index of keys that repeat was built")
				}
				if out, bad, code := d.on(t, "snowkey doctor "+table+".id", ""); code != 2 || !strings.Contains(out, "2 keys are those of several rows each") {
					t.Errorf("doctor of the table %s with an index that is not valid = %s, %s, %d; want 2", table, out, bad, code)
				}
			}
		}
	})
}

func TestDoctorFindsTheKeyOfATable(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		d.exec(t, "CREATE TABLE authors (author BIGINT NOT NULL PRIMARY KEY)", "INSERT INTO authors VALUES (-5)",
			"CREATE TABLE pairs (a BIGINT NOT NULL, b BIGINT NOT NULL, PRIMARY KEY (a, b))")
		if out, bad, code := d.on(t, "snowkey doctor authors", ""); code != 2 || !strings.Contains(out, "authors.author: there is the key -5") {
			t.Errorf("doctor authors = %s, %s, %d; want what is wrong with authors.author", out, bad, code)
		}
		for table, columns := range map[string]string{"pairs": "2 columns", "absent": "0 columns"} {
			if out, bad, code := d.on(t, "snowkey doctor "+table, ""); code != 2 || out != "" || !strings.Contains(bad, columns) || !strings.Contains(bad, table+".id") {
				t.Errorf("doctor %s = %s, %s, %d; want a table with one column as its key", table, out, bad, code)
			}
		}
	})
}

// Before a program moves, all keys and what refers to them have to be found, whatever their names
// are. The statements are run as they are printed, the first finding at a time.
func TestDoctorFindsEveryNarrowKeyAndWhatRefersToIt(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		key, small := "INT PRIMARY KEY", "SMALLINT"
		switch d.dialect {
		case keysql.PostgreSQL:
			key = "SERIAL PRIMARY KEY"
		case keysql.MySQL:
			key, small = "SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY", "SMALLINT UNSIGNED"
		case keysql.SQLite:
			key, small = "INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER"
		}
		d.exec(t, "CREATE TABLE groups_ (n "+key+")", "CREATE TABLE faces (id BIGINT PRIMARY KEY, belongs_to "+small+", seen INT, FOREIGN KEY (belongs_to) REFERENCES groups_ (n))",
			"CREATE TABLE names (name VARCHAR(20) PRIMARY KEY, size INT)",
			"CREATE TABLE boxes (shelf INT, id INT, line INT, PRIMARY KEY (shelf, id, line))", "CREATE TABLE lots (shelf INT, n INT, PRIMARY KEY (shelf, n))",
			"CREATE TABLE parts (id BIGINT PRIMARY KEY, place INT, parent INT, CONSTRAINT of_lot FOREIGN KEY (place, parent) REFERENCES lots (shelf, n))",
			"CREATE TABLE visits (group_id "+small+" NOT NULL DEFAULT 1, "+d.dialect.Quote("visitorId")+" INT, grid INT, big_id BIGINT, PRIMARY KEY (group_id, grid))", "INSERT INTO visits VALUES (7, 8, 9, 10)", "INSERT INTO groups_ (n) VALUES (7)", "INSERT INTO faces VALUES (1, 7, 2)")
		found := map[string]bool{}
		for range 10 {
			out, bad, code := d.on(t, "snowkey doctor -json -all", "")
			if bad != "" {
				t.Fatal(bad)
			}
			var statements string
			for line := range strings.Lines(out) {
				var f diagnosis
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					t.Fatal(err)
				}
				if f.Severity != "note" || strings.HasPrefix(f.Where, "tables") {
					found[f.Where+": "+f.Reason] = true
				}
				if strings.Contains(f.Where, "named like") && f.Severity != "warning" {
					t.Errorf("doctor -all = %s; want a warning, because the name may mislead", line)
				}
				if _, sql, ok := strings.Cut(f.Mend, "\n  "); ok && statements == "" && f.Severity != "note" {
					statements = sql
				}
			}
			if statements == "" {
				if code != 0 && d.dialect != keysql.SQLite {
					t.Errorf("doctor -all = %d with %s; want no error after its statements were run", code, out)
				}
				break
			}
			conn, err := d.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for statement := range strings.SplitSeq(statements, "\n  ") {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			_ = conn.Close()
		}
		text := fmt.Sprint(found)
		want := []string{"tables: primary keys that are one integer: 3; columns that refer to one: 3", "groups_.n: database counts as well"}
		if d.dialect != keysql.SQLite { // whose INTEGER has 64 bits
			want = append(want, "faces.belongs_to, which refers to groups_.n: column is too narrow", "groups_.n: column is too narrow",
				"visits.group_id, which is named like a reference: column is too narrow", "columns that refer to one: 3; narrow columns named so: ",
				"boxes.id, which is part of a primary key: column is too narrow", "lots.n, which is part of a primary key: column is too narrow", "parts.parent, which refers to lots.n: column is too narrow")
		}
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("doctor -all has found %s; want %q", text, part)
			}
		}
		for _, part := range []string{"seen", "size", "grid", "big_id", "boxes.line", "boxes.shelf"} {
			if strings.Contains(text, part) {
				t.Errorf("doctor -all has found %s; want nothing of the column %s", text, part)
			}
		}
		if d.dialect != keysql.SQLite {
			d.exec(t, "INSERT INTO groups_ VALUES (312345678901234567)", "INSERT INTO faces VALUES (312345678901234568, 312345678901234567, 1)",
				"INSERT INTO visits VALUES (312345678901234567, 312345678901234568, 1, 1)", "INSERT INTO visits (grid) VALUES (2)",
				"INSERT INTO boxes VALUES (1, 312345678901234567, 1)", "INSERT INTO lots VALUES (312345678901234567, 312345678901234568)", "INSERT INTO parts VALUES (312345678901234569, 312345678901234567, 312345678901234568)")
		}
	})
}

type (
	summary struct {
		ID    uint `gorm:"autoIncrement:false;snowflake"`
		Items []summaryItem
		About summaryText `gorm:"foreignKey:ID"`
	}
	summaryItem struct {
		ID        uint `gorm:"autoIncrement:false;snowflake"`
		SummaryID uint
	}
	summaryText struct {
		ID uint `gorm:"autoIncrement:false;snowflake:-"`
	}
)

// An unsigned column holds every key, and programs with keys of uint want it. The statements that widen
// a reference rewrite the table of the key too, under a lock, and once is enough.
func TestDoctorKeepsTheSignAndMendsBoundColumnsOnce(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		for _, args := range []string{"-all", "summary_items.summary_id summary_texts.id summaries.id summary_items.id", "-all summaries.id"} {
			d.exec(t, "DROP TABLE IF EXISTS summary_texts, summary_items, summaries", "CREATE TABLE summaries (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY)",
				"CREATE TABLE summary_items (id BIGINT UNSIGNED PRIMARY KEY, summary_id INT UNSIGNED, CONSTRAINT of_summary FOREIGN KEY (summary_id) REFERENCES summaries (id))",
				"CREATE TABLE summary_texts (id INT UNSIGNED PRIMARY KEY, CONSTRAINT of_text FOREIGN KEY (id) REFERENCES summaries (id))")
			found, _ := (&shop{testDB: d}).examine(t, args)
			first, others := "", map[string]int{}
			for _, f := range found {
				where, _, _ := strings.Cut(f.Where, ",")
				_, statements, some := strings.Cut(f.Mend, "\n  ")
				switch {
				case some && first != "":
					t.Errorf("doctor %s prints statements of %s, and before\n%s\nand then of %s\n%s; want them once", args, where, first, f.Where, statements)
				case some:
					first = statements
				case strings.HasPrefix(f.Mend, "the statements of the finding on "):
					others[where]++
				case where == "summary_items.id":
					t.Errorf("doctor %s = %+v; want nothing of a column that holds every key", args, f)
				}
			}
			// A column too narrow, and a key that is counted too.
			if first == "" || others["summary_texts.id"] != 1 || others["summaries.id"]+others["summary_items.summary_id"] != 2 {
				t.Errorf("doctor %s = %+v; want statements, and three findings that they mend too", args, found)
			}
			for statement := range strings.SplitSeq(first, "\n  ") {
				d.exec(t, statement)
			}
			db, err := gorm.Open(mysql.New(mysql.Config{Conn: d.DB}), &gorm.Config{Logger: logger.Discard})
			if err == nil {
				err = db.Use(gormplugin.New(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return 1, nil })))
			}
			if err != nil {
				t.Fatal(err)
			}
			findings, err := schemacheck.Check(t.Context(), db, &summary{}, &summaryItem{}, &summaryText{})
			if len(findings) > 0 || err != nil {
				t.Errorf("schemacheck.Check after the statements of doctor %s = %v, %v; want nothing", args, findings, err)
			}
			if found, code := (&shop{testDB: d}).examine(t, args); code != 0 || strings.Contains(fmt.Sprint(found), "ALTER") {
				t.Errorf("doctor %s after its statements = %+v, %d; want nothing to do", args, found, code)
			}
		}
	}, "MariaDB", "MySQL")
}

// Statements and commands are copied, so that their lines stay whole.
func TestDoctorWrapsWordsAndNoStatement(t *testing.T) {
	var out strings.Builder
	e := &examination{options: &options{}, out: bufio.NewWriter(&out)}
	words, statement := strings.Repeat("word ", 40), "  SELECT "+strings.Repeat("a, ", 40)+"b FROM t;"
	if err := e.find(sick, "t.id", words, words+"\n"+statement); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, statement) {
			whole++
		} else if len(line) > 80 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
	if whole != 1 || !strings.HasPrefix(out.String(), "error    t.id: word") || strings.Count(out.String(), "word") != 80 {
		t.Errorf("find writes\n%s\nwant every word, and the statement on one line", out.String())
	}
}
