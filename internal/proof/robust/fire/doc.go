// Package fire runs the stores of leases as clusters on several hosts, and does to them
// what production does: hosts are cut off, leaders are killed, replicas that lag are
// promoted.
//
// A host is a network namespace of this machine: see [Network]. Processes with leases run
// on hosts of their own. Package chaos starts them and looks at every ID that any of
// them has returned.
//
// The tests need Linux, root, and servers from Debian's packages. They run only with the
// flag -fire:
//
//	go test ./internal/proof/robust/fire -fire            # short, as CI has it
//	go test ./internal/proof/robust/fire -fire -fire.for 5m
//
// Each has a run under conditions that promise unique IDs, and names its mutants: runs that
// leave out one thing on which the promise rests, and must repeat IDs. See [Burn]. They need
// a minute and more, so only .ci/nightly looks for them.
//
// A run in which too little has happened is no pass. It is skipped if it was short, and a
// failure otherwise. What was skipped is listed at the end.
package fire
