package gormplugin

import "errors"

// The errors of a statement, for errors.Is.
var (
	// ErrUnresolved means that an upsert met a stored row that cannot be identified,
	// and that associations need its key.
	ErrUnresolved = errors.New("gormplugin: stored row not found")
	// ErrKeyRewrite means that an upsert would overwrite the key of a stored row, which
	// other rows may refer to.
	ErrKeyRewrite = errors.New("gormplugin: upsert would rewrite the primary key of a stored row")
	// ErrNoKey means that a row would be stored with the key 0 or NULL. The error names the
	// row.
	ErrNoKey = errors.New("gormplugin: row without a key")
)

// A ModelError says why a model cannot work. Every create of the model returns it before
// any SQL.
type ModelError struct {
	Model  string // the Go type
	Field  string // a field of the model
	Reason string // what is wrong and what to do
}

func (e *ModelError) Error() string {
	return "gormplugin: " + e.Model + "." + e.Field + ": " + e.Reason
}
