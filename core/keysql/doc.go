// Package keysql writes SQL that takes keys apart, for people who read tables without Go:
// in psql, in a report, in a view.
//
//	orders, err := keysql.New(keysql.PostgreSQL, core.Default(), "id")
//	…
//	fmt.Println("SELECT", orders.Time(), "FROM orders")
//
// A Go program needs none of it. It has core.Layout: Parts takes a key apart, and Min and
// Max turn a span of time into keys. The results are the same, as tests on each database
// show.
//
// Every method returns an expression. It may stand in a list of columns, in GROUP BY and
// ORDER BY, in a view, and on either side of a comparison. Put parentheses around it where
// another operator follows. It does not depend on the session's time zone.
//
// # Limits
//
//   - PostgreSQL 14, MySQL 5.7, MariaDB 10.3, SQLite 3.16, or newer.
//   - The databases keep microseconds. A layout whose Unit or Epoch has a fraction of one
//     is an error.
//   - Times are exact until 285 years after the Epoch. A generator ends after 250.
//   - The column holds keys of the layout. Others, such as the numbers of an old counter,
//     have parts without meaning. If their time is beyond what the database holds, it is
//     NULL or an error.
package keysql
