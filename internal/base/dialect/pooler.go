package dialect

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoTransactions means that statements work on a connection and transactions do not.
var ErrNoTransactions = errors.New("the server takes statements but no transactions")

// LostStatement reports whether PostgreSQL does not know a prepared statement, has another one of
// its name, or was sent the parameters of another one. A pooler that gives each transaction
// another connection causes these errors.
func LostStatement(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.State == "26000" || a.State == "42P05" || // invalid_sql_statement_name, duplicate_prepared_statement
			a.State == "08P01" && strings.Contains(e.Error(), "bind message") // protocol_violation
	})
}

// NoTransactions reports whether a pooler has refused a transaction, as PgBouncer does in
// statement mode. lib/pq hides the pooler's answer; see [ErrNoTransactions].
func NoTransactions(err error) bool {
	return errors.Is(err, ErrNoTransactions) || saidIn(err, func(a Answer, e error) bool {
		return a.State == "08P01" && strings.Contains(e.Error(), "transaction blocks not allowed")
	})
}

// ExplainPooler adds advice to an error that a pooler's mode causes. It wraps err, which may be
// nil, at most once.
func ExplainPooler(err error) error {
	var advice string
	switch {
	case NoTransactions(err):
		advice = "a pooler in statement mode does that: set it to transaction or session mode"
	case LostStatement(err):
		advice = "behind a pooler, set default_query_exec_mode=exec (pgx) or binary_parameters=yes (lib/pq)"
	default:
		return err
	}
	if errors.As(err, new(*explained)) {
		return err
	}
	return &explained{advice, err}
}

type explained struct {
	advice string
	err    error
}

func (e *explained) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.advice) }
func (e *explained) Unwrap() error { return e.err }
