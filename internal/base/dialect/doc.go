// Package dialect holds what the library knows of each database by name: how it writes
// identifiers and parameters, what the errors of its drivers mean, and what its columns store of
// a value.
//
// Errors are recognized by their shape, without importing a driver, because a driver in go.mod
// would be every user's driver, and one driver is published as several packages. Each question
// examines err and everything that it wraps. An error of unknown origin answers no question, so
// false means "not known to be so".
//
// # A new database
//
// A new database begins with a constant in this package. Then each of its files needs a case for
// it, each directory with a file per database, such as core/keysql,
// needs one more, and these files decide by the name of a database:
//
//   - internal/base/sqlrow/table.go, internal/base/sqlrow/schema.go,
//     internal/base/sqlrow/transaction.go, internal/base/sqlrow/look.go,
//     internal/base/sqlrow/bind.go, internal/base/sqlrow/db.go: the table and its types, which schemas
//     a connection looks into, how a transaction begins, how rows are read without one, which
//     arguments become literals, what a lock means
//   - core/keysql/column.go: which of its files writes the expressions. It alone has warehouses too,
//     which are not Valid
//   - core/keysql/functions.go, core/keysql/partitions.go, core/keysql/default.go,
//     core/keysql/requirekey.go: which databases have functions, partitions, a source of keys, a
//     trigger, and how each is declared
//   - core/feed/feed.go, core/feed/back.go: how a database knows which transactions have not ended, and
//     keeps that a table went back
//   - core/lease/sqllease/register.go, core/lease/sqllease/history.go,
//     core/lease/sqllease/relayout.go: row locks, random order, which
//     write needs no transaction, how one statement writes two tables
//   - core/segment/sqlsegment/table.go, core/segment/sqlsegment/store.go,
//     core/segment/sqlsegment/greatest.go: the table, row locks, whether a number out of range is
//     stored as another, the greatest key of a user's table
//   - core/serial/sqlserial/table.go, core/serial/sqlserial/next.go,
//     core/serial/sqlserial/counter.go: the tables, how a statement returns the number that it took,
//     whether a number out of range is stored as another
//   - sqlxhelper/dialect.go: names of drivers, and what they do when the server is silent or a
//     connection ends
//   - internal/base/readback/database.go: how the rows that an upsert met are found
//   - internal/base/outcome/settle.go, internal/base/outcome/record.go,
//     internal/base/outcome/open.go: how a server shows whether a transaction is committed, over or
//     open, whether it can be asked before the COMMIT
//   - gormplugin/schemacheck/dialect.go: the queries and statements of schemacheck, which has a file
//     per database
//
// A test at the root keeps the list complete.
package dialect
