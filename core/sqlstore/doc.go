// Package sqlstore has the configuration and the errors of SQL stores: packages sqllease, sqlsegment
// and sqlserial, which keep leases, segments and serials in a SQL database. It is no store itself.
//
//	config := sqlstore.Config{Dialect: sqlstore.PostgreSQL}
//	leases, err := sqllease.New(db, config)
//	segments, err := sqlsegment.New(db, config)
//	serials, err := sqlserial.New(db, config)
//
// Each Store has a method CreateTables, which creates the tables that are missing, and a method
// Statements, which returns the statements for those who run their migrations themselves.
//
// This package is stable.
package sqlstore
