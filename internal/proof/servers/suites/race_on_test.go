//go:build race

package servers

// bulkPairsByDefault is small, because the race detector is slow. It checks the
// code, not the values.
const bulkPairsByDefault = 10
