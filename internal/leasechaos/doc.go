// Package leasechaos runs leases in processes of their own and does to them what
// production does: their clocks jump, they are stopped, killed and restarted, and
// the store loses requests and replies, or does them late. Then it looks at every
// ID that any of the processes has returned: whether it is unique, greater than the
// one before, and of a time that its lease had reserved and no other lease had.
//
// A test binary is its own worker: it calls [Main] before anything else, and a
// test in it calls [Chaos.Run] once for each set of [Rules]. Under the rules that
// promise unique IDs a single duplicate fails the test. The others leave out what
// the promise rests on, the fence or the loss guard, and fail the test if no
// duplicate shows: so that it is known that the chaos would find one.
//
// Nothing is left behind. All processes of a run are in one process group, with a
// keeper that kills the group when the test ends in whatever way, even if it is
// killed itself.
//
// On systems that are not Unix the package is empty.
package leasechaos
