package sqlxhelper

import (
	"fmt"
	"slices"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

// watched maps the *sql.Tx of all running InTx to their *record. It is a variable of the
// process because InTx and a Helper have only the transaction in common, in which nothing can
// be stored. The key is the *sql.Tx because Unsafe makes another *sqlx.Tx around it.
var watched sync.Map

// A record is what Helpers have inserted in one attempt of InTx. Its size does not depend on
// the number of rows. It is safe for concurrent use, although calls on one transaction do not
// overlap.
type record struct {
	mu sync.Mutex
	// last has the last inserted key of each place, or 0 if all were upserted, in the order in
	// which they were first written to.
	last []proof
	// xact identifies the transaction, if asked; it may be none.
	xact  xact
	asked bool
	// broken says why the savepoint of a call was not rolled back, or is nil. With stray, the
	// call may have sent statements after the end of the transaction.
	broken error
	stray  bool
}

// A place is a column of keys.
type place struct {
	dialect Dialect
	table   string // as in a call or a tag, bare
	column  string // of the primary key, bare
}

// recordOf returns the record of the InTx in whose transaction db inserts, or nil. db has
// passed connect.
func recordOf(db DB) *record {
	for _, layer := range layers(db) {
		// *sqlx.Tx has the method, and so has a type that embeds it.
		tx, ok := layer.(interface{ Unsafe() *sqlx.Tx })
		if !ok {
			continue
		}
		if r, ok := watched.Load(tx.Unsafe().Tx); ok {
			return r.(*record)
		}
	}
	return nil
}

// add notes that rows were written to a place. last is the key of the last one that was not
// stored before, or 0.
func (r *record) add(p place, last types.Snowflake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.last, func(o proof) bool { return o.place == p })
	if i < 0 {
		i = len(r.last)
		r.last = append(r.last, proof{place: p})
	}
	if last != 0 {
		r.last[i].key = last
	}
}

// unidentified reports, once, that the transaction has yet to be identified. r may be nil.
func (r *record) unidentified() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.asked
	r.asked = true
	return first
}

// identify notes the xact of the transaction.
func (r *record) identify(x xact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.xact = x
}

// mark returns a function that undoes what is noted from now on, except that a call has broken
// the transaction. r may be nil.
func (r *record) mark() (undo func()) {
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

// breaks notes that a call, which failed with err or with a panic if err is nil, has left the
// transaction unusable, because the rollback of its savepoint failed too. r may be nil.
//
// If err is a deadlock, that has ended the transaction. Otherwise an error outside of a Helper
// may have ended it earlier, and MySQL has committed the statements of the call one by one.
func (r *record) breaks(err, rollback error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken, r.stray = rollback, !dialect.Retryable(err)
}

// usable returns ErrTxBroken after a call that has broken the transaction. It does not wrap the
// cause, because only the call that met it decides whether the function runs again. r may be
// nil.
func (r *record) usable() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		return nil
	}
	return fmt.Errorf("%w: a call before this has failed: %s", ErrTxBroken, r.broken.Error())
}

// strayed reports whether something may be stored although the transaction is rolled back.
func (r *record) strayed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stray
}

// empty reports whether nothing was noted.
func (r *record) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last) == 0
}

// proofs returns the last inserted key of each place. All of these rows are stored or none,
// unless the function has rolled back a part of its work by a savepoint of its own.
func (r *record) proofs() []proof {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.last), func(p proof) bool { return p.key == 0 })
}
