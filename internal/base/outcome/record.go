package outcome

import (
	"context"
	"database/sql"
	"errors"
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
	last []noted
	// xact identifies the transaction, if asked; it may be none.
	xact       Xact
	identified bool
	// broken says why the savepoint of a call was not rolled back, or is nil. With stray, the
	// call may have sent statements after the end of the transaction.
	broken error
	stray  bool
	// wrote: something was written that is no proof.
	wrote bool

	savepoints []savepoint
	shared     bool // the latest savepoint has the array of last, which Add then copies
}

// A KeyColumn is a column of keys.
type KeyColumn struct {
	Dialect dialect.Dialect
	Table   string // bare, with or without its schema
	Column  string // of the primary key, bare
	Text    bool   // the column has the key in decimal, as a text
}

// A Proof is a row that is stored if and only if its transaction is committed.
type Proof struct {
	KeyColumn
	Key types.Snowflake
}

// A noted is the last inserted key of a place, and the first one, for Recheck.
type noted struct {
	Proof
	first types.Snowflake
	// suspect: the rows may be gone again.
	suspect bool
}

// A savepoint is what was noted before it.
type savepoint struct {
	name string
	last []noted
}

// Add notes that rows were written to a place. last is the key of the last one that was not
// stored before, or 0.
func (r *Record) Add(p KeyColumn, last types.Snowflake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own()
	i := slices.IndexFunc(r.last, func(n noted) bool { return n.KeyColumn == p })
	if i < 0 {
		i = len(r.last)
		r.last = append(r.last, noted{Proof: Proof{KeyColumn: p}})
	}
	if n := &r.last[i]; last != 0 {
		n.Key = last
		if n.first == 0 || n.suspect {
			n.first, n.suspect = last, false
		}
	}
}

// own makes last an array that no savepoint has. It requires mu.
func (r *Record) own() {
	if r.shared {
		r.last, r.shared = slices.Clone(r.last), false
	}
}

// Savepoint notes a savepoint of the function.
func (r *Record) Savepoint(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.savepoints, r.shared = append(r.savepoints, savepoint{name, slices.Clip(r.last)}), true
}

// RollbackTo takes back what was noted since the savepoint. It reports false if that is not known.
func (r *Record) RollbackTo(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.savepoint(name)
	if i < 0 {
		return false
	}
	r.last, r.shared, r.savepoints = r.savepoints[i].last, true, r.savepoints[:i+1]
	return true
}

// Release forgets a savepoint, and those after it.
func (r *Record) Release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.savepoint(name); i >= 0 {
		r.savepoints = r.savepoints[:i]
	}
}

// savepoint returns the index of the last savepoint of a name, or -1. It requires mu.
func (r *Record) savepoint(name string) int {
	for i, s := range slices.Backward(r.savepoints) {
		if s.name == name {
			return i
		}
	}
	return -1
}

// Unidentified reports, once, that the transaction has yet to be identified. r may be nil.
func (r *Record) Unidentified() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := !r.identified
	r.identified = true
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

// Stray notes that a statement may have been committed by itself.
func (r *Record) Stray() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stray = true
}

// Wrote notes that something was written that is no proof.
func (r *Record) Wrote() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = true
}

// Suspect notes that rows which were noted may be gone: a statement may have deleted them or
// changed their keys. [Record.Recheck] then decides.
func (r *Record) Suspect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own()
	for i := range r.last {
		r.last[i].suspect = true
	}
}

// Recheck keeps the proofs whose rows are there just before the COMMIT, if they may be gone. A row
// that was deleted proves nothing, and would be taken for one that was never stored. Where the
// last row of a place is gone, the first may be there.
//
// On PostgreSQL these proofs all go, because a SELECT that the user may not send would end a
// transaction that has done all its work, and the ID of the transaction makes up for them.
//
// After an error the connection may be lost, and nothing may be committed.
func (r *Record) Recheck(ctx context.Context, c Cancels, tx Tx) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own()
	for i := range r.last {
		n := &r.last[i]
		if !n.suspect {
			continue
		}
		for _, key := range []types.Snowflake{n.Key, n.first, 0} {
			if n.Key = key; key == 0 {
				break
			}
			seen, err := n.seen(ctx, c, tx)
			if err != nil {
				return err
			}
			if seen {
				break
			}
		}
	}
	return nil
}

// seen reports whether a SELECT in the transaction of the row finds it.
func (p Proof) seen(ctx context.Context, c Cancels, tx Tx) (bool, error) {
	if p.Dialect == dialect.PostgreSQL {
		return false, nil
	}
	_, err := Call(ctx, c, func() (one int, err error) {
		return one, dialect.One(ctx, tx, []any{&one}, p.unlocked(), p.value())
	}, nil)
	if errors.Is(err, sql.ErrNoRows) || dialect.Denied(err) || dialect.NoTable(err) || dialect.NoColumn(err) {
		return false, nil
	}
	return err == nil, err
}

// value returns the key as the column has it.
func (p Proof) value() any {
	if p.Text {
		return p.Key.String()
	}
	return p.Key
}

// strayed reports whether something may be stored although the transaction is rolled back.
func (r *Record) strayed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stray
}

// empty reports whether nothing was written.
func (r *Record) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.last) == 0 && !r.wrote
}

// Proofs returns the last inserted key of each place. All of these rows are stored or none,
// unless the function has rolled back a part of its work by a savepoint of its own.
func (r *Record) Proofs() []Proof {
	r.mu.Lock()
	defer r.mu.Unlock()
	var proofs []Proof
	for _, n := range r.last {
		if n.Key != 0 {
			proofs = append(proofs, n.Proof)
		}
	}
	return proofs
}
