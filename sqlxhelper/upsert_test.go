package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// triple is a row that may be stored: k is its unique column.
type triple struct {
	ID types.Snowflake `db:"id"`
	K  string          `db:"k"`
	N  int             `db:"n"`
}

// upsertTexts are the statements of an upsert of two rows: the second has a key.
type upsertTexts struct{ insert, nothing, update, byKey, byTarget string }

var upsertText = map[sqlxhelper.Dialect]upsertTexts{
	sqlxhelper.SQLite: {
		`INSERT INTO "t" ("id", "k", "n") VALUES (?, ?, ?), (?, ?, ?)`,
		` ON CONFLICT ("k") DO NOTHING`,
		` ON CONFLICT ("k") DO UPDATE SET "n" = excluded."n"`,
		`SELECT 0, 0, "id" FROM "t" WHERE "id" IN (?)`,
		`SELECT 0, 1, "id" FROM "t" WHERE "k" = ? AND "k" = ? COLLATE BINARY UNION ALL SELECT 1, 1, "id" FROM "t" WHERE "k" = ? AND "k" = ? COLLATE BINARY`,
	},
	sqlxhelper.PostgreSQL: {
		`INSERT INTO "t" ("id", "k", "n") VALUES ($1, $2, $3), ($4, $5, $6)`,
		` ON CONFLICT ("k") DO NOTHING`,
		` ON CONFLICT ("k") DO UPDATE SET "n" = excluded."n"`,
		`SELECT 0, 0, CAST("id" AS text) FROM "t" WHERE "id" IN ($1)`,
		`SELECT 0, 1, CAST("id" AS text) FROM "t" WHERE "k" = $1 AND CAST("k" AS text) COLLATE "C" = CAST(COALESCE($2, "k") AS text) COLLATE "C"` +
			` UNION ALL SELECT 1, 1, CAST("id" AS text) FROM "t" WHERE "k" = $3 AND CAST("k" AS text) COLLATE "C" = CAST(COALESCE($4, "k") AS text) COLLATE "C"`,
	},
	sqlxhelper.MySQL: {
		"INSERT INTO `t` (`id`, `k`, `n`) VALUES (?, ?, ?), (?, ?, ?)",
		" ON DUPLICATE KEY UPDATE `id` = IF(~0 + ((`k` = VALUES(`k`)) IS NOT TRUE), `id`, `id`)",
		" ON DUPLICATE KEY UPDATE `id` = IF(~0 + ((`k` = VALUES(`k`)) IS NOT TRUE), `id`, `id`), `n` = VALUES(`n`)",
		"SELECT 0, 0, `id` FROM `t` WHERE `id` IN (?)",
		"(SELECT 0, 1, `id` FROM `t` WHERE `k` = LEFT(CONVERT(? USING utf8mb4), 20) COLLATE utf8mb4_bin FOR UPDATE) UNION ALL (SELECT 1, 1, `id` FROM `t` WHERE `k` = LEFT(CONVERT(? USING utf8mb4), 20) COLLATE utf8mb4_bin FOR UPDATE)",
	},
}

// ids are the answer to a look: keys, each after the number of its row.
func ids(rows ...[]driver.Value) *sqlmock.Rows {
	found := sqlmock.NewRows([]string{"i", "same", "id"})
	for _, row := range rows {
		i, id := driver.Value(0), row[len(row)-1]
		if len(row) == 2 {
			i = row[0]
		}
		found.AddRow(i, 1, id)
	}
	return found
}

// asSent returns the arguments of a look: each value twice where it is compared as it was sent.
func asSent(d sqlxhelper.Dialect, values ...driver.Value) (args []driver.Value) {
	for _, v := range values {
		if args = append(args, v); d != sqlxhelper.MySQL {
			args = append(args, v)
		}
	}
	return args
}

