package redislease

import (
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "redislease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}

// plainPrefix reports whether prefix is valid. Braces in it would send the keys of a namespace
// to several servers of a cluster.
func plainPrefix(prefix string) bool {
	for _, c := range []byte(prefix) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return 1 <= len(prefix) && len(prefix) <= 64
}
