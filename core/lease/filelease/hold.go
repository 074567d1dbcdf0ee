package filelease

import "github.com/snowkey/snowkey/core/lease/leasestore"

// The holder of a row keeps a second lock for as long as it has the row, on a file of its own
// beside the slot. The system drops the lock when the process dies, in whatever way. A flag in
// the record says that the owner has the lock.
//
// A claim can therefore tell that an owner is dead: the flag is set and the lock is free. It
// then treats the row as released. A process that has crashed can start again at once if its
// limit is no further ahead than the skew, as it always is with a window no longer than the
// skew; without the lock it would have to wait for the limit.
//
// Only speed depends on the lock. The limit is never lowered and the next range begins there,
// so a live holder without its lock merely loses its row at the next renewal, and no ID
// repeats. That is why the lock may be missing: a successor that takes a row after its limit,
// from a process that is stopped and still has the lock, goes without it and asks again at each
// renewal.
//
// The lock of the slot cannot serve for this, because it must be free for the operations of
// others.

// A holding is a holder's lock that this Store has.
type holding struct {
	owner string
	lock  file
}

// lockPath returns the path of the file with the holder's lock of the slot at path.
func lockPath(path string) string { return path + ".held" }

// hold takes the holder's lock of the slot at path for owner, and reports whether owner has it
// now. Like the functions below, except letGo, it requires the lock of the slot. letGo may be
// called at any time, just as the process may end at any time.
func (s *Store) hold(path, owner string) bool {
	s.mu.Lock()
	h, ok := s.held[path]
	if ok {
		h.owner = owner // the previous owner, in this process, has lost the row
		s.held[path] = h
	}
	closed := s.closed
	s.mu.Unlock()
	if ok || closed {
		return ok
	}
	// Without mu, because the disk may hang, and Close and the beginning of every operation
	// need it. The lock of the slot keeps others from doing the same meanwhile.
	lock, err := s.open(lockPath(path), true)
	if err != nil {
		return false // the row is valid without it
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

// abandoned reports whether no process has the holder's lock of the slot at path. A lock of
// this Store counts too, because it belongs to another open file.
func (s *Store) abandoned(path string) bool {
	lock, err := s.open(lockPath(path), false)
	if err != nil {
		return false
	}
	ok, err := lock.tryLock()
	_ = lock.Close()
	return ok && err == nil
}

// letGo drops the holder's lock of the slot at path if this Store has it for owner.
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

// lost drops the holder's lock if row, which an operation of owner has found, belongs to
// another owner. An operation may be refused while owner has the row, because a request that
// was overtaken by a later one has an old nonce; dropping the lock then would make a live owner
// look dead.
func (s *Store) lost(path, owner string, row leasestore.Row) {
	if row.Owner != owner {
		s.letGo(path, owner)
	}
}
