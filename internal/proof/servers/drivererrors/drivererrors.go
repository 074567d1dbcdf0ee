// Package drivererrors has errors like those of drivers, for tests that must not depend
// on these drivers. Package sqlite below it has those whose package tells what they are.
package drivererrors

import "fmt"

// A PostgresError has what the errors of pgx and lib/pq have in common.
type PostgresError struct{ State string }

func (e *PostgresError) Error() string { return "SQLSTATE " + e.State }

// SQLState returns the code of the error.
func (e *PostgresError) SQLState() string { return e.State }

// Postgres returns an error of PostgreSQL.
func Postgres(state string) error { return &PostgresError{state} }

// MySQLError is what go-sql-driver/mysql calls its errors, and what tells them.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d: %s", e.Number, e.Message) }

// MySQL returns an error of MySQL or MariaDB.
func MySQL(number uint16) error { return &MySQLError{Number: number} }
