package sqlxhelper

import (
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// postgresError has what the errors of pgx and lib/pq have in common.
type postgresError struct{ state string }

func (e *postgresError) Error() string    { return "SQLSTATE " + e.state }
func (e *postgresError) SQLState() string { return e.state }

func postgres(state string) error { return &postgresError{state} }

// MySQLError is what go-sql-driver/mysql calls its errors, and what tells them.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d: %s", e.Number, e.Message) }

func mysql(number uint16) error { return &MySQLError{Number: number} }

func mattn(extended sqlite3.ErrNoExtended) error {
	return sqlite3.Error{Code: sqlite3.ErrNo(extended & 0xff), ExtendedCode: extended}
}
