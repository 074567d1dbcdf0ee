// The command ways issues keys by each way of the field, side by side, and writes
// docs/ways.md and docs/ways.svg. It needs PostgreSQL and MariaDB as CONTRIBUTING.md has
// them, and a redis-server in the path, of which it starts three. Run it in internal/ways,
// on an idle machine:
//
//	go run . -measure ids,rows
//
// Results are kept in results.txt, in the format of go test -bench. Without -measure it
// writes the page from that file.
//
// # Rules
//
//   - Each way is asked by 1, 8 and 64 goroutines, which take one key after the other.
//     Only the pipelined way takes 100 at a time.
//   - Round trips are counted on the connections: a read that follows a write.
//   - The CPU of a server is that of the processes or threads that serve this program. What
//     it does in the background is not in it.
//   - Rows are inserted 1,000 at a time, one transaction each, over one connection. Their
//     keys are made before.
package main
