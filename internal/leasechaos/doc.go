// Package leasechaos runs leases in processes of their own and does to them what
// production does. Their clocks jump. They are stopped, killed and restarted. The store
// loses requests and replies, or does them late.
//
// Then it looks at every ID that any of the processes has returned. Each must be unique
// and greater than the one before. Its lease, and no other, must have reserved its time.
//
// A test binary is its own worker: it calls [Main] before anything else. A test in it
// calls [Chaos.Run] once for each set of [Rules]. Under the rules that promise unique IDs
// a single duplicate fails the test. The others leave out what the promise rests on, the
// fence or the loss guard. They fail the test if no duplicate shows. So a passing test
// shows that the chaos would find one. Package chaos has the processes.
//
// On systems that are not Unix the package is empty.
package leasechaos
