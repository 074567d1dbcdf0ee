// Package readback finds the stored row that each row of an upsert has met, for both plugins.
//
// The answers of the statement do not tell. MySQL counts two for an update, and its count of other
// rows depends on the connection; RETURNING has no order on PostgreSQL and no rows for DO NOTHING,
// and MySQL lacks it. The rows are therefore looked up afterwards, in the transaction of the upsert.
//
// # The order of looks
//
//  1. Fresh keys, which the call has assigned, by key. Nothing else uses them, so a stored row with
//     one is the row that was inserted.
//  2. The other rows by the target of the upsert, with the values as they were sent. A stored row
//     that has exactly these values equals the row in the unique key, whatever the types and the
//     collation of that are. MySQL compares by other rules than it stores, so this look is left out
//     there; and 20 rows or more are worth the query of the catalog that the next look takes.
//  3. Rows that are not found in this way, or more than once, by the target again, in the form
//     in which its columns store values: a DECIMAL(10,2) keeps 1.23 of 1.234.
//  4. Rows that are not found either and have a key of the caller, by that key. Such a row was
//     inserted, because otherwise a stored row would equal it in the target. A key of the caller
//     proves nothing before, because the row that was met may have another one.
//
// An upsert without a target goes by every unique key, and so do all of GORM on MySQL. A stored row
// with a primary key that the caller has set is then the one that was met, and looked up with the
// fresh keys. The other rows are looked up by all unique keys that the catalog lists, one after
// another, to find those that equal two stored rows.
//
// The database compares, because only it knows its collations and the precision of its columns.
// The types are read in the look that needs them, in the transaction of the upsert, and are never
// kept for another statement, because a new release may alter the table at any time, and by an old
// type a row would get the key of another.
//
// A row for which this leaves a doubt is not found: Find never guesses.
package readback
