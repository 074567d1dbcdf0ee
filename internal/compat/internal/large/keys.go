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
