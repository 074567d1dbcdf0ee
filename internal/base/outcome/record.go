package outcome

import (
	"slices"
	"sync"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

// A Record is what was inserted in one attempt, and what happened to its transaction. Its size
// does not depend on the number of rows. It is safe for concurrent use, although calls on one
// transaction do not overlap. The zero value is an empty one.
type Record struct {
	mu sync.Mutex
	// last has the last inserted key of each place, or 0 if all were upserted, in the order in
	// which they were first written to.
	last []Proof
	// xact identifies the transaction, if asked; it may be none.
	xact  Xact
	asked bool
	// broken says why the savepoint of a call was not rolled back, or is nil. With stray, the
	// call may have sent statements after the end of the transaction.
	broken error
	stray  bool
}

// A Place is a column of keys.
type Place struct {
	Dialect dialect.Dialect
	Table   string // bare, with or without its schema
	Column  string // of the primary key, bare
}

// A Proof is a row that is stored if and only if its transaction is committed.
type Proof struct {
	Place
	Key types.Snowflake
}

// Add notes that rows were written to a place. last is the key of the last one that was not
// stored before, or 0.
func (r *Record) Add(p Place, last types.Snowflake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.last, func(o Proof) bool { return o.Place == p })
	if i < 0 {
		i = len(r.last)
		r.last = append(r.last, Proof{Place: p})
	}
	if last != 0 {
		r.last[i].Key = last
	}
}

// Unidentified reports, once, that the transaction has yet to be identified. r may be nil.
func (r *Record) Unidentified() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.asked
	r.asked = true
	return first
}

// Identify notes the Xact of the transaction.
func (r *Record) Identify(x Xact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.xact = x
}

// Mark returns a function that undoes what is noted from now on, except that a call has broken
// the transaction. r may be nil.
func (r *Record) Mark() (undo func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := slices.Clone(r.last)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = last
	}
}

// Break notes that a call, which failed with err or with a panic if err is nil, has left the
// transaction unusable, because the rollback of its savepoint failed too. r may be nil.
//
// If err is a deadlock, that has ended the transaction. Otherwise an error outside of the call
// may have ended it earlier, and MySQL has committed the statements of the call one by one.
func (r *Record) Break(err, rollback error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken, r.stray = rollback, !dialect.Retryable(err)
}

// Broken returns why the transaction is no longer usable, or nil. r may be nil.
func (r *Record) Broken() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// strayed reports whether something may be stored although the transaction is rolled back.
func (r *Record) strayed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stray
}

// empty reports whether nothing was noted.
func (r *Record) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last) == 0
}

// Proofs returns the last inserted key of each place. All of these rows are stored or none,
// unless the function has rolled back a part of its work by a savepoint of its own.
func (r *Record) Proofs() []Proof {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.last), func(p Proof) bool { return p.Key == 0 })
}
