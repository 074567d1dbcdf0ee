// Command replicas shows worker leases at work. It starts itself several times.
// These replicas share one database, and each gets a worker number from it. They
// write rows with keys of snowkey at the same time. One is killed and restarted.
// One is stopped for longer than its lease and then continued. You see a table of
// processes, worker numbers and IDs. In the end the program checks that no ID
// repeats.
//
//	go run ./examples/replicas                        # SQLite, 12 seconds
//	go run ./examples/replicas -replicas 8 -for 1m
//	go run ./examples/replicas -kill=false -stop=false
//	go run ./examples/replicas -db replicas.db        # keep the files
//	go run ./examples/replicas -postgres 'postgres://user@host/database'
//
// A password for PostgreSQL is better in PGPASSWORD than in the arguments, which
// everybody on the machine can read.
//
// # What to look at
//
//   - "reserved" is how far ahead of the clock the lease has reserved time. It
//     falls, and rises to the window (-window) with each renewal, of which there
//     are four per window. IDs are never ahead of it.
//   - The killed replica could not give its worker number back, which is therefore
//     reserved until the window is over, and the restarted one gets another.
//   - The stopped replica does not know that time passes. When its reservation is
//     over, a new replica takes its number over: look at the epoch, which rises.
//     The stopped one then goes on, and at its next renewal finds that the number
//     is gone. It may make IDs before that, with the number that is another's by
//     now. They are distinct all the same: the old lease has only times before
//     the takeover, the new one only times after it. This is what leases are for,
//     and what a lock cannot give you.
//
// Read the files in this order:
//
//	replica.go   what a replica does; work has the lines that your program needs
//	database.go  SQLite or PostgreSQL, and a pool of its own for the leases
//	story.go     what happens, and when
//	verify.go    what is checked, and what is printed at the end
//	report.go    what a replica tells the parent
//	cluster.go   the processes: starting, killing, stopping, ending
//	screen.go    what you see
//	main.go      flags, and the way through the program
//
// # What is guaranteed
//
// The program ends with exit code 0 only after this was checked:
//
//   - No ID was reported twice, by whichever process.
//   - Each reported ID is in the database exactly once, in a row of the process
//     that reported it; and each row of this run was reported, but for those of a
//     process that was killed in between.
//   - Each ID has a worker number and a time that its process had reserved, and
//     no two reservations of a worker number overlap.
//
// The database takes part: the ID is the primary key, and a replica whose insert
// fails ends the run with exit code 1. That holds for IDs of earlier runs too, in a
// file that -db names. Bad flags are exit code 2.
//
// Ctrl-C ends the run early: the replicas end in order, what they wrote is
// checked, and the exit code is 130. No process is left behind: a replica ends when
// its standard input does, as it does when the parent dies of whatever cause.
//
// # Under which conditions
//
// Those of package lease: the database never loses a write that it has
// acknowledged. A kill of processes is no danger to that, a restored backup is.
//
// Stopping a replica needs Unix. Elsewhere -stop is off.
package main
