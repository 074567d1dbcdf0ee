//go:build unix

package chaos

import (
	"fmt"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/types"
)

// describe says what an ID consists of and which files have it.
func describe(f numberFiles, id types.Snowflake) string { return parts(id) + ", from " + f.files(id) }

func workerOf(id types.Snowflake) int64 { return layout().Parts(id).Worker }

func timeOf(id types.Snowflake) leasestore.Millis {
	return leasestore.MillisOf(layout().Parts(id).Time)
}

func parts(id types.Snowflake) string {
	p := layout().Parts(id)
	return fmt.Sprintf("%s (time %s, worker %d, sequence %d)", id, p.Time.Format("15:04:05.000"), p.Worker, p.Sequence)
}
