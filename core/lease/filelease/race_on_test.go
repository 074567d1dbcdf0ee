//go:build race

package filelease

const raceEnabled = true
