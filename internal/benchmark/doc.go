// Package benchmark reads the output of go test -bench, compares the results, and
// writes tables. It tells the CPU time of this program and of others. The programs that
// write the pages of benchmarks share it.
package benchmark
