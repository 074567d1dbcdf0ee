package segmenttest

import "testing"

func TestTheStoreInMemoryPassesTheSuite(t *testing.T) {
	m := &Memory{}
	Run(t, func(*testing.T) Store { return m })
}
