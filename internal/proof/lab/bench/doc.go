// The command bench measures the library against the floor of each operation, and writes the
// figures of docs/benchmarks.md. It is a module of its own, so that no user of the library
// downloads its drivers. What other libraries and other ways to make keys took was measured
// once; of these, results/peers.txt and results/ways.txt stay. So were series of numbers and
// thousands of leases, whose figures docs/serials.md and docs/leases.md have.
//
//	go run ./internal/proof/lab/bench                    write the page from the results that are here
//	go run ./internal/proof/lab/bench generator          measure a suite, replace its results, write the page
//	go run ./internal/proof/lab/bench -rounds 3 all      measure all of them in three rounds
//
// Run it on an idle machine. The suites generator and segments need nothing else; gorm and
// sqlx need the servers that CONTRIBUTING.md names.
//
// Every workload is a standard benchmark in a test file, so go test -bench runs it and
// benchstat reads the results. A suite is a list of such runs. In each round every run
// takes its turn, and waits until other programs leave the CPUs alone. The page shows the
// median of the rounds; a ratio is taken within each round, because what disturbs a round
// disturbs both sides of it.
//
// # Rules
//
//   - The rate that a layout allows and the cost of an ID are measured apart. A layout with
//     12 bits of sequence takes 244 ns per ID (1 ms / 4,096) with any code, so Next and
//     Contention use 22 bits, where no generator reaches the end of a millisecond. Fill
//     would reach it, and uses 27. Saturation uses 12.
//   - Every source has a loop of its own over a slice. None pays for an interface or a
//     closure per ID.
//   - IDs that are kept are sorted and compared, outside the measured time. dup/op is how
//     many equal another one. Duplicates fail the run.
//   - Rows are read back and compared with those that were given, value by value.
package main
