package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type trapped struct {
	types.Model
	Code string `db:"code"`
	N    string `db:"n"`
}

func newTrapped(n int) []trapped {
	rows := make([]trapped, n)
	for i := range rows {
		rows[i] = trapped{Code: fmt.Sprint(i % 1000), N: "1"}
	}
	return rows
}

// pgx keeps 512 texts prepared. Each text of a few hundred rows costs the server
// 100 kB.
func TestManyRowCountsLeaveFewPreparedStatementsOnPgx(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	d.DB.SetMaxOpenConns(1)
	execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code TEXT, n TEXT)")
	// An array column goes by VALUES, however many rows there are.
	execSqlx(t, d.DB, "CREATE TABLE listed (id BIGINT PRIMARY KEY, list TEXT[])")
	type listed struct {
		types.Model
		List []string `db:"list"`
	}
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	for n := 1; n <= 600; n += 2 {
		if err := h.InsertMany(context.Background(), d.DB, "trapped", newTrapped(n)); err != nil {
			t.Fatalf("InsertMany(%d rows) = %v; want nil", n, err)
		}
		if err := h.InsertMany(context.Background(), d.DB, "listed", make([]listed, n)); err != nil {
			t.Fatalf("InsertMany(%d rows with an array) = %v; want nil", n, err)
		}
	}
	var prepared int
	if err := d.DB.Get(&prepared, "SELECT COUNT(*) FROM pg_prepared_statements"); err != nil || prepared > 100 {
		t.Errorf("prepared statements = %d, %v; want at most 100 after 300 row counts of 2 tables", prepared, err)
	}
}

// A cast to varchar(3)[] would cut the texts before the column sees them.
func TestTextLongerThanItsColumnIsRefusedByUnnest(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		d := sqlxPostgres(t, driver)
		execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code VARCHAR(3), n CHAR(3))")
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		if err := h.InsertMany(context.Background(), d.DB, "trapped", newTrapped(200)); err != nil {
			t.Errorf("InsertMany(texts that fit) = %v; want nil", err)
		}
		for _, spoil := range []func(*trapped){
			func(r *trapped) { r.Code = "abcd" },
			func(r *trapped) { r.N = "abcd" },
		} {
			rows := newTrapped(200)
			spoil(&rows[150])
			err := h.InsertMany(context.Background(), d.DB, "trapped", rows)
			var said interface{ SQLState() string }
			if !errors.As(err, &said) || said.SQLState() != "22001" {
				t.Errorf("InsertMany(4 characters for 3) by %s = %v; want SQLSTATE 22001", driver, err)
			}
		}
		var n int
		if err := d.DB.Get(&n, "SELECT COUNT(*) FROM trapped"); err != nil || n != 200 {
			t.Errorf("rows = %d, %v; want 200", n, err)
		}
	}
}

// What LOAD DATA LOCAL stores changed, or not at all, without an error.
func TestNothingIsSwallowedOnMariaDBAndMySQL(t *testing.T) { onMariaDBAndMySQL(t, nothingIsSwallowed) }

func nothingIsSwallowed(t *testing.T, dsn string) {
	t.Helper()
	for _, interpolate := range []bool{false, true} {
		d := sqlxMySQL(t, dsn, func(c *mysql.Config) { c.InterpolateParams = interpolate })
		execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code VARCHAR(3), n INT, UNIQUE (code, n))")
		for what, c := range map[string]struct {
			spoil  func(*trapped)
			number uint16
		}{
			"duplicate": {func(r *trapped) { r.Code = "0" }, 1062},
			"too long":  {func(r *trapped) { r.Code = "abcdef" }, 1406},
			"no number": {func(r *trapped) { r.N = "zzz" }, 1366},
		} {
			rows := newTrapped(900)
			c.spoil(&rows[777])
			err := sqlxhelper.New(sqlxcases.NewCounter(0)).InsertMany(context.Background(), d.DB, "trapped", rows)
			var said *mysql.MySQLError
			var in *sqlxhelper.InsertError
			if !errors.As(err, &said) || said.Number != c.number || !errors.As(err, &in) || in.Row != -1 {
				t.Errorf("InsertMany(%s) = %v; want error %d, about no row", what, err, c.number)
			}
			var n int
			if err := d.DB.Get(&n, "SELECT COUNT(*) FROM trapped"); err != nil || n != 0 {
				t.Errorf("rows after %s = %d, %v; want 0", what, n, err)
			}
		}
	}
}

// 0 in a column that counts is a request for the next number.
func TestZeroKeyNeverReachesAColumnThatCounts(t *testing.T) {
	onMariaDBAndMySQL(t, zeroKeyIsNotSent)
}

func zeroKeyIsNotSent(t *testing.T, dsn string) {
	t.Helper()
	d := sqlxMySQL(t, dsn, func(*mysql.Config) {})
	execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(10), n INT)")
	rows := newTrapped(3)
	rows[1].ID = 77
	if err := sqlxhelper.New(nil).InsertMany(context.Background(), d.DB, "trapped", rows); !errors.Is(err, sqlxhelper.ErrSource) {
		t.Errorf("InsertMany(no key, no source) = %v; want ErrSource", err)
	}
	if err := sqlxhelper.New(sqlxcases.NewCounter(1000)).InsertMany(context.Background(), d.DB, "trapped", rows); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
	var ids []types.Snowflake
	if err := d.DB.Select(&ids, "SELECT id FROM trapped ORDER BY code"); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(ids), "[1001 77 1002]"; got != want || rows[0].ID != 1001 || rows[2].ID != 1002 {
		t.Errorf("stored keys = %s, in memory %d and %d; want %s", got, rows[0].ID, rows[2].ID, want)
	}
}

// The server takes no single row above max_allowed_packet, and says so or drops
// the connection. Whichever it is, nothing is stored.
func TestRowAboveThePacketLimitLeavesNothingOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, rowAboveThePacketLimit)
}

func rowAboveThePacketLimit(t *testing.T, dsn string) {
	t.Helper()
	d := sqlxMySQL(t, dsn, func(c *mysql.Config) { c.MaxAllowedPacket = 1 << 30 })
	var limit int // 16 MiB on MariaDB, 64 on MySQL, unless somebody has set it
	if err := d.DB.Get(&limit, "SELECT @@max_allowed_packet"); err != nil {
		t.Fatal(err)
	}
	execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code LONGTEXT, n INT)")
	rows := newTrapped(40)
	rows[35].Code = strings.Repeat("x", limit)
	err := sqlxhelper.New(sqlxcases.NewCounter(0)).InsertMany(context.Background(), d.DB, "trapped", rows)
	if err == nil {
		t.Errorf("InsertMany(a row of %d bytes, of which the server takes less) = nil; want an error", limit)
	}
	var n int
	if err := d.DB.Get(&n, "SELECT COUNT(*) FROM trapped"); err != nil || n != 0 {
		t.Errorf("rows = %d, %v; want 0", n, err)
	}
}
