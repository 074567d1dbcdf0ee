package filelease

// diskFull returns false: Plan 9 has no such error, and no lock, so that there is
// no Store either.
func diskFull(error) bool { return false }
