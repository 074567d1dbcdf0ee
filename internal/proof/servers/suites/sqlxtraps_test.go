package servers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

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

// pgx keeps 512 texts prepared. Each text of a few hundred rows costs the server 100 kB.
func TestManyRowCountsLeaveFewPreparedStatementsOnPgx(t *testing.T) {
	t.Parallel()
	d := sqlxOn(t, "pgx")
	d.DB.SetMaxOpenConns(1)
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	for table, most := range map[string]int{
		"trapped": 11, // 10 for few rows, and one for many
		"ruled":   90, // into which many rows go by VALUES too
	} {
		execSqlx(t, d.DB, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, code TEXT, n TEXT)")
		if table == "ruled" {
			execSqlx(t, d.DB, "CREATE RULE nothing AS ON DELETE TO ruled DO INSTEAD NOTHING")
		}
		for n := 1; n < 600; n += 2 {
			must(t, h.InsertMany(t.Context(), d.DB, table, newTrapped(n)))
		}
		var texts int
		if err := d.DB.Get(&texts, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO \""+table+"\"%'"); err != nil || texts > most || texts == 0 {
			t.Errorf("prepared statements for 300 row counts of %s = %d, %v; want at most %d", table, texts, err, most)
		}
	}
}

// What LOAD DATA LOCAL stores changed, or not at all, without an error.
func TestNothingIsSwallowedOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for _, interpolate := range []bool{false, true} {
			d := w.place(t, "interpolateParams", strconv.FormatBool(interpolate)).sqlx(t)
			execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code VARCHAR(3), n INT, UNIQUE (code, n))")
			for number, spoil := range map[uint16]func(*trapped){
				1062: func(r *trapped) { r.Code = "0" }, // a duplicate
				1406: func(r *trapped) { r.Code = "abcdef" },
				1366: func(r *trapped) { r.N = "zzz" },
			} {
				rows := newTrapped(900)
				spoil(&rows[777])
				refuses(t, d, "trapped", rows, number)
			}
		}
	})
}

// 0 in a column that counts is a request for the next number.
func TestZeroKeyNeverReachesAColumnThatCounts(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		d := w.place(t).sqlx(t)
		execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(10), n INT)")
		rows := newTrapped(3)
		rows[1].ID = 77
		if err := sqlxhelper.New(nil).InsertMany(t.Context(), d.DB, "trapped", rows); !errors.Is(err, sqlxhelper.ErrSource) {
			t.Errorf("InsertMany(no key, no source) = %v; want ErrSource", err)
		}
		must(t, sqlxhelper.New(sqlxcases.NewCounter(1000)).InsertMany(t.Context(), d.DB, "trapped", rows))
		var ids []types.Snowflake
		must(t, d.DB.Select(&ids, "SELECT id FROM trapped ORDER BY code"))
		if got, want := fmt.Sprint(ids), "[1001 77 1002]"; got != want || rows[0].ID != 1001 || rows[2].ID != 1002 {
			t.Errorf("stored keys = %s, in memory %d and %d; want %s", got, rows[0].ID, rows[2].ID, want)
		}
	})
}

// The server takes no single row above max_allowed_packet, and says so or drops the connection. Whichever it is, nothing
// is stored.
func TestRowAboveThePacketLimitLeavesNothingOnMariaDBAndMySQL(t *testing.T) {
	t.Parallel()
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		d := w.place(t, "maxAllowedPacket", strconv.Itoa(1<<30)).sqlx(t)
		var limit int // 16 MiB on MariaDB, 64 on MySQL, unless somebody has set it
		must(t, d.DB.Get(&limit, "SELECT @@max_allowed_packet"))
		execSqlx(t, d.DB, "CREATE TABLE trapped (id BIGINT PRIMARY KEY, code LONGTEXT, n INT)")
		rows := newTrapped(40)
		rows[35].Code = strings.Repeat("x", limit)
		err := sqlxhelper.New(sqlxcases.NewCounter(0)).InsertMany(t.Context(), d.DB, "trapped", rows)
		if n := counting(t, d.DB, "trapped")(); n != 0 || err == nil {
			t.Errorf("InsertMany(a row of %d bytes, of which the server takes less) = %v with %d rows; want an error with 0", limit, err, n)
		}
	})
}