func TestUpsertAsksForTheStoredRows(t *testing.T) {
	for d, text := range upsertText {
		for _, tail := range []string{text.nothing, text.update} {
			option := sqlxhelper.OnConflictDoNothing()
			if tail == text.update {
				option = sqlxhelper.OnConflictUpdate("n")
			}
			db, mock := newMock(t)
			mock.ExpectBegin()
			// More affected than there are rows, as MySQL counts updates.
			mock.ExpectExec(text.insert+tail).WithArgs(1, "a", 4, 50, "b", 5).WillReturnResult(done(3))
			mock.ExpectQuery(text.byKey).WithArgs(1).WillReturnRows(ids())
			describes(mock, d)
			mock.ExpectQuery(text.byTarget).WithArgs(asSent(d, "a", "b")...).WillReturnRows(ids([]driver.Value{1, 50}, []driver.Value{0, 70}))
			mock.ExpectCommit()
			rows := []triple{{K: "a", N: 4}, {ID: 50, K: "b", N: 5}}
			err := newHelper(d).With(sqlxhelper.ConflictTarget("k"), option).InsertMany(ctx, db, "t", rows)
			if err != nil || rows[0].ID != 70 || rows[1].ID != 50 {
				t.Errorf("InsertMany(%v) = %v, keys %d, %d; want nil, 70, 50", d, err, rows[0].ID, rows[1].ID)
			}
		}
	}
}

func TestUpsertBelievesACountOnlyOfIgnoredRowsAndNeverOnMySQL(t *testing.T) {
	for d, text := range upsertText {
		db, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(2))
		if d == sqlxhelper.MySQL {
			mock.ExpectQuery(text.byKey).WillReturnRows(ids([]driver.Value{1}))
			describes(mock, d)
			mock.ExpectQuery("(SELECT 0, 1, `id` FROM `t` WHERE `k` = LEFT(CONVERT(? USING utf8mb4), 20) COLLATE utf8mb4_bin FOR UPDATE)").WithArgs("b").WillReturnRows(ids([]driver.Value{0, 50}))
		}
		mock.ExpectCommit()
		rows := []triple{{K: "a"}, {ID: 50, K: "b"}}
		err := newHelper(d).With(sqlxhelper.OnConflictDoNothing("k")).InsertMany(ctx, db, "t", rows)
		if err != nil || rows[0].ID != 1 || rows[1].ID != 50 {
			t.Errorf("InsertMany(%v) = %v, keys %d, %d; want nil, 1, 50", d, err, rows[0].ID, rows[1].ID)
		}
	}
}

// "cached plan must not change result type": a column was altered since pgx prepared the
// look-up. The plan that is made next may be as old.
func TestLookupThatFailsForItsPlanIsSentAgain(t *testing.T) {
	text := upsertText[sqlxhelper.PostgreSQL]
	stale := drivererrors.Postgres("0A000")
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.OnConflictDoNothing("k"))
	t.Run("Pool", func(t *testing.T) {
		db, mock := newMock(t)
		for range 2 {
			mock.ExpectBegin()
			mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0))
			mock.ExpectQuery(text.byTarget).WillReturnError(stale)
			mock.ExpectRollback()
		}
		mock.ExpectBegin()
		mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0))
		mock.ExpectQuery(text.byTarget).WillReturnRows(ids([]driver.Value{0, 70}, []driver.Value{1, 71}))
		mock.ExpectCommit()
		rows := []triple{{ID: 50, K: "a"}, {ID: 51, K: "b"}}
		if err := h.InsertMany(ctx, db, "t", rows); err != nil || rows[0].ID != 70 || rows[1].ID != 71 {
			t.Errorf("InsertMany() = %v, keys %d, %d; want nil, 70, 71", err, rows[0].ID, rows[1].ID)
		}
	})
	t.Run("Tx", func(t *testing.T) {
		db, mock := newMock(t)
		tx := newTx(t, db, mock)
		for range 9 { // 8 times again, and no more
			mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0))
			mock.ExpectQuery(text.byTarget).WillReturnError(stale)
			mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
		}
		rows := []triple{{ID: 50, K: "a"}, {ID: 51, K: "b"}}
		if err := h.InsertMany(ctx, tx, "t", rows); !errors.Is(err, stale) || rows[0].ID != 50 || rows[1].ID != 51 {
			t.Errorf("InsertMany() = %v, keys %d, %d; want %v, 50, 51", err, rows[0].ID, rows[1].ID, stale)
		}
	})
}

