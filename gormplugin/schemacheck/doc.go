// Package schemacheck compares GORM models with the tables of a database, and reports
// everything that does not fit the keys of package gormplugin.
//
//	findings, err := schemacheck.Check(ctx, db, &Order{}, &Item{})
//	for _, f := range findings {
//		log.Print(f)
//	}
//
// Call [Check] in a test, when a service starts, or before a migration. Each [Problem] says
// what happens if nothing is done about it.
//
// # What it finds
//
//   - In models: no plugin, no key, a key that cannot work, two models of one table that
//     differ, a foreign key that is a pointer.
//   - In tables: columns that are missing, too narrow, of text, or of another sign than the
//     key that they refer to, a database that still counts, and unique indexes on
//     expressions. It looks at keys, at the foreign keys that refer to them, and at all other
//     fields whose type is of package types.
//   - On the connection: MySQL without strict mode.
//
// # What is guaranteed
//
// Check reads the catalog of the models' tables and writes nothing. To write statements for
// a column that foreign keys bind, it also reads about the tables at their other ends. It
// runs no statement of a finding.
//
// [Finding.Fix] says in words what to do, and [Finding.SQL] has the statements if the database
// alters tables in place. They convert every value to the key that it stands for, or fail before
// anything has changed: if a value might not be a key, they begin with a SELECT that fails on it.
// Foreign keys, NOT NULL, defaults and comments stay. Read the statements, and try them on a
// copy. SQLite cannot alter a column, so there a finding describes, for the table at hand, the
// steps of SQLite's documentation.
//
// Other findings without statements are values without one meaning as keys, such as UUIDs, bytes,
// JSON and rounded floats; columns of views and foreign tables, generated columns, and one that
// partitions its table; and on PostgreSQL columns that views or triggers read.
//
// # Under which conditions
//
//   - The database is PostgreSQL 12, SQLite 3.37, MySQL 8, MariaDB 10.6, or a later version.
//     An older catalog is an error.
//   - All models that share relations are given to one call, because a has-many child is
//     checked with the model that declares the relation.
//   - The statements of one finding run on one connection, in order, up to the first error,
//     while no program writes to the tables. On MySQL, after an error past a DROP, mend what the
//     error says, then run that statement and the rest. Then call Check again.
//   - On MySQL, foreign keys of tables in other databases than the models' are not looked up.
//     MySQL then refuses the change with error 1833.
//
// This package is stable.
package schemacheck
