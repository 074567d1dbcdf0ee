//go:build cgo

package dialect

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors/sqlite"
)

// Errors as drivers have them.
var (
	postgres = drivererrors.Postgres
	mysql    = drivererrors.MySQL
	mattn    = drivererrors.Mattn
)

// duringCommit is 1180, whose text has the reason.
func duringCommit(message string) error {
	return &drivererrors.MySQLError{Number: 1180, Message: message}
}

// coded is an error of a program, whose numbers mean something else.
type coded struct{ Number uint16 }

func (coded) Error() string { return "busy" }
func (coded) Code() int     { return 5 }

// questions are the predicates of this package by name.
var questions = map[string]func(error) bool{
	"Retryable": Retryable, "LockNotAvailable": LockNotAvailable, "DuplicateKey": DuplicateKey, "Exists": Exists,
	"NoTable": NoTable, "NoColumn": NoColumn, "NoTarget": NoTarget, "ReadOnly": ReadOnly, "BadConnection": BadConnection, "Interrupted": Interrupted,
	"RowFault": RowFault, "Refused": Refused, "OutOfRange": OutOfRange, "Denied": Denied, "NotCommitted": NotCommitted, "EndedBefore": EndedBefore,
	"LostAtCommit": LostAtCommit, "NotPrepared": NotPrepared, "UnknownVariable": UnknownVariable, "InTransaction": InTransaction,
	"StalePlan": StalePlan, "Unread": Unread, "Unsupported": Unsupported,
}

