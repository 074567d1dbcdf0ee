//go:build !race

package servers

const bulkPairsByDefault = 40