// A key of the caller's is looked up by the target first. The row that has this key
// may be another one.
func TestKeyOfTheCallerIsLookedUpLast(t *testing.T) {
	text := upsertText[sqlxhelper.PostgreSQL]
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0))
	mock.ExpectQuery(text.byTarget).WillReturnRows(ids([]driver.Value{0, 51}))
	columns := []string{"index", "column", "collation", "prefix", "type", "condition", "not null", "hidden", "nulls equal", "nulls", "alone", "tidb"}
	mock.ExpectQuery("SELECT c.relname, …").WithArgs(`"t"`).WillReturnRows(sqlmock.NewRows(columns).
		AddRow("t_pkey", "id", "", 0, "bigint", "", false, false, false, "id k", true, false).
		AddRow("t_k", "k", "", 0, "numeric(10,2)", "", false, false, false, "id k", true, false))
	mock.ExpectQuery(`SELECT 0, 1, CAST("id" AS text) FROM ONLY "t" WHERE "k" = CAST($1 AS numeric(10,2))`).WithArgs("b").WillReturnRows(ids())
	mock.ExpectQuery(`SELECT 0, 0, CAST("id" AS text) FROM ONLY "t" WHERE "id" IN ($1)`).WithArgs(51).WillReturnRows(ids([]driver.Value{51}))
	mock.ExpectCommit()
	rows := []triple{{ID: 50, K: "a"}, {ID: 51, K: "b"}}
	err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.OnConflictDoNothing("k")).InsertMany(ctx, db, "t", rows)
	if err != nil || rows[0].ID != 51 || rows[1].ID != 51 {
		t.Errorf("InsertMany() = %v, keys %d, %d; want nil, 51, 51", err, rows[0].ID, rows[1].ID)
	}
}

// 148 keys, which do not follow each other, are filled up to 256; 148 lookups are 128, and 20 filled up to 32.
func TestLookupsHaveFewTexts(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec("INSERT INTO `t` (`id`, `k`, `n`) VALUES " + strings.Repeat("(?, ?, ?), ", 147) + "(?, ?, ?)" + upsertText[sqlxhelper.MySQL].nothing).WillReturnResult(done(1))
	mock.ExpectQuery("SELECT 0, 0, `id` FROM `t` WHERE `id` IN (?" + strings.Repeat(", ?", 255) + ")").WillReturnRows(ids())
	describes(mock, sqlxhelper.MySQL)
	for _, n := range []int{128, 32} {
		first, last := 7000, 7127
		if n == 32 {
			first, last = 5000, 5019
		}
		found, parts := ids([]driver.Value{0, first}), make([]string, n)
		for i := range n {
			parts[i] = fmt.Sprintf("(SELECT %d, 1, `id` FROM `t` WHERE `k` = LEFT(CONVERT(? USING utf8mb4), 20) COLLATE utf8mb4_bin FOR UPDATE)", i)
			found.AddRow(i, 1, min(first+i, last)) // the last row is asked for again
		}
		mock.ExpectQuery(strings.Join(parts, " UNION ALL ")).WillReturnRows(found)
	}
	mock.ExpectCommit()
	rows, last := make([]triple, 148), types.Snowflake(0)
	gaps := sqlxhelper.SourceFunc(func(context.Context) (types.Snowflake, error) { last += 2; return last, nil })
	h := sqlxhelper.New(gaps, sqlxhelper.WithDialect(sqlxhelper.MySQL), sqlxhelper.OnConflictDoNothing("k"))
	err := h.InsertMany(ctx, db, "t", rows)
	if err != nil || rows[0].ID != 7000 || rows[127].ID != 7127 || rows[128].ID != 5000 || rows[147].ID != 5019 {
		t.Errorf("InsertMany() = %v, keys %d … %d, %d … %d; want nil, 7000 … 7127, 5000 … 5019", err, rows[0].ID, rows[127].ID, rows[128].ID, rows[147].ID)
	}
}

// describes expects that MySQL is asked for the columns.
func describes(mock sqlmock.Sqlmock, d sqlxhelper.Dialect) {
	if d != sqlxhelper.MySQL {
		return
	}
	mock.ExpectQuery("SHOW FULL COLUMNS FROM `t`").WillReturnRows(sqlmock.NewRows([]string{"Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"}).
		AddRow("id", "bigint(20)", nil, "NO", "PRI", nil, "", "", "").AddRow("K", "varchar(20)", "utf8mb4_bin", "YES", "UNI", nil, "", "", "").AddRow("n", "int(11)", nil, "YES", "", nil, "", "", ""))
}

