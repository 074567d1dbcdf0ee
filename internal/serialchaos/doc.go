// Package serialchaos stores invoices with numbers without gaps from several processes,
// and does to them what production does. They are stopped and continued, killed, asked to
// end, and started anew. Their transactions are rolled back, wholly or to a savepoint, and
// their connections end in the middle.
//
// Then it looks at the table: the numbers must be all from the first to the last, each
// once.
//
// A test binary is its own worker: it calls [Main] before anything else, with the databases
// of its tests. A test calls [Chaos.Run]. If the chaos is torn, the processes take numbers
// in transactions of their own. Then a number must be missing, or the chaos proves nothing.
//
// On systems that are not Unix the package is empty.
package serialchaos
