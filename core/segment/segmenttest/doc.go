// Package segmenttest certifies an implementation of segment.Store and has one in memory for tests.
//
//	func TestStoreConforms(t *testing.T) {
//		segmenttest.Run(t, segmenttest.Harness{
//			Open: func(t *testing.T) segmenttest.Store { return open(t) },
//		})
//	}
//
// # Guarantees
//
// [Run] checks each claim about a Store in a subtest of its own: two Takes never share a number, even
// if many run concurrently or their contexts end; a range is accepted back only if no range was
// taken since; a row is never lowered. With Harness.LosesReplies it also checks that no later Take
// returns a range whose reply was lost, and with Harness.Foreign that impossible values which other
// programs wrote are refused.
//
// # Limits
//
// The suite restarts no server, so a Store that passes may still lose acknowledged writes when the
// power fails or a replica takes over. It tries races a number of times, which does not prove their
// absence.
//
// [Memory] forgets its rows when the process ends. Use it in tests only.
//
// This package is experimental.
package segmenttest
