package sqlxhelper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// under returns a handle to the same database under another driver name.
func under(db *sqlx.DB, name string) *sqlx.DB { return sqlx.NewDb(db.DB, name) }

var oneRow = map[sqlxhelper.Dialect]string{
	sqlxhelper.SQLite:     `INSERT INTO "s"."t" ("id", "n") VALUES (?, ?)`,
	sqlxhelper.PostgreSQL: `INSERT INTO "s"."t" ("id", "n") VALUES ($1, $2)`,
	sqlxhelper.MySQL:      "INSERT INTO `s`.`t` (`id`, `n`) VALUES (?, ?)",
}

// expectOneRow expects what Insert sends on a pool.
func expectOneRow(mock sqlmock.Sqlmock, d sqlxhelper.Dialect) {
	if d == sqlxhelper.SQLite {
		mock.ExpectBegin()
		defer mock.ExpectCommit()
	}
	mock.ExpectExec(oneRow[d]).WithArgs(5, 6).WillReturnResult(done(1))
}

func TestKnownDriverNamesHaveTheirDialect(t *testing.T) {
	for d, names := range map[sqlxhelper.Dialect][]string{
		sqlxhelper.SQLite:     {"sqlite3", "sqlite", "libsql", "nrsqlite3"},
		sqlxhelper.PostgreSQL: {"postgres", "pgx", "pgx/v4", "pgx/v5", "pq-timeouts", "cloudsqlpostgres", "nrpostgres", "nrpgx", "nrpgx5"},
		sqlxhelper.MySQL:      {"mysql", "nrmysql"},
	} {
		for _, name := range names {
			db, mock := newMock(t)
			expectOneRow(mock, d)
			if err := sqlxhelper.New(nil).Insert(ctx, under(db, name), "s.t", &pair{5, 6}); err != nil {
				t.Errorf("Insert(driver %q) = %v; want nil", name, err)
			}
		}
	}
}

func TestUnknownDriverNamesAreAnErrorWithTheWayOut(t *testing.T) {
	db, _ := newMock(t)
	for _, name := range []string{"", "sqlmock", "pgx-otelsql-0", "otelsql-mysql", "mssql", "oracle", "ql", "Postgres", "sqlite3_extended"} {
		r := pair{}
		err := sqlxhelper.New(nil).Insert(ctx, under(db, name), "t", &r)
		if !errors.Is(err, sqlxhelper.ErrDriver) {
			t.Errorf("Insert(driver %q) = %v; want ErrDriver", name, err)
			continue
		}
		for _, has := range []string{fmt.Sprintf("%q", name), "RegisterDriver", "WithDialect"} {
			if !strings.Contains(err.Error(), has) {
				t.Errorf("Insert(driver %q) = %q; want %s in it", name, err, has)
			}
		}
	}
}

func TestRegisteredNameHasItsDialect(t *testing.T) {
	for _, d := range []sqlxhelper.Dialect{sqlxhelper.MySQL, sqlxhelper.PostgreSQL} { // the later replaces the former
		sqlxhelper.RegisterDriver("test-otelsql-0", d)
		db, mock := newMock(t)
		mock.ExpectExec(oneRow[d]).WillReturnResult(done(1))
		if err := sqlxhelper.New(nil).Insert(ctx, under(db, "test-otelsql-0"), "s.t", &pair{5, 6}); err != nil {
			t.Errorf("Insert(registered as %v) = %v; want nil", d, err)
		}
	}
}

func TestRegisterDriverPanicsOnMisuse(t *testing.T) {
	for _, c := range []struct {
		name string
		d    sqlxhelper.Dialect
	}{{"", sqlxhelper.MySQL}, {"x", 0}, {"x", 4}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("RegisterDriver(%q, %v) returned; want a panic", c.name, c.d)
				}
			}()
			sqlxhelper.RegisterDriver(c.name, c.d)
		}()
	}
}