func TestUpsertThatIsNotResolvedIsUndone(t *testing.T) {
	text := upsertText[sqlxhelper.MySQL]
	for name, expect := range map[string]func(sqlmock.Sqlmock){
		"NotFound": func(mock sqlmock.Sqlmock) {
			mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(2))
			mock.ExpectQuery(text.byKey).WillReturnRows(ids())
			describes(mock, sqlxhelper.MySQL)
			mock.ExpectQuery(text.byTarget).WillReturnRows(ids([]driver.Value{0, 70}))
			mock.ExpectQuery(text.byKey).WithArgs(50).WillReturnRows(ids())
		},
		"Several": func(mock sqlmock.Sqlmock) {
			mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(2))
			mock.ExpectQuery(text.byKey).WillReturnRows(ids())
			describes(mock, sqlxhelper.MySQL)
			mock.ExpectQuery(text.byTarget).WillReturnRows(ids([]driver.Value{0, 70}, []driver.Value{1, 71}, []driver.Value{1, 72}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, mock := newMock(t)
			tx := newTx(t, db, mock)
			mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			expect(mock)
			mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
			rows := []triple{{K: "a"}, {ID: 50, K: "b"}}
			err := newHelper(sqlxhelper.MySQL).With(sqlxhelper.OnConflictDoNothing("k")).InsertMany(ctx, tx, "t", rows)
			var at *sqlxhelper.InsertError
			if !errors.Is(err, sqlxhelper.ErrUnresolved) || !errors.As(err, &at) || at.Row != 1 || at.Key != 50 {
				t.Errorf("InsertMany() = %v; want ErrUnresolved for row 1 with key 50", err)
			}
			if rows[0].ID != 1 || rows[1].ID != 50 {
				t.Errorf("keys = %d, %d; want 1, 50 as before", rows[0].ID, rows[1].ID)
			}
		})
	}
}

func TestKeysAreThoseOfBeforeIfTheCommitFails(t *testing.T) {
	text := upsertText[sqlxhelper.PostgreSQL]
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0)) // and so no fresh key is there
	mock.ExpectQuery(text.byTarget).WillReturnRows(ids([]driver.Value{0, 70}, []driver.Value{1, 71}))
	mock.ExpectQuery(`SELECT "id", "n" FROM "t" WHERE "id" IN ($1, $2)`).WithArgs(70, 71).
		WillReturnRows(sqlmock.NewRows([]string{"id", "n"}).AddRow(71, 8).AddRow(70, 9))
	mock.ExpectCommit().WillReturnError(errMine)
	rows := []triple{{K: "a", N: 4}, {ID: 50, K: "b", N: 5}}
	err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.Returning("n")).InsertMany(ctx, db, "t", rows)
	if want := (triple{1, "a", 4}); !errors.Is(err, errMine) || rows[0] != want || rows[1].ID != 50 || rows[1].N != 5 {
		t.Errorf("InsertMany() = %v, rows %+v; want the error of the commit, and the rows as before", err, rows)
	}
}

// A panic leaves by another way than an error.
func TestKeysAreThoseOfBeforeIfAReportPanics(t *testing.T) {
	type kid struct {
		types.Model
		Of types.Snowflake `db:"t_id"`
	}
	type parent struct {
		triple
		Kids []kid `db:"-" snowkey:"kids,fk=t_id"`
	}
	db := openSQLite(t)
	execAll(t, db, tripleTable, "CREATE TABLE kids (id INTEGER PRIMARY KEY, t_id INTEGER)", "INSERT INTO t VALUES (70, 'a', 0)")
	p := parent{triple: triple{K: "a"}, Kids: []kid{{}}}
	func() {
		defer func() { _ = recover() }()
		_ = newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.OnProgress(func(sent, total int) {
			if sent == total {
				if p.ID != 70 {
					t.Errorf("key when the child is sent = %d; want 70", p.ID)
				}
				panic(errMine)
			}
		})).InsertGraph(ctx, db, "t", &p)
	}()
	if p.ID != 1 || p.Kids[0].Of != 1 {
		t.Errorf("keys = %d, %d; want 1, 1", p.ID, p.Kids[0].Of)
	}
}

