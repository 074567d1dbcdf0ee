package servers

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

// A typed is a row of a table with a unique column of any type. Its rows are created from maps,
// so that V is sent unconverted.
type typed struct {
	ID  types.Snowflake
	V   string
	U   *string
	Hit int
}

// typedTargets are servers, and the ways in which a driver sends values there.
var typedTargets = []struct {
	name      string
	types     map[string][]any
	dialector func(t testing.TB) func() gorm.Dialector
}{
	{"SQLite", sqliteTypes, gormTargets[0].dialector},
	{"PostgreSQL", postgresTypes, gormTargets[1].dialector},
	{"PostgreSQLSimpleProtocol", postgresTypes, func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo("pgx").place(t).dsn
		return func() gorm.Dialector {
			return postgres.New(postgres.Config{DSN: dsn, PreferSimpleProtocol: true})
		}
	}},
	{"MariaDB", mysqlTypes, typedMySQL("MariaDB")},
	{"MariaDBInterpolated", mysqlTypes, typedMySQL("MariaDBInterpolated")},
	{"MariaDBInterpolatedWithoutStrictMode", mysqlTypes, typedMySQL("MariaDBInterpolated", "sql_mode", "''")},
	{"MySQL", mysqlTypes, typedMySQL("MySQL")},
	{"MySQLInterpolated", mysqlTypes, typedMySQL("MySQLInterpolated")},
	{"MySQLWithoutStrictMode", mysqlTypes, typedMySQL("MySQL", "sql_mode", "''")},
}

func typedMySQL(way string, parameters ...string) func(t testing.TB) func() gorm.Dialector {
	return func(t testing.TB) func() gorm.Dialector {
		t.Helper()
		dsn := wayTo(way).place(t, parameters...).dsn
		return func() gorm.Dialector { return mysql.New(mysql.Config{DSN: dsn, DisableWithReturning: true}) }
	}
}

var (
	leapDay  = time.Date(2024, 2, 29, 23, 59, 58, 654_321_987, time.UTC)
	midnight = time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	lastTick = time.Date(2024, 2, 29, 23, 59, 59, 999_999_900, time.UTC)
)

// typedValues are sent to a column of each type. Many are equal to some databases, in some
// types, and by some ways to compare.
var typedValues = []any{
	0, 1, -1, int8(2), 5, 7, 21, 42, 70, 127, 128, 255, 300, 1999, 2024, 2155, 20240229, 100000, 65536, int64(1) << 31, int64(1) << 53, int64(1)<<53 + 1, int64(math.MaxInt64), uint64(math.MaxUint64), uint8(5), true, false,
	0.1, float32(0.1), 0.5, 1.5, 2.5, 6.4, 6.5, 7.0, 1e15, 1e20, 1e-7, 1.236, -7.015, 100.0, 16777217.0, 3.4e38, 1e300,
	"", "0", "00", "1", "5", "6.4", "6.5", "42", " 42", "42 ", "+42", "042", "1e2", "9007199254740993", "16777217", "1.236", "-7.015", "3.333", "1.0", "01.0", ".5", "0.1", "2.5", "21", "70", "2024", "20240229", "true",
	"+3", "  7", "7  ", " +8 ", "5.", "-.5", ".", "e1", "+", "1.5e-1", "25E1", "-4.2e+1", "1236e-3", "123456789e-7", "1e-40", "1e30", "1e99", "1e300", "1e400", "\t9", "9\n", "0x10", "1_000", "inf", "2.024e3", " 1999",
	"a", "A", "a ", "b", "ab", "AB", "ab  ", "abcdefgh", "abc\tdef", "b,a", "a,b", "s", "ss", "sst", "ß", "ßt", "ä", "a\u0308", "e\u0301", "é", "日本", "日", "?", "??", "ǉ", "low", "high",
	"10:00", "10:00:00", "00:00:00", "-10:00:00", "100:00:00", "900:00:00", "12:30:45.6", "12:30:45.678", "23:59:59.9999996", "1 10:00:00", "100000",
	"2024-02-29", "2024-02-29 00:00:00", "2024-02-29 10:00:00", "2024-02-29 12:00:00.0009", "2024-02-29T10:00:00Z", "2024-2-29", "24-02-29", "2024-02-29 23:59:59.9999996", "1969-12-31 00:00:00", "2050-01-01 00:00:00", "0000-00-00",
	"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "127.0.0.1", `{"a": 1}`, `{"a":1}`,
	[]byte("ab"), []byte("ab\x00"), []byte("ab "), []byte{1}, []byte{0}, []byte{1, 2}, []byte("42"), []byte("10:00:00"), []byte("日本"), []byte{0xff, 0xfe},
	nil, leapDay, midnight, lastTick, time.Date(1969, 7, 20, 20, 17, 40, 0, time.UTC), time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{},
}

