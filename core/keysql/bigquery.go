package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// bigQuery follows https://cloud.google.com/bigquery/docs/reference/standard-sql/operators, where
// >> fills with zeros, which is the same for a key, and .../timestamp_functions. No test has run it
// on BigQuery.
var bigQuery = syntax{
	bits:    operators,
	between: "LEAST(GREATEST(%s, 0), %d)",
	text:    "CAST(%s AS STRING)",
	uuid:    "FORMAT('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %s, %s, %s, %s)",
	time: func(l core.Layout, ticks string) string {
		return fmt.Sprintf("TIMESTAMP_MICROS(%s)", micros(ticks, l))
	},
	tick: func(l core.Layout, at string) string {
		return fmt.Sprintf("DIV(UNIX_MICROS(%s) - %d, %d)", at, l.Epoch.UnixMicro(), l.Unit/time.Microsecond)
	},
}
