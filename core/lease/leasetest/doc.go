// Package leasetest certifies implementations of [lease.Store].
//
// Uniqueness of IDs rests on the store: it must change a row only if the row is
// still what was read, refuse what an old holder asks, forget nothing, and say
// "lost" or "done" only when it knows. [Run] checks each of these claims in a
// subtest of its own, against any store:
//
//	func TestStoreConforms(t *testing.T) {
//		leasetest.Run(t, func(t *testing.T) leasetest.Harness {
//			place := newPlace(t) // a fresh, empty store
//			return leasetest.Harness{
//				Open: func(t *testing.T) leasetest.Store { return place.open(t) },
//			}
//		})
//	}
//
// The oracle are the functions that define the operations, [lease.Claim.Apply]
// and its like: the suite compares with them what a store answers and what its
// rows are, to the last field. Concurrent operations must be linearizable, also
// when some were given up and their outcome is unknown. The other fields of a
// [Harness] let the suite do what it cannot do through the store itself: delete a
// row, stop the server, lose a reply. Where one is missing, what needs it is
// skipped, and says so.
//
// # What it does not show
//
// A store that passes may still lose what it has acknowledged when the power
// fails or a replica takes over: the suite can restart it if the Harness can, and
// no more. It shows that races go well in some thousand tries, not in all. It
// does not wait for a context that a store ignores: such a store fails after half
// a minute, by a call that does not return.
//
// [Memory] is a store in memory, for tests and simulations.
package leasetest
