package filelease

// diskFull returns false, because Plan 9 has no such error. It has no flock either, and
// therefore no Store.
func diskFull(error) bool { return false }
