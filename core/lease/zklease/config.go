package zklease

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Config says where a [Store] keeps its znodes and who may access them. The zero value is
// ready to use.
type Config struct {
	// Prefix is the path of the znode below which all others are made. It is absolute, at
	// most 256 bytes long, not / itself and not within /zookeeper, which belongs to the
	// server. The znode and its ancestors are made if they are missing. Defaults to
	// "/snowkey".
	Prefix string

	// ACL is given to every znode that is made, including Prefix and its missing ancestors.
	// The store needs the rights to read, write and create. An empty list that is not nil
	// is refused. Defaults to zk.WorldACL(zk.PermAll), with which everybody may do anything.
	ACL []zk.ACL
}

const defaultPrefix = "/snowkey"

// A transaction that makes a batch of rows must stay below the 1 MB that a server accepts
// (jute.maxbuffer), even with the longest path and the largest ACL. It takes 128 times
// (256 + 64 + 40 bytes of path, 4,096 of ACL, less than 200 of the rest).
const (
	batch     = 128
	maxPrefix = 256
	maxACL    = 4096
)

// maxWorkers keeps the listing of all rows, at 9 bytes each, below the same limit, which
// clients may have too.
const maxWorkers = 1 << 16

// complete returns c with its defaults, or a *core.ValueError.
func (c Config) complete() (Config, error) {
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	if want := wrongPath(c.Prefix); want != "" {
		return Config{}, invalid("Config.Prefix", quote(c.Prefix), want)
	}
	switch size := sizeOf(c.ACL); {
	case c.ACL == nil:
		c.ACL = zk.WorldACL(zk.PermAll)
	case len(c.ACL) == 0:
		return Config{}, invalid("Config.ACL", "empty", "at least one entry, or nil for zk.WorldACL(zk.PermAll)")
	case size > maxACL:
		// The entries are not shown: those of scheme digest are hashes of passwords.
		return Config{}, invalid("Config.ACL", fmt.Sprintf("%d bytes long", size), fmt.Sprintf("at most %d", maxACL))
	}
	c.ACL = slices.Clone(c.ACL)
	return c, nil
}

// sizeOf returns the number of bytes of an ACL in a request.
func sizeOf(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	return size
}

// wrongPath returns what is accepted as a prefix if path is not, and "" otherwise. The client
// checks paths too, but at each call, and only says that a path is invalid.
func wrongPath(path string) string {
	switch {
	case len(path) > maxPrefix:
		return fmt.Sprintf("at most %d bytes", maxPrefix)
	case path[0] != '/':
		return "an absolute path such as /snowkey"
	case path == "/":
		return "a path below /"
	case strings.HasSuffix(path, "/"):
		return "a path that does not end in /"
	case path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/"):
		return "a path outside /zookeeper, which belongs to the server"
	case !utf8.ValidString(path):
		return "valid UTF-8"
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return `a path without empty names, "." and ".."`
		}
	}
	if strings.ContainsFunc(path, forbidden) {
		return "a path of printable characters"
	}
	return ""
}

// forbidden reports whether ZooKeeper refuses r in a path.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xf000 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
}

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "zklease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}

// quote quotes the first 64 bytes of a value that another program has written.
func quote(value string) string {
	const enough = 64
	if len(value) > enough {
		return strconv.Quote(value[:enough]) + "…"
	}
	return strconv.Quote(value)
}