const tripleTable = "CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT UNIQUE, n INTEGER)"

func TestRowThatATriggerDropsIsUnresolved(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, tripleTable, "CREATE TRIGGER skip BEFORE INSERT ON t WHEN NEW.n < 0 BEGIN SELECT RAISE(IGNORE); END")
	for _, option := range []sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.OnConflictUpdate("n")} {
		for _, id := range []types.Snowflake{0, 60} {
			rows := []triple{{K: "a", N: 1}, {ID: id, K: "b", N: -1}}
			h := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.ConflictTarget("k"), option)
			if err := h.InsertMany(ctx, db, "t", rows); !errors.Is(err, sqlxhelper.ErrUnresolved) {
				t.Errorf("InsertMany(row that is dropped) = %v; want ErrUnresolved", err)
			}
			wantRows(t, db, "t", 0)
		}
	}
}

// The column takes "ADA" for "ada", and the index, by which rows are met, for "ADA ".
func TestRowThatOnlyTheColumnTakesForEqualIsNotMet(t *testing.T) {
	for _, n := range []int{1, 30} { // which are listed
		db := openSQLite(t)
		execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT COLLATE NOCASE, n INTEGER)", "CREATE UNIQUE INDEX t_k ON t (k COLLATE RTRIM)",
			"INSERT INTO t (id, k) VALUES (70, 'ada'), (71, 'ADA ')")
		rows := make([]triple, n)
		for i := range rows {
			rows[i].K = "ADA"
		}
		if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnConflictDoNothing("k")).InsertMany(ctx, db, "t", rows); err != nil {
			t.Fatalf("InsertMany(%d rows) = %v; want nil", n, err)
		}
		for i := range rows {
			if rows[i].ID != 71 {
				t.Fatalf("key of row %d of %d = %d; want 71", i, n, rows[i].ID)
			}
		}
	}
}

func TestOptionsThatDoNotFitChangeAndSendNothing(t *testing.T) {
	type kid struct {
		types.Model
		Of   types.Snowflake `db:"t_id"`
		Name string          `db:"name"`
		Raw  string          `db:"raw" snowkey:"-"`
	}
	type parent struct {
		triple
		Kids []kid `db:"-" snowkey:"kids,fk=t_id"`
	}
	target := sqlxhelper.ConflictTarget("k")
	for name, c := range map[string]struct {
		options []sqlxhelper.Option
		want    string
	}{
		"no target":                  {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing()}, "target"},
		"no target to update":        {[]sqlxhelper.Option{sqlxhelper.OnConflictUpdate("n")}, "target"},
		"target alone":               {[]sqlxhelper.Option{target}, "ConflictTarget"},
		"unknown target":             {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("no")}, `"no"`},
		"expression as a target":     {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("LOWER(k)")}, `"LOWER(k)" is an expression, and only columns can be named`},
		"condition in a target":      {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("k) WHERE (n > 0")}, `"k) WHERE (n > 0" is an expression`},
		"target twice":               {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("k", "k")}, `"k" twice`},
		"omitted target":             {[]sqlxhelper.Option{sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.Omit("k")}, `"k"`},
		"unknown update":             {[]sqlxhelper.Option{target, sqlxhelper.OnConflictUpdate("no")}, `"no"`},
		"omitted update":             {[]sqlxhelper.Option{target, sqlxhelper.OnConflictUpdate("n"), sqlxhelper.Omit("n")}, `"n"`},
		"no update":                  {[]sqlxhelper.Option{target, sqlxhelper.OnConflictUpdate()}, "OnConflictUpdate"},
		"update of the key":          {[]sqlxhelper.Option{target, sqlxhelper.OnConflictUpdate("id")}, `"id"`},
		"update of the target":       {[]sqlxhelper.Option{target, sqlxhelper.OnConflictUpdate("n", "k")}, `"k"`},
		"no columns":                 {[]sqlxhelper.Option{sqlxhelper.Columns()}, "Columns"},
		"unknown column":             {[]sqlxhelper.Option{sqlxhelper.Columns("k", "no")}, `"no"`},
		"column in another case":     {[]sqlxhelper.Option{sqlxhelper.Columns("K")}, `"K"`},
		"unknown omitted column":     {[]sqlxhelper.Option{sqlxhelper.Omit("no")}, `"no"`},
		"unknown table":              {[]sqlxhelper.Option{sqlxhelper.Omit("other.k")}, `"other"`},
		"unknown column of children": {[]sqlxhelper.Option{sqlxhelper.Omit("kids.k")}, `"k"`},
		"column that is only read":   {[]sqlxhelper.Option{sqlxhelper.Omit("kids.raw")}, `"raw"`},
		"omitted key":                {[]sqlxhelper.Option{sqlxhelper.Omit("id")}, "id"},
		"omitted foreign key":        {[]sqlxhelper.Option{sqlxhelper.Omit("kids.t_id")}, "t_id"},
		"foreign key left out":       {[]sqlxhelper.Option{sqlxhelper.Columns("kids.name")}, "t_id"},
		"unknown returned column":    {[]sqlxhelper.Option{sqlxhelper.Returning("no")}, `"no"`},
		"children returned":          {[]sqlxhelper.Option{sqlxhelper.Returning("Kids")}, `"Kids"`},
	} {
		for _, n := range []int{0, 2} {
			db, _ := newMock(t)
			rows := make([]parent, n)
			err := newHelper(sqlxhelper.PostgreSQL).With(c.options...).InsertGraph(ctx, db, "t", rows)
			if !errors.Is(err, sqlxhelper.ErrArgument) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("InsertGraph(%d rows, %s) = %v; want ErrArgument with %s", n, name, err, c.want)
			}
			if n > 0 && rows[0].ID != 0 {
				t.Errorf("InsertGraph(%s) assigned a key", name)
			}
		}
	}
	// The tables of children are none of InsertMany.
	db, _ := newMock(t)
	if err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Omit("kids.name")).InsertMany(ctx, db, "t", []parent{{}}); !errors.Is(err, sqlxhelper.ErrArgument) {
		t.Errorf("InsertMany(Omit of a child's column) = %v; want ErrArgument", err)
	}
}

