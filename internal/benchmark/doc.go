// Package benchmark reads the output of go test -bench, compares the results, and
// writes tables. The programs that write the pages of benchmarks share it.
package benchmark
