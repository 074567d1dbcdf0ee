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

// made reports whether a name is 1..64 letters, digits and characters of others.
func made(name, others string) bool {
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= 64
}

// checkSpace also keeps braces out of the key, which would send a namespace's keys
// to several servers of a cluster.
func checkSpace(space lease.Space) error {
	if !made(space.Namespace, "._-") {
		return invalid("Space.Namespace", strconv.Quote(cut(space.Namespace)), "1..64 of a-z A-Z 0-9 . _ -")
	}
	if space.Workers < 1 || space.Workers > MaxWorkers {
		return invalid("Space.Workers", strconv.FormatInt(space.Workers, 10), "1.."+strconv.Itoa(MaxWorkers))
	}
	return nil
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
	if err := checkSpace(c.Space); err != nil {
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
	if err := checkSpace(r.Space); err != nil {
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
	if err := checkSpace(r.Space); err != nil {
		return err
	}
	if err := checkTokens("Release", named[string]{"Nonce", r.Nonce}); err != nil {
		return err
	}
	return checkNumbers("Release",
		named[int64]{"Worker", r.Worker}, named[int64]{"Epoch", r.Epoch}, named[int64]{"End", int64(r.End)})
}
