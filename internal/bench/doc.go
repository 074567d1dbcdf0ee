// Package bench measures the generator and the text forms beside the other Go
// libraries of the field, in one run. It is a module of its own, so that no user
// of snowkey downloads the peers.
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
//	BenchmarkJSONv2      encoding/json/v2, with GOEXPERIMENT=jsonv2
//
// run.sh runs all of them round-robin, waits for an idle machine, and keeps the
// raw output; the program in report makes the tables and the picture of
// docs/generator.md from it.
//
// # Rules
//
//   - The rate that a layout allows and the cost of an ID are measured apart. A
//     layout with 12 bits of sequence cannot make an ID in less than 244 ns
//     (1 ms / 4,096), so its ns/op says nothing about code: Next and Contention
//     use 22 bits of sequence, where no generator reaches the end of a
//     millisecond. Fill, which would, uses 27. Saturation uses 12.
//   - Every source is driven by a loop of its own over a slice ([]int64, or the
//     peer's type), so that none pays for an interface or a closure per ID.
//   - IDs that are kept are sorted and compared, outside the measured time:
//     dup/op is how many equal another one. It is 0 for a generator that works. A
//     run with duplicates in snowkey fails; a peer's are shown.
package bench
