// Package leasetest certifies implementations of [leasestore.Store] and [leasestore.Register].
//
// The uniqueness of IDs rests on the store: it must change a row only if the row is still what
// was read, refuse the requests of an old holder, forget nothing, and report "lost" or "done"
// only when it knows. [Run] checks each of these claims of a store in a subtest, and
// [RunRegister] those of a register, including swaps that are lost, late or done twice:
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
// The suite compares the store's answers and rows, to the last field, with the functions that
// define the operations, such as [leasestore.Claim.Apply]. Concurrent operations must be
// linearizable, including those that were abandoned with an unknown outcome.
//
// The other fields of a [Harness] do what the suite cannot do through the store: delete a row,
// stop the server, lose a reply. Where a field is missing, the subtests that need it are skipped
// and say so.
//
// # Limits
//
// A store that passes may still lose acknowledged writes when the power fails or a replica takes
// over; the suite restarts the store if the Harness can, and no more. Races are tried some
// thousand times, not in every order. A store that ignores its context fails after half a minute,
// by a call that does not return.
//
// [Memory] is a store in memory, for tests and simulations.
//
// This package is experimental.
package leasetest
