// Package large has keys that a double cannot hold, for tests of what they pass outside of Go.
package large

import "github.com/snowkey/snowkey/types"

// Keys are keys above 2^53 that change in a double.
var Keys = []types.Snowflake{
	1<<53 + 1,
	118972074688540673, // of the default layout, in November 2025
	1234567890123456789,
	1<<63 - 1,
}

// Rounded are the Keys as JavaScript prints them when they are numbers.
var Rounded = []string{
	"9007199254740992",
	"118972074688540670",
	"1234567890123456800",
	"9223372036854776000",
}
