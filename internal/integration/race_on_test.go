//go:build race

package integration

// bulkPairsByDefault: the race detector is slow, and looks at the code and not at
// the values.
const bulkPairsByDefault = 10
