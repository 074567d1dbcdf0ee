//go:build !race

package integration

const bulkPairsByDefault = 40
