// The command sqlxbench measures how fast package sqlxhelper inserts rows. It compares
// this with the fastest way that the database has, and with other Go libraries. It
// writes docs/sqlx-benchmarks.md. Run it in internal/sqlxbench, with the servers that
// CONTRIBUTING.md names, on an idle machine:
//
//	go run . -rounds 21
//	go run . -stream 10000000
//
// It keeps its results in the folder results, in the format that benchstat reads. Each
// target has a file, and one for its stream. With -target it measures only some targets,
// and the page keeps what is known of the others. With -rounds 0 it measures nothing and
// writes the page. With -only it runs what matches, prints it, and writes nothing.
//
// # Rules
//
//   - There are two loads. "Lines" are 20,000 rows into one table. "Graph" is 1,000
//     rows with five children each under a foreign key. Each is one transaction, begin
//     and commit included. A "stream" is a sequence that does not fit into memory. It
//     runs once, in a process of its own.
//   - Every run has empty tables and a pool of its own with one open connection.
//     What a program does once, as parsing struct tags, is done before.
//   - Within a round the variants take turns in random order. A first round is
//     run and dropped. Ratios are taken within a round, because what disturbs a
//     round disturbs both sides of it.
//   - After every run all rows are read back and compared with those that were
//     given, value by value. A variant that stored anything else ends the program.
//   - Rows have their keys before the clock starts. Only sqlxhelper assigns them within
//     the measured time. Its source only counts. A core.Generator gives at most 4,096
//     keys per millisecond, and that rate would be measured instead.
package main
