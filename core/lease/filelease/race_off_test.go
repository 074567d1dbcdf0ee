//go:build !race

package filelease

const raceEnabled = false