// The types of each database that the plugin finds rows by, with values for which it must.
var (
	mysqlTypes = map[string][]any{
		"TINYINT": {0, 1, -1, 42, "42", true, false, 7.0}, "TINYINT UNSIGNED": {255}, "SMALLINT": {300, "42"}, "MEDIUMINT": {65536}, "INT": {42, "42", 100000, "1e2", "+3", "  7"},
		"INT UNSIGNED ZEROFILL": {42, int64(1) << 31}, "BIGINT": {int64(1)<<53 + 1, int64(math.MaxInt64), "9007199254740993", true}, "BIGINT UNSIGNED": {uint64(math.MaxUint64), 7},
		"BIT(1)": {true, false, 1, 0, []byte{1}, []byte{0}}, "BIT(16)": {true, 300, []byte{1, 2}, "ab"}, "YEAR": {1999, 2024, "2024", 2155},
		"DECIMAL(10,2)": {1.236, "-7.015", "3.333", 42, 100.0, 0.1, "1.0", ".5", "-.5", "5.", "1e2", "25E1", "-4.2e+1", "1.5e-1", "1236e-3", "+3", "  7", "7  ", " +8 "}, "DECIMAL(8,1) UNSIGNED": {7.0, "6.4", 0.1},
		"FLOAT": {0.1, float32(0.1), 2.5, 42, 16777217.0, "0.1", ".5", "1e2", "+3", "  7"}, "FLOAT UNSIGNED": {0.1}, "DOUBLE": {0.1, float32(0.1), 42, 1e300, "0.1", ".5", "-.5", "5.", "1e2", "1e300", "1e-40", "123456789e-7", "+3", "  7", "7  "},
		"FLOAT(7,3)": nil, "DOUBLE(7,3)": nil, "SET('a','b')": nil,
		"ENUM('b','low','high','5')": {"low", "high", "b"}, "ENUM('ä','日本') CHARACTER SET utf8mb4": {"ä", "日本"},
		"DATE": {leapDay, midnight, lastTick, "2024-02-29", "2024-02-29 10:00:00"}, "DATETIME": {leapDay, midnight, lastTick, "2024-02-29", "2024-02-29 10:00:00"}, "DATETIME(3)": {leapDay, "2024-02-29 12:00:00.0009"},
		"DATETIME(6)": {leapDay}, "TIMESTAMP NULL": {leapDay, "2024-02-29 10:00:00"}, "TIMESTAMP(6) NULL": {leapDay},
		"TIME": {"10:00:00", "00:00:00", "-10:00:00", "100:00:00", "12:30:45.6"}, "TIME(2)": {"12:30:45.678", "10:00:00"}, "TIME(6)": {"12:30:45.678"},
		"CHAR(5)": {"ab", "ab  ", "a", "A", "日本", "ß", "ss", 42}, "VARCHAR(8)": {"ab", "a ", "日本", "abcdefgh", 42, 6.5, true, "10:00:00", []byte("ab")},
		"CHAR(6) CHARACTER SET latin1": {"ä", "ab"}, "VARCHAR(20) CHARACTER SET latin1": {"ä", "ß", "ab  "}, "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": {"ab", "AB", "日本", "2024-02-29 10:00:00"},
		"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci": {"ß", "ss", "日本", "ä"}, "VARCHAR(8) CHARACTER SET ascii": {"ab"}, "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": {"ß", "ä", "s"},
		"VARCHAR(40) KEY v(1)": {"ß", "ss", "s", "ab", "ä"}, "TEXT KEY v(2)": {"ab", "ß", "日本"}, "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin KEY v(2)": {"日本", "ß", "ss"},
		"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci KEY v(1)": nil, "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci KEY v(2)": nil, "VARCHAR(20) CHARACTER SET latin1 KEY v(2)": {"ß", "ab  "}, "VARBINARY(20) KEY v(1)": {[]byte("ab")},
		"BLOB KEY v(2)": {[]byte("ab")}, "CHAR(6) KEY v(3)": {"ab", "s"}, "INT NOT NULL DEFAULT 99": {42},
		"BINARY(5)": {[]byte("ab"), "ab", []byte{1}}, "VARBINARY(5)": {[]byte("ab"), []byte("ab "), "ab", []byte{0xff, 0xfe}},
	}
	postgresTypes = map[string][]any{
		"bigint": {42}, "integer": {42}, "smallint": {42}, "boolean": {true, false}, "numeric": {1.236, "1.236", 42}, "numeric(10,2)": {1.236, "-7.015", 42, 100.0},
		"real": {0.1, float32(0.1), 2.5}, "double precision": {0.1, 1e300}, "text": {"ab", "AB", "日本", "ß", "a "}, "varchar(8)": {"ab", "日本"}, "char(5)": {"ab", "ab  ", "a"}, `"char"`: {"a", "b"},
		"bytea": {[]byte("ab"), []byte{0xff, 0xfe}}, "date": {leapDay, "2024-02-29"}, "timestamp": {leapDay}, "timestamp(3)": {leapDay}, "timestamptz(0)": {leapDay, midnight}, "time": {"10:00:00", "12:30:45.678"}, "time(0)": {"12:30:45.678"},
		"interval": {"10:00:00"}, "uuid": {"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}, "inet": {"::1", "127.0.0.1"}, "jsonb": {`{"a": 1}`}, "bit(1)": {"1", "0"}, "varbit(5)": {"1"}, "name": {"ab"}, "money": {"42"},
		`text COLLATE "C"`: {"ab"},
	}
	sqliteTypes = map[string][]any{
		"INTEGER": {42, "42", 7.0, 6.4, "6.4", "ab", true}, "BIGINT": {int64(1)<<53 + 1}, "TEXT": {5, 6.5, "ab", []byte("ab"), leapDay}, "REAL": {5, "2.5", 0.1, int64(1) << 53}, "NUMERIC": {"42", "ab", 0.1}, "BLOB": {[]byte("ab"), "ab", 5},
		"DATETIME": {leapDay}, "TEXT COLLATE NOCASE": {"ab", "AB"}, "TEXT COLLATE RTRIM": {"ab  "}, "DECIMAL(10,2)": {1.236, "1.236"}, "BOOLEAN": {true}, "VARCHAR(8)": {"ab", 42},
	}
)

// The row that an upsert met is found, or none is, whatever the type of a unique column, the
// value and the way in which the driver sends it. The database itself says which row it met:
// it marks it.
func TestGormPluginFindsTheRowThatWasMetByATypeOrNone(t *testing.T) {
	for _, target := range typedTargets {
		t.Run(target.name, func(t *testing.T) {
			db := opener(t, target.dialector(t))(&gorm.Config{Logger: logger.Discard})
			must(t, db.Use(newPlugin()))
			number := 0
			for typ, known := range target.types {
				number++
				table := fmt.Sprint("typeds", number)
				typ, key, _ := strings.Cut(typ, " KEY ")
				t.Run(typ+key, func(t *testing.T) {
					must(t, db.Exec(fmt.Sprintf("CREATE TABLE %s (id bigint PRIMARY KEY, v %s, u varchar(20), hit int NOT NULL DEFAULT 0, CONSTRAINT a%d UNIQUE (%s), CONSTRAINT b%d UNIQUE (u))", table, typ, number, cmp.Or(key, "v"), number)).Error)
					(&typedTable{T: t, name: table, known: known}).check(db)
				})
			}
		})
	}
}

// A typedTable is a table of typed rows.
type typedTable struct {
	*testing.T
	tx    *gorm.DB
	name  string
	known []any // that must be found
}

const (
	decoy = 900 // the key of the row with the text "decoy", which no value meets
)

func (tt *typedTable) check(db *gorm.DB) {
	tt.Helper()
	tt.tx = db.Begin()
	must(tt.T, tt.tx.Error)
	defer tt.tx.Rollback()
	ignore := map[string]string{"mysql": "IGNORE", "sqlite": "OR IGNORE"}[db.Name()]
	var storable, all []int // of typedValues: by an INSERT, and by one that ignores
	met := map[int]int64{}  // the keys of the rows that these meet
	for n, v := range typedValues {
		err := tt.try(fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, ?)", tt.name, n+1), v)
		if err != nil && db.Name() == "mysql" { // what it cuts and clamps
			_ = tt.try(fmt.Sprintf("INSERT IGNORE INTO %s (id, v) VALUES (%d, ?)", tt.name, n+1), v)
		}
		if id := tt.met(n, v); id > 0 {
			met[n], all = id, append(all, n)
			if err == nil || repeats.MatchString(err.Error()) {
				storable = append(storable, n)
			}
		}
	}
	must(tt.T, tt.tx.Exec(fmt.Sprintf("INSERT INTO %s (id, u) VALUES (%d, 'decoy')", tt.name, decoy)).Error)
	text := "decoy"
	found := tt.compare("", nil, storable, met) + tt.compare(ignore, nil, all, met)
	tt.compare("", &text, storable, nil) // like two rows
	tt.compare(ignore, &text, all, nil)
	for _, v := range tt.known {
		n := slices.IndexFunc(storable, func(n int) bool { return reflect.DeepEqual(typedValues[n], v) })
		if n < 0 {
			tt.Errorf("%T %v is not stored; want it stored, to be found", v, v)
		} else {
			tt.compare("", nil, storable[n:n+1], met)
			tt.compare("", &text, storable[n:n+1], nil)
		}
	}
	tt.Logf("%d of %d values found", found, len(storable)+len(all))
}

// compare upserts rows with the values of the numbers in list, and compares their keys with
// those that they met. It returns how many were found.
func (tt *typedTable) compare(modifier string, text *string, list []int, met map[int]int64) (found int) {
	tt.Helper()
	keys, err := tt.create(modifier, text, list)
	if err != nil {
		tt.Errorf("Create %q of %d rows = %v; want no error", modifier, len(list), err)
		return 0
	}
	for at, n := range list {
		v := typedValues[n]
		known := text == nil && modifier == "" && slices.ContainsFunc(tt.known, func(k any) bool { return reflect.DeepEqual(k, v) })
		if keys[at] == met[n] {
			found++
		} else if keys[at] != 0 || known {
			tt.Errorf("Create %q of %d rows: %T %#v has the key %d; want %d", modifier, len(list), v, v, keys[at], met[n])
		}
	}
	return found
}

// repeats is an error of a value that is stored already.
var repeats = regexp.MustCompile("Duplicate|duplicate|UNIQUE")

// try runs a statement that may fail.
func (tt *typedTable) try(statement string, args ...any) error {
	tt.Helper()
	if tt.tx.Name() != "postgres" {
		return tt.tx.Exec(statement, args...).Error
	}
	must(tt.T, tt.tx.Exec("SAVEPOINT typed").Error)
	err := tt.tx.Exec(statement, args...).Error
	if err != nil {
		must(tt.T, tt.tx.Exec("ROLLBACK TO SAVEPOINT typed").Error)
	}
	return err
}

// met returns the key of the stored row that an upsert of value n marks, or 0.
func (tt *typedTable) met(n int, v any) (id int64) {
	tt.Helper()
	upsert := "INSERT IGNORE INTO %s (id, v) VALUES (%d, ?) ON DUPLICATE KEY UPDATE hit = %d"
	if tt.tx.Name() != "mysql" {
		upsert = "INSERT INTO %s (id, v) VALUES (%d, ?) ON CONFLICT (v) DO UPDATE SET hit = %d"
	}
	if tt.try(fmt.Sprintf(upsert, tt.name, 1000+n, n+1), v) != nil {
		return 0
	}
	must(tt.T, tt.tx.Raw(fmt.Sprintf("SELECT id FROM %s WHERE hit = %d", tt.name, n+1)).Scan(&id).Error)
	return id
}

// create upserts rows with the values of the numbers in list.
func (tt *typedTable) create(modifier string, text *string, list []int) (keys []int64, err error) {
	tt.Helper()
	rows := make([]map[string]any, len(list))
	for at, n := range list {
		rows[at] = map[string]any{"v": typedValues[n]}
		if text != nil {
			rows[at]["u"] = *text
		}
	}
	var with clause.Expression = clause.OnConflict{DoNothing: true}
	if modifier != "" {
		with = clause.Insert{Modifier: modifier}
	}
	err = tt.tx.Table(tt.name).Model(&typed{}).Clauses(with).Create(&rows).Error
	for _, row := range rows {
		id, _ := row["id"].(types.Snowflake)
		keys = append(keys, id.Int64())
	}
	return keys, err
}