func TestOptionBeatsTheDriverName(t *testing.T) {
	for d := range oneRow {
		db, mock := newMock(t)
		expectOneRow(mock, d)
		if err := sqlxhelper.New(nil, sqlxhelper.WithDialect(d)).Insert(ctx, under(db, "pgx"), "s.t", &pair{5, 6}); err != nil {
			t.Errorf("Insert(WithDialect(%v)) = %v; want nil", d, err)
		}
	}
	db, _ := newMock(t)
	for _, d := range []sqlxhelper.Dialect{0, keysql.DuckDB, 99} {
		err := sqlxhelper.New(nil, sqlxhelper.WithDialect(d)).Insert(ctx, under(db, "pgx"), "t", &pair{5, 6})
		if !errors.Is(err, sqlxhelper.ErrDriver) || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("Insert(WithDialect(%d)) = %v; want ErrDriver that names it", d, err)
		}
	}
}

func TestDialectsHaveNames(t *testing.T) {
	for d, want := range map[sqlxhelper.Dialect]string{0: "Dialect(0)", sqlxhelper.SQLite: "SQLite", sqlxhelper.PostgreSQL: "PostgreSQL", sqlxhelper.MySQL: "MySQL", 99: "Dialect(99)"} {
		if got := d.String(); got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
}

func TestNamesThatCannotBeQuotedAreAnError(t *testing.T) {
	db, _ := newMock(t)
	long := strings.Repeat("é", 32)
	for _, c := range []struct {
		table string
		d     sqlxhelper.Dialect
	}{
		{"", sqlxhelper.SQLite}, {"a.", sqlxhelper.SQLite}, {".a", sqlxhelper.SQLite}, {"a.b.c", sqlxhelper.SQLite},
		{`"t"`, sqlxhelper.SQLite}, {"`t`", sqlxhelper.MySQL}, {"[t]", sqlxhelper.SQLite}, {"t'", sqlxhelper.SQLite},
		{"t; DROP TABLE t", sqlxhelper.SQLite}, {"t\x00", sqlxhelper.SQLite}, {"t\n", sqlxhelper.SQLite}, {"t\xff", sqlxhelper.SQLite}, {`t\`, sqlxhelper.MySQL},
		{long, sqlxhelper.PostgreSQL}, {"s." + long, sqlxhelper.PostgreSQL}, {long + long + "x", sqlxhelper.MySQL},
	} {
		h := newHelper(c.d)
		one := pair{}
		for _, err := range []error{
			h.Insert(ctx, db, c.table, &one),
			h.InsertMany(ctx, db, c.table, []*pair{&one}),
			h.InsertGraph(ctx, db, c.table, &one),
		} {
			if !errors.Is(err, sqlxhelper.ErrName) || !strings.HasPrefix(err.Error(), "sqlxhelper: ") {
				t.Errorf("Insert(%v, table %q) = %v; want ErrName", c.d, c.table, err)
			}
		}
		if one.ID != 0 {
			t.Errorf("Insert(%v, table %q) set the key %d; want none", c.d, c.table, one.ID)
		}
	}
	type longColumn struct {
		types.Model
		A int `db:"éééééééééééééééééééééééééééééééé"`
	}
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "t", &longColumn{}); !errors.Is(err, sqlxhelper.ErrName) {
		t.Errorf("Insert(column of 64 bytes) = %v; want ErrName", err)
	}
}

func TestNamesThatCanBeQuotedArePassedAsTheyAre(t *testing.T) {
	for _, table := range []string{"order", "Order Items", "my-table", "a$1", "why?", "größe", ":t", strings.Repeat("é", 31) + "x"} {
		db, mock := newMock(t)
		mock.ExpectExec(`INSERT INTO "` + table + `" ("id", "n") VALUES ($1, $2)`).WillReturnResult(done(1))
		if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, table, &pair{}); err != nil {
			t.Errorf("Insert(%q) = %v; want nil", table, err)
		}
	}
	db, mock := newMock(t)
	long := strings.Repeat("é", 64)
	mock.ExpectExec("INSERT INTO `" + long + "` (`id`, `n`) VALUES (?, ?)").WillReturnResult(done(1))
	if err := newHelper(sqlxhelper.MySQL).Insert(ctx, db, long, &pair{}); err != nil {
		t.Errorf("Insert(64 characters) = %v; want nil", err)
	}
}
