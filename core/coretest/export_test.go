package coretest

// AtRandom makes claims take any free row.
func AtRandom(s *Store) { s.random = true }
