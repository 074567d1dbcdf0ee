package sqlxhelper

import (
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

// Noted returns the keys that prove a commit of the InTx in whose transaction db inserts.
func Noted(db DB) (keys []types.Snowflake) {
	for _, p := range recordOf(db).Proofs() {
		keys = append(keys, p.Key)
	}
	return keys
}

// DescribeText is for tests that expect every statement.
const DescribeText = pgtext.DescribeText