func TestUpsertOfRowsThatReferToEachOtherIsRefused(t *testing.T) {
	type leaf struct {
		types.Model
		K      string              `db:"k"`
		Of     types.NullSnowflake `db:"of_id"`
		Leaves []leaf              `db:"-" snowkey:"t,fk=of_id"`
	}
	db, mock := newMock(t)
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.OnConflictDoNothing("k"))
	rows := []leaf{{}, {Leaves: []leaf{{}}}}
	var row *sqlxhelper.RowError
	if err := h.InsertGraph(ctx, db, "t", rows); !errors.As(err, &row) || !strings.Contains(row.Path, "leaf[1].Leaves[0]") || rows[0].ID != 0 {
		t.Errorf("InsertGraph(tree) = %v, key %d; want a RowError for leaf[1].Leaves[0], no key", err, rows[0].ID)
	}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "t" ("id", "k", "of_id") VALUES ($1, $2, $3) ON CONFLICT ("k") DO NOTHING`).WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := h.InsertGraph(ctx, db, "t", rows[:1]); err != nil {
		t.Errorf("InsertGraph(rows without branches) = %v; want nil", err)
	}
}

func TestContextIsLookedAtBeforeStoredRowsAreLookedFor(t *testing.T) {
	text := upsertText[sqlxhelper.SQLite]
	db, mock := newMock(t)
	tx := newTx(t, db, mock)
	mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec(text.insert + text.nothing).WillReturnResult(done(0))
	mock.ExpectExec("ROLLBACK TO SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
	ending, cancel := context.WithCancel(ctx)
	h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.OnProgress(func(int, int) { cancel() }))
	rows := []triple{{K: "a"}, {ID: 50, K: "b"}}
	if err := h.InsertMany(ending, tx, "t", rows); !errors.Is(err, context.Canceled) || rows[0].ID != 1 || rows[1].ID != 50 {
		t.Errorf("InsertMany(context that ends) = %v, keys %d, %d; want context.Canceled, 1, 50", err, rows[0].ID, rows[1].ID)
	}
}
