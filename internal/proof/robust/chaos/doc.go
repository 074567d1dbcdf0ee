// Package chaos takes numbers from several processes at once and does to them what
// production does. Processes are stopped and continued, killed, asked to end, and started
// anew; the clocks of leases jump; stores lose requests and replies, or carry them out
// late; transactions are rolled back, and their connections end. Afterwards the package
// checks every number that any of the processes was given.
//
//   - [Leases]: each ID is unique and greater than the one before, and its lease, and no
//     other, has reserved its time.
//   - [Segments]: each number is unique and greater than the one before, and the row has
//     passed it.
//   - [Serials]: the numbers of the stored invoices are all from the first to the last, each
//     once.
//
// Every kind also has runs that leave out what the promise rests on: other [Rules], or Torn.
// They fail the test unless a number is repeated or missing, so a passing test shows that
// the chaos would find one.
//
// A test binary is its own worker: it calls [Main] before anything else, with the stores of
// its tests.
//
// No process outlives its test: see package role.
//
// On systems that are not Unix the package is empty.
package chaos
