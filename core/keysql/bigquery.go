package keysql

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
)

// bigQuery follows https://cloud.google.com/bigquery/docs/reference/standard-sql/operators, where
// >> fills with zeros, which is the same for a key, and .../timestamp_functions. No test has run it
// on BigQuery.
type bigQuery struct {
	operators
	core.Layout
}

func (d bigQuery) time(ticks string) string {
	return fmt.Sprintf("TIMESTAMP_MICROS(%s)", micros(ticks, d.Layout))
}

func (d bigQuery) tick(at string) string {
	return fmt.Sprintf("DIV(UNIX_MICROS(%s) - %d, %d)", at, d.Epoch.UnixMicro(), d.Unit/time.Microsecond)
}

func (bigQuery) uuid(n [4]string) string {
	return fmt.Sprintf("FORMAT('%%08x-%%04x-8%%03x-9%%x73-6e6f776b6579', %s, %s, %s, %s)", n[0], n[1], n[2], n[3])
}
