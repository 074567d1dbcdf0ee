// The command sqlxbench measures how fast rows get into a database through
// package sqlxhelper, beside the fastest way that the database has and beside
// what other Go libraries do, and writes the page docs/sqlx-benchmarks.md from
// it. Run it in internal/sqlxbench, with the servers that CONTRIBUTING.md names,
// on a machine that does nothing else:
//
//	go run . -rounds 11
//
// It keeps what it measured in results.txt, in the format that
// benchstat reads. With -rounds 0 it measures nothing and writes the page from
// what is there. With -only it runs what matches, prints it, and writes nothing.
//
// # Rules
//
//   - Two loads: 20,000 rows into one table ("lines"), and 1,000 rows with five
//     children each under a foreign key ("graph"). Each is one transaction, and
//     begin and commit are within the measured time.
//   - Every run has empty tables and a pool of its own with one open connection.
//     What a program does once, as parsing struct tags, is done before.
//   - Within a round the variants take turns in random order. A first round is
//     run and dropped. Ratios are taken within a round, because what disturbs a
//     round disturbs both sides of it.
//   - After every run all rows are read back and compared with those that were
//     given, value by value. A variant that stored anything else ends the program.
//   - Rows have their keys before the clock starts, except for sqlxhelper, which
//     assigns them within the measured time. Its source only counts, because a
//     core.Generator gives at most 4,096 keys per millisecond, and that rate
//     would be measured instead.
package main
