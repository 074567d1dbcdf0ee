// The command ways makes keys by each way of the field, side by side, and writes
// docs/ways.md and docs/ways.svg. It starts PostgreSQL, MariaDB and three servers of Redis,
// whose programs have to be installed, and must run as root on Linux for the table that is
// larger than memory. Run it in internal/ways, on an idle machine:
//
//	GOTOOLCHAIN=go1.27.0 go run . -measure
//
// Results are kept in results.txt, in the format of go test -bench. Without -measure it
// writes the page from that file.
//
// # Rules
//
//   - Each way is asked by 1, 8 and 64 goroutines, which take one key after the other.
//     The pipelined ways take 100 at a time.
//   - Round trips are counted on the connections: a read that follows a write.
//   - The CPU of a server is that of all its processes and threads.
//   - Rows are inserted 1,000 at a time, one transaction each, over one connection. Their
//     keys and arguments are made before.
package main
