package zklease

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// A Config says where a [Store] keeps its znodes, and who may touch them.
type Config struct {
	// Base is the path of the znode below which all others are made. It is absolute, at
	// most 256 bytes, not / itself and not in /zookeeper, which is the server's. It is
	// made when it is missing, as are its parents. Defaults to "/snowkey".
	Base string

	// ACL is given to every znode that is made, those of Base and its missing
	// parents among them. The store needs to read, write and create.
	// Defaults to zk.WorldACL(zk.PermAll), as nil does: everybody may do anything.
	// An empty list that is not nil is refused: it was meant to hold something.
	ACL []zk.ACL
}

const defaultBase = "/snowkey"

// A transaction that makes a batch of rows must stay below the 1 MB that a server
// accepts (jute.maxbuffer), even with the longest path and the largest ACL. It takes
// 128 times (256 + 64 + 40 bytes of path, 4096 of ACL, less than 200 of the rest).
const (
	batch   = 128
	maxBase = 256
	maxACL  = 4096
)

// maxWorkers keeps the reply to a listing of the rows, 9 bytes each, below the same
// limit. Clients may have that limit as well.
const maxWorkers = 1 << 16

// complete fills in the defaults and validates.
func (c Config) complete() (Config, error) {
	if c.Base == "" {
		c.Base = defaultBase
	}
	if want := wrongPath(c.Base); want != "" {
		return Config{}, invalid("Config.Base", quote(c.Base), want)
	}
	switch size := sizeOf(c.ACL); {
	case c.ACL == nil:
		c.ACL = zk.WorldACL(zk.PermAll)
	case len(c.ACL) == 0:
		return Config{}, invalid("Config.ACL", "empty", "at least one entry, or nil for zk.WorldACL(zk.PermAll)")
	case size > maxACL:
		// Not what it holds: the entries of digest are hashes of passwords.
		return Config{}, invalid("Config.ACL", fmt.Sprintf("%d bytes long", size), fmt.Sprintf("at most %d", maxACL))
	}
	c.ACL = append([]zk.ACL(nil), c.ACL...)
	return c, nil
}

// sizeOf returns how many bytes an ACL takes in a request.
func sizeOf(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	return size
}

// wrongPath returns what a base path would have to be, if it is not that. The client
// checks paths as well, but with each call, and says only that a path is invalid.
func wrongPath(path string) string {
	switch {
	case len(path) > maxBase:
		return fmt.Sprintf("at most %d bytes", maxBase)
	case path[0] != '/':
		return "an absolute path, as /snowkey"
	case path == "/":
		return "a path below /"
	case strings.HasSuffix(path, "/"):
		return "a path that does not end in /"
	case path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/"):
		return "a path outside /zookeeper, which is the server's own"
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
	return &core.ValueError{Package: "zklease", Name: name, Value: value, Want: want, Err: lease.ErrPermanent}
}

// quote shows a value that somebody else has written, cut at 64 bytes.
func quote(value string) string {
	const enough = 64
	if len(value) > enough {
		return strconv.Quote(value[:enough]) + "…"
	}
	return strconv.Quote(value)
}
