// Package schemacheck compares GORM models with the tables of a database, and
// reports what does not fit the keys of package gormplugin.
//
//	findings, err := schemacheck.Check(ctx, db, &Order{}, &Item{})
//	for _, f := range findings {
//		log.Print(f)
//	}
//
// Call it in a test, when a service starts, or before a migration.
//
// # What it finds
//
//   - In models: no plugin, no key, a key that cannot work, two models of one table
//     that differ, a foreign key that is a pointer.
//   - In tables: columns that are missing, too narrow, of text, or of another sign
//     than the key that they refer to, a database that still counts, and unique
//     indexes on expressions. It looks at keys, at foreign keys that refer to them,
//     and at all other fields of the types of package types.
//   - On the connection: MySQL without strict mode.
//
// Each [Problem] says what happens if nothing is done.
//
// # What is guaranteed
//
// Check reads the catalog and writes nothing. It runs no statement of a finding. It
// looks at the tables of the models. To write statements for a column that foreign
// keys bind, it also looks at the tables at their other ends.
//
// [Finding.Fix] is the way out in words. [Finding.SQL] has it in statements, where the
// database can alter a table in place. They convert every value to the key that it
// stands for, or fail before anything is changed. Foreign keys, NOT NULL, defaults and
// comments stay as they were. Read the statements, and try them on a copy.
//
// SQLite alters no column. There a finding describes the steps that SQLite's
// documentation gives, for the table at hand, and has no statements.
//
// # Under which conditions
//
//   - PostgreSQL 12, SQLite 3.37, MySQL 8 or MariaDB 10.6, or later ones. An older
//     catalog is an error.
//   - All models that share relations are given to one call: a has-many child is
//     looked at with the model that declares the relation.
//   - The statements of one finding run on one connection, in their order, up to the
//     first error, while no program writes to the tables. Then call Check again.
//   - On MySQL, foreign keys of tables in other databases than those of the models are
//     not looked up. MySQL then refuses the change with error 1833.
package schemacheck
