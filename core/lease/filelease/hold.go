package filelease

import "github.com/snowkey/snowkey/core/lease/leasestore"

// A holder of a row keeps a second lock for as long as it has the row. The lock is on a
// file of its own beside the slot. The system drops it when the process dies, however
// that happens. The flag in the record says that the owner has it.
//
// So a claim knows that an owner is dead: the flag is set and the lock is free. It then
// treats the row as released. A crashed process can start again at once if its limit is
// no further ahead than the skew. With a window no longer than the skew that is always
// so. Without the lock it would have to wait for the limit.
//
// Nothing but speed depends on it. The limit is never lowered, and the next range
// begins there. So a holder that lives without its lock is not in the way. It loses its
// row at the next renewal, and no ID repeats. That is also why the lock may be missing.
// A successor may take a row after its limit from a process that has stopped and still
// has the lock. The successor then goes without it, and asks again at each renewal.
//
// It is not the lock of the slot, which must be free for the operations of others.

// A holding is a holder's lock that this Store has.
type holding struct {
	owner string
	lock  file
}

// lockPath returns the path of the holder's lock of the slot at path.
func lockPath(path string) string { return path + ".held" }

// hold takes the holder's lock of the slot at path for owner, and reports whether owner
// has it now. Requires the lock of the slot, as do the functions below but letGo. That
// may come at any time, as may the end of the process.
func (s *Store) hold(path, owner string) bool {
	s.mu.Lock()
	h, ok := s.held[path]
	if ok {
		h.owner = owner // an owner before, in this process, has lost the row
		s.held[path] = h
	}
	closed := s.closed
	s.mu.Unlock()
	if ok || closed {
		return ok
	}
	// Without mu, which Close and the beginning of every operation need: the disk may
	// hang. The lock of the slot keeps others from doing the same at once.
	lock, err := s.open(lockPath(path), true)
	if err != nil {
		return false // the row is good without it
	}
	if ok, err := lock.tryLock(); !ok || err != nil {
		_ = lock.Close()
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // meanwhile
		_ = lock.Close()
		return false
	}
	s.held[path] = holding{owner, lock}
	return true
}

// abandoned reports whether nobody has the holder's lock of the slot at path. A lock of
// this Store counts too: it belongs to another open file than the one here.
func (s *Store) abandoned(path string) bool {
	lock, err := s.open(lockPath(path), false)
	if err != nil {
		return false
	}
	ok, err := lock.tryLock()
	_ = lock.Close()
	return ok && err == nil
}

// letGo drops the holder's lock of the slot at path if this Store has it for
// owner.
func (s *Store) letGo(path, owner string) {
	s.mu.Lock()
	h, ok := s.held[path]
	ok = ok && h.owner == owner
	if ok {
		delete(s.held, path)
	}
	s.mu.Unlock()
	if ok {
		_ = h.lock.Close()
	}
}

// lost drops the holder's lock if row, which an operation of owner has found, is
// another's. An operation may be refused while owner has the row: a request that was
// overtaken by a later one has an old nonce. To drop the lock then would make a live
// owner look dead.
func (s *Store) lost(path, owner string, row leasestore.Row) {
	if row.Owner != owner {
		s.letGo(path, owner)
	}
}
