package gormplugin

import "errors"

// What can be wrong with a statement, for errors.Is.
var (
	// ErrUnresolved means that an upsert stored no row under the key in memory,
	// that the row which it met instead could not be told, and that rows of
	// associations needed its key.
	ErrUnresolved = errors.New("gormplugin: stored row not found")
	// ErrKeyRewrite means that an upsert would write a new key over that of a
	// stored row, and so tear off what refers to it.
	ErrKeyRewrite = errors.New("gormplugin: upsert would rewrite the primary key of a stored row")
)

// A ModelError says what in a model cannot work. Every create of the model
// returns it, before any SQL.
type ModelError struct {
	Model  string // the Go type
	Field  string // the field of it, or of the model that refers to it
	Reason string // what is wrong, and what would be right
}

func (e *ModelError) Error() string {
	return "gormplugin: " + e.Model + "." + e.Field + ": " + e.Reason
}
