//go:build cgo && unix

package feed_test

import (
	"github.com/snowkey/snowkey/internal/proof/cases/feedcases"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

func init() {
	role.Play(map[string]func([]byte) error{feedcases.Role: feedcases.Play})
	processes = feedcases.Processes
}
