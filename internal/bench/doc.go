// Package bench compares the generator and the text forms with other Go libraries, in
// one run. It is a module of its own, so no user of snowkey downloads these.
//
// Everything is a standard benchmark, so benchstat reads the output:
//
//	BenchmarkNext        one goroutine, what an ID costs
//	BenchmarkContention  c goroutines that take 10,000 IDs each
//	BenchmarkSaturation  4,096 IDs per millisecond asked for and more: the share
//	                     of that rate that is reached, and the CPU it takes
//	BenchmarkFill        slices of IDs
//	BenchmarkText        String and Parse
//	BenchmarkJSON        encoding/json
//	BenchmarkJSONv2      encoding/json/v2, with Go 1.27
//
// run.sh runs all of them round-robin on an idle machine, and keeps the raw output. The
// program in report writes the tables and the picture of docs/generator.md from it.
//
// # Rules
//
//   - The rate that a layout allows and the cost of an ID are measured apart. A layout
//     with 12 bits of sequence takes 244 ns per ID (1 ms / 4,096) with any code. So
//     Next and Contention use 22 bits, where no generator reaches the end of a
//     millisecond. Fill would reach it, and uses 27. Saturation uses 12.
//   - Every source has a loop of its own over a slice of its type. None pays for an
//     interface or a closure per ID.
//   - IDs that are kept are sorted and compared, outside the measured time. dup/op is
//     how many equal another one. Duplicates of snowkey fail the run. Those of a peer
//     are shown.
package bench
