// Package segmenttest certifies an implementation of segment.Store, and has one in
// memory for tests.
//
//	func TestStoreConforms(t *testing.T) {
//		segmenttest.Run(t, segmenttest.Harness{
//			Open: func(t *testing.T) segmenttest.Store { return open(t) },
//		})
//	}
//
// # What is shown
//
// [Run] checks each claim about a store in a subtest of its own. Two takes never share a
// number, also when many run at once or their contexts end. A range goes back only if
// nobody has taken since. A row is never lowered. With Harness.LosesReplies, a range whose
// reply is lost is nobody's. With Harness.Foreign, what others wrote is refused.
//
// # Under which conditions
//
// A store that passes may still lose acknowledged writes when the power fails or a
// replica takes over. The suite restarts no server. It shows that races go well in the
// tries that it makes, and not in all.
//
// [Memory] forgets its rows when the process ends. Use it in tests only.
package segmenttest