func TestErrorsOfDriversAreRecognised(t *testing.T) {
	var noPostgres *drivererrors.PostgresError
	for _, c := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{io.ErrUnexpectedEOF, []string{"BadConnection", "Interrupted"}},
		{driver.ErrBadConn, []string{"BadConnection", "Interrupted", "Unread"}},
		{errors.New("pq: there is already a query being processed on this connection"), []string{"Unread"}},
		{errors.New("busy buffer"), []string{"Unread"}}, // MySQL
		{errors.New("conn busy"), []string{"Unread"}},   // pgx, without database/sql
		{&net.OpError{Op: "read", Err: errors.New("reset")}, []string{"BadConnection", "Interrupted"}},
		{sql.ErrTxDone, []string{"Interrupted"}},
		{sql.ErrConnDone, []string{"Interrupted"}},
		{net.ErrClosed, []string{"Interrupted"}},
		{context.Canceled, nil},
		{noPostgres, nil},
		{coded{1213}, nil},
		{errors.New("connection refused"), nil},

		{postgres("40001"), []string{"Retryable", "NotCommitted"}},
		{postgres("40P01"), []string{"Retryable", "NotCommitted"}},
		{postgres("55P03"), []string{"LockNotAvailable", "NotCommitted", "Refused"}},
		{postgres("23505"), []string{"DuplicateKey", "RowFault", "NotCommitted", "Refused"}},
		{postgres("23503"), []string{"RowFault", "NotCommitted", "Refused"}},
		{postgres("42P07"), []string{"Exists", "NotCommitted", "Refused"}},
		{postgres("42710"), []string{"Exists", "NotCommitted", "Refused"}}, // the row type of a table that another is making
		{postgres("42P01"), []string{"NoTable", "NotCommitted", "Refused"}},
		{postgres("42703"), []string{"NoColumn", "NotCommitted", "Refused"}},
		{postgres("42P10"), []string{"NoTarget", "NotCommitted", "Refused"}},
		{postgres("42501"), []string{"Denied", "NotCommitted", "Refused"}},
		{postgres("25006"), []string{"ReadOnly", "NotCommitted", "Refused"}},
		{postgres("57014"), []string{"Interrupted", "NotCommitted", "Refused"}}, // a deferred trigger was cancelled
		{postgres("P0001"), []string{"RowFault", "NotCommitted", "Refused"}},
		{postgres("22001"), []string{"RowFault", "NotCommitted", "Refused"}},
		{postgres("44000"), []string{"RowFault", "NotCommitted", "Refused"}},
		{postgres("54000"), []string{"RowFault", "NotCommitted", "Refused"}},
		{postgres("54001"), []string{"NotCommitted", "Refused"}}, // the statement is too complex
		{postgres("40003"), nil}, // CockroachDB: the result is ambiguous
		{postgres("08006"), []string{"BadConnection", "Interrupted"}},
		{postgres("53100"), nil},
		{postgres("57P01"), []string{"BadConnection", "Interrupted"}},
		{postgres("57P02"), []string{"BadConnection", "Interrupted"}},
		{postgres("57P03"), []string{"BadConnection", "Interrupted"}},
		{postgres("25P03"), []string{"BadConnection", "Interrupted", "NotCommitted", "Refused"}}, // before the COMMIT
		{postgres("58000"), nil},
		{postgres("XX000"), nil},
		{postgres(""), nil},
		{postgres("4"), nil},
		{postgres("23"), nil},
		{errors.New("commit unexpectedly resulted in rollback"), []string{"NotCommitted"}},
		{errors.New("pq: could not complete operation in a failed transaction"), []string{"NotCommitted"}},
		{errors.New("pq: Could not complete operation in a failed transaction"), []string{"NotCommitted"}},

		{mysql(1213), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(1205), []string{"Retryable", "NotCommitted"}},
		{mysql(1020), []string{"Retryable", "NotCommitted"}},
		{mysql(1062), []string{"DuplicateKey", "RowFault", "Refused"}},
		{mysql(1586), []string{"DuplicateKey", "RowFault", "Refused"}},
		{mysql(1050), []string{"Exists", "Refused"}},
		{mysql(1146), []string{"NoTable", "Refused"}},
		{mysql(1049), []string{"NoTable", "Refused"}},
		{mysql(1054), []string{"NoColumn", "Refused"}},
		{mysql(1193), []string{"UnknownVariable", "Refused"}},
		{mysql(1235), []string{"Unsupported", "Refused"}},
		{mysql(1568), []string{"InTransaction", "Refused"}},
		{mysql(1044), []string{"Denied", "Refused"}},
		{mysql(1142), []string{"Denied", "Refused"}},
		{mysql(1143), []string{"Denied", "Refused"}},
		{mysql(1290), []string{"ReadOnly", "NotCommitted", "Refused"}},
		{mysql(1792), []string{"ReadOnly", "NotCommitted", "Refused"}},
		{mysql(1836), []string{"ReadOnly", "NotCommitted", "Refused"}},
		{mysql(1690), []string{"OutOfRange", "RowFault", "Refused"}},
		{mysql(3100), []string{"Refused"}}, // a member of a group that has lost the others, which may have committed it
		{mysql(3101), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(8002), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(8022), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(8028), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(9007), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{&drivererrors.MySQLError{Number: 1105, Message: "pessimistic lock retry limit reached"}, []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{mysql(1021), []string{"Refused"}}, // disk full
		{mysql(1040), nil},
		{mysql(1047), []string{"NotPrepared"}},
		{mysql(1053), []string{"BadConnection", "Interrupted"}},
		{mysql(1180), []string{"Refused"}},
		// Of a MySQL group, in two languages, and of MariaDB: InnoDB has rolled it back.
		{duringCommit("Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{duringCommit("Fehler 149 - 'Lock deadlock; Retry transaction' beim COMMIT"), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		{duringCommit("Got error 149 \"Lock deadlock; Retry transaction\" during COMMIT"), []string{"Retryable", "NotCommitted", "LostAtCommit"}},
		// Of a Galera node that has lost its cluster, and of a full disk.
		{duringCommit("Error while appending streaming replication fragment(provider status: Not connected to Primary Component)"), []string{"Refused"}},
		{duringCommit("Got error 6 \"No such device or address\" during COMMIT"), []string{"Refused"}},
		{duringCommit("Got error 28 - 'No space left on device' during COMMIT"), []string{"Refused"}},
		{mysql(1317), []string{"Interrupted", "Refused"}},
		{mysql(1927), []string{"BadConnection", "Interrupted"}},
		{errors.New("invalid connection"), []string{"BadConnection", "Interrupted"}},
		{errors.New("cannot start a transaction within a transaction"), []string{"InTransaction"}}, // SQLite, by a driver of any type
		{errors.New("conn closed"), []string{"BadConnection", "Interrupted"}},

		{mattn(5), []string{"Retryable", "NotCommitted"}},
		{mattn(sqlite3.ErrBusySnapshot), []string{"Retryable", "NotCommitted"}},
		{mattn(sqlite3.ErrLockedSharedCache), []string{"Retryable", "NotCommitted"}},
		{mattn(1), []string{"Refused"}},
		{mattn(9), []string{"Interrupted", "Refused"}},
		{mattn(6), []string{"Refused"}},
		{mattn(18), []string{"RowFault", "Refused"}},
		{mattn(8), []string{"ReadOnly", "Refused"}},
		{mattn(sqlite3.ErrConstraintPrimaryKey), []string{"DuplicateKey", "RowFault", "NotCommitted", "Refused"}},
		{mattn(sqlite3.ErrConstraintUnique), []string{"DuplicateKey", "RowFault", "NotCommitted", "Refused"}},
		{mattn(sqlite3.ErrConstraintForeignKey), []string{"RowFault", "NotCommitted", "Refused"}},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, []string{"Retryable", "NotCommitted"}},
		{mattn(sqlite3.ErrIoErrFsync), []string{"Refused"}},
		{&sqlite.Error{Result: 517}, []string{"Retryable", "NotCommitted"}},
		{&sqlite.Error{Result: 2067}, []string{"DuplicateKey", "RowFault", "NotCommitted", "Refused"}},
		{sqlite.Typed(517), []string{"Retryable", "NotCommitted"}},
		{&sqlite.Error{Result: 13}, []string{"NotCommitted", "Refused"}},
	} {
		wrapped := fmt.Errorf("insert: %w; then %w: %w", fmt.Errorf("rows 1 to 2: %w", c.err), errors.New("x"), errors.New("y"))
		if c.err == nil {
			wrapped = nil
		}
		for _, err := range []error{c.err, wrapped, errors.Join(errors.New("before"), wrapped)} {
			got := map[string]bool{}
			for name, ask := range questions {
				if ask(err) {
					got[name] = true
				}
			}
			want := map[string]bool{}
			for _, name := range c.want {
				want[name] = true
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%v is %v; want %v", err, got, want)
			}
		}
	}
}

