package redislease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

func invalid(name, value, want string) *lease.ValueError {
	return &lease.ValueError{Package: "redislease", Name: name, Value: value, Want: want}
}

// plainPrefix reports whether a prefix is one. Braces would send the keys of a
// namespace to several servers of a cluster.
func plainPrefix(prefix string) bool {
	for _, c := range []byte(prefix) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return 1 <= len(prefix) && len(prefix) <= 64
}

// A named value of a request, for checkNumbers and checkTokens.
type named[T any] struct {
	name  string
	value T
}

func checkNumbers(request string, numbers ...named[int64]) error {
	for _, n := range numbers {
		if n.value < -most || n.value > most {
			return invalid(request+"."+n.name, strconv.FormatInt(n.value, 10),
				fmt.Sprintf("%d..%d, which Lua's numbers hold exactly", int64(-most), int64(most)))
		}
	}
	return nil
}

// checkTokens keeps commas out of rows, and lets no row be claimed for nobody.
func checkTokens(request string, tokens ...named[string]) error {
	for _, t := range tokens {
		if t.value == "" || len(t.value) > 64 || strings.Contains(t.value, ",") {
			return invalid(request+"."+t.name, strconv.Quote(cut(t.value)), "32 hexadecimal digits")
		}
	}
	return nil
}

func checkClaim(c *lease.Claim) error {
	if err := c.Space.Check(); err != nil {
		return err
	}
	if err := checkTokens("Claim", named[string]{"Owner", c.Owner}, named[string]{"Nonce", c.Nonce}); err != nil {
		return err
	}
	return checkNumbers("Claim",
		named[int64]{"Window", int64(c.Window)}, named[int64]{"Now", int64(c.Now)},
		named[int64]{"Skew", int64(c.Skew)}, named[int64]{"Guard", int64(c.Guard)})
}

func checkRenewal(r *lease.Renewal) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	if err := checkTokens("Renewal", named[string]{"Nonce", r.Nonce}); err != nil {
		return err
	}
	return checkNumbers("Renewal",
		named[int64]{"Worker", r.Worker}, named[int64]{"Epoch", r.Epoch},
		named[int64]{"Next", int64(r.Next)}, named[int64]{"Until", int64(r.Until)},
		named[int64]{"Window", int64(r.Window)}, named[int64]{"Now", int64(r.Now)},
		named[int64]{"Skew", int64(r.Skew)}, named[int64]{"Guard", int64(r.Guard)})
}

func checkRelease(r *lease.Release) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	if err := checkTokens("Release", named[string]{"Nonce", r.Nonce}); err != nil {
		return err
	}
	return checkNumbers("Release",
		named[int64]{"Worker", r.Worker}, named[int64]{"Epoch", r.Epoch}, named[int64]{"End", int64(r.End)})
}

func checkFencing(f *lease.Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	if err := checkTokens("Fencing", named[string]{"Nonce", f.Nonce}); err != nil {
		return err
	}
	return checkNumbers("Fencing", named[int64]{"Until", int64(f.Until)})
}
