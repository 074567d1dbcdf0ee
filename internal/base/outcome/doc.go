// Package outcome runs a function in a transaction and finds out how the transaction ended:
// stored, not stored, or not known.
//
// A COMMIT whose answer is lost has taken place, has not, or may still take place. [Transaction]
// settles which, by the ID of the transaction where the database has one, see [Xact], and by its
// rows elsewhere: their keys exist before they do, and nothing else uses them, see [Pending].
// [Attempts] runs the function again after a deadlock, and after a commit that is known not to
// have taken place.
//
// The plugins know which rows a function inserts, and note them in a [Record].
package outcome