// One result code of SQLite stands for many mistakes. Its text tells them apart.
func TestMistakesInStatementsOfSQLiteAreToldByTheirText(t *testing.T) {
	db := memory(t)
	if _, err := db.Exec("CREATE TABLE a (b)"); err != nil {
		t.Fatal(err)
	}
	for text, ask := range map[string]func(error) bool{
		"SELECT 1 FROM nowhere":                               NoTable,
		"SELECT 1 FROM nowhere.x":                             NoTable,
		"CREATE TABLE nowhere.x (y)":                          NoTable,
		"SELECT c FROM a":                                     NoColumn,
		"INSERT INTO a (c) VALUES (1)":                        NoColumn,
		"CREATE TABLE a (b)":                                  Exists,
		"INSERT INTO a VALUES (1) ON CONFLICT (b) DO NOTHING": NoTarget,
		"COMMIT":       EndedBefore,
		"BEGIN; BEGIN": InTransaction,
	} {
		_, err := db.Exec(text)
		_, _ = db.Exec("ROLLBACK") // of what the text has begun
		for name, other := range questions {
			if want := reflect.ValueOf(other).Pointer() == reflect.ValueOf(ask).Pointer() || name == "Refused"; other(err) != want {
				t.Errorf("%s(%v) after %s = %v; want %v", name, err, text, !want, want)
			}
		}
	}
}

// The errors of drivers are told by names, and programs have some that are alike.
func TestErrorsThatLookLikeThoseOfDriversAreNotTaken(t *testing.T) {
	type MySQLError struct {
		error
		Number string
	}
	type Error struct{ coded }
	for _, err := range []error{MySQLError{errors.New("1213"), "1213"}, Error{coded{1213}}, sqlite.RefusedError(5), coded{1213}} {
		if got := Of(err); got != (Answer{}) {
			t.Errorf("Of(%#v) = %+v; want none", err, got)
		}
	}
	if f := field(reflect.ValueOf(1213), "Number"); f.IsValid() {
		t.Errorf("field(1213) = %v; want none", f)
	}
}

func TestStatementOutsideOfATransactionIsNotStoredIfTheDatabaseSaysSo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{postgres("23505"), true}, {postgres("22P02"), true}, {postgres("57014"), true}, {postgres("53100"), true}, {postgres("40001"), true},
		{postgres("08P01"), false}, {postgres("57P01"), false}, {postgres("58000"), false}, {postgres("XX000"), false}, {postgres("40003"), false},
		{mysql(1062), true}, {mysql(1406), true}, {mysql(1114), true}, {mysql(1213), true}, {mysql(8002), true},
		{mysql(1180), false}, {mysql(1053), false}, {mysql(1317), false}, {mysql(1105), false}, {mysql(2013), false}, {mysql(9001), false}, {mysql(1047), false},
		{fmt.Errorf("insert: %w", postgres("23514")), true},
		{driver.ErrBadConn, false}, {io.ErrUnexpectedEOF, false}, {context.Canceled, false}, {nil, false},
	} {
		if got := NotStored(c.err); got != c.want {
			t.Errorf("NotStored(%v) = %v; want %v", c.err, got, c.want)
		}
	}
}
