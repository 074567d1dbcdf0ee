// Package fire runs the stores of leases as clusters on several hosts, and does to them
// what production does: hosts are cut off, leaders are killed, replicas that lag are
// promoted.
//
// A host is a network namespace of this machine: see [Network]. Processes with leases run
// on hosts of their own. Package leasechaos starts them and looks at every ID that any of
// them has returned.
//
// The tests need Linux, root, and servers from Debian's packages. They run only with the
// flag -fire:
//
//	go test ./internal/fire -fire            # short, as CI has it
//	go test ./internal/fire -fire -fire.for 5m
//
// Each has a run under conditions that promise unique IDs, and beside it one that leaves
// out what the promise rests on and must show duplicates.
package fire
