// Package benchmark reads the output of go test -bench, compares what was
// measured, and writes tables of it. The programs that write the pages of
// benchmarks share it.
package benchmark
