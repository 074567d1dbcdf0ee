// Package leasetest certifies implementations of [leasestore.Store].
//
// Uniqueness of IDs rests on the store. A store must change a row only if the row is
// still what was read. It must refuse what an old holder asks, and forget nothing. It
// must say "lost" or "done" only when it knows. [Run] checks each of these claims in a
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
// The oracle is the functions that define the operations, such as [leasestore.Claim.Apply].
// The suite compares the store's answers and rows with them, to the last field.
// Concurrent operations must be linearizable, also when some were given up and their
// outcome is unknown.
//
// The other fields of a [Harness] let the suite do what it cannot do through the store
// itself: delete a row, stop the server, lose a reply. If a field is missing, the
// subtests that need it are skipped and say so.
//
// # What it does not show
//
// A store that passes may still lose acknowledged writes when the power fails or a
// replica takes over. The suite can restart it if the Harness can, and no more. It shows
// that races go well in some thousand tries, not in all. It does not wait for a store
// that ignores a context. Such a store fails after half a minute, by a call that does not
// return.
//
// [Memory] is a store in memory, for tests and simulations.
package leasetest
