package core

import (
	"context"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Worker supplies a Generator's worker number, the bits that keep the IDs of two processes
// apart. [StaticWorker] is a number whose uniqueness the operator guarantees. A lease of
// package lease obtains one from a store that all processes share and needs no such guarantee.
//
// There is no default, and no number is derived from a MAC or IP address, a process ID or a
// hash of the host name, because such numbers repeat, and then the keys repeat.
//
// A Worker serves one Generator; only a static one may be used again.
//
// This interface has all that a generator asks of its worker, and nothing is discovered by type
// assertions. A wrapper that embeds a Worker, for metrics say, therefore changes only what it
// means to change.
type Worker interface {
	// Bind is called by New. From then on, until Close is called, the Worker may supply numbers
	// through b.Reserve. An error fails New.
	Bind(b *Binding) error

	// Close is called by Generator.Close, once, after the generator has returned its last ID.
	// Generator.Close returns its error.
	Close(ctx context.Context) error

	// Namespace names the set of IDs in which no two may be equal. Two generators of one
	// process may have the same worker number at the same time only in different namespaces.
	// The empty namespace, which static numbers have, overlaps all others.
	Namespace() string

	// WallClock returns the wall clock for the generator to use, or nil for the system's.
	WallClock() func() time.Time
}

// StaticWorker returns a fixed worker number, 0..1<<Layout.WorkerBits-1. The operator
// guarantees that one process at a time has it. New refuses a number outside the layout.
func StaticWorker(n int64) Worker { return staticWorker(n) }

type staticWorker int64

func (n staticWorker) Bind(b *Binding) error { return b.g.fix(int64(n)) }

func (n staticWorker) Close(context.Context) error { return nil }

func (n staticWorker) Namespace() string { return "" }

func (n staticWorker) WallClock() func() time.Time { return nil }

// WorkerFromEnv returns the worker number in the environment variable name, for StaticWorker or
// for a lease of that number only. It accepts decimal digits without a sign or leading zeros,
// up to 2147483647. A variable that is unset or empty is a [*ValueError], and not number 0. New
// checks the number against the layout.
func WorkerFromEnv(name string) (int64, error) { return fromEnv(name, "worker") }

// DatacenterFromEnv returns the number for Config.Datacenter in the environment variable name.
// It accepts and refuses the same values as WorkerFromEnv.
func DatacenterFromEnv(name string) (int64, error) { return fromEnv(name, "datacenter") }

func fromEnv(name, kind string) (int64, error) {
	want := "a " + kind + " number in decimal digits, such as 0 or 12, at most " + strconv.Itoa(math.MaxInt32)
	value, set := os.LookupEnv(name)
	if !set {
		return 0, invalid("environment variable "+name, "not set", want)
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != value {
		return 0, invalid("environment variable "+name, strconv.Quote(cut(value)), want)
	}
	return int64(n), nil
}

// cut returns at most 64 bytes of s, for error messages.
func cut(s string) string { return s[:min(len(s), 64)] }

// ordinal is the host name of a pod of a StatefulSet.
var ordinal = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?-(0|[1-9][0-9]{0,3})$`)

// WorkerFromHostname returns the number of a pod of a Kubernetes StatefulSet: the ordinal at
// the end of its host name, 3 in "orders-3". Pass it the result of [os.Hostname]; a domain is
// ignored. Any other form is a [*ValueError]. The pods of a Deployment end in random letters
// and digits, which are not an ordinal, and to tell them apart an ordinal has at most four
// digits.
//
// Kubernetes does not run two pods with one ordinal at a time, except when a pod is deleted by
// force or its node is cut off and declared gone. To be safe in these cases too, let a lease
// claim that one number rather than give it to StaticWorker.
func WorkerFromHostname(hostname string) (int64, error) {
	host, _, _ := strings.Cut(hostname, ".")
	match := ordinal.FindStringSubmatch(host)
	if match == nil {
		return 0, invalid("host name", strconv.Quote(cut(hostname)),
			"the name of a StatefulSet's pod, which ends in - and its ordinal, 0..9999")
	}
	return strconv.ParseInt(match[2], 10, 64) // four digits at most: no error
}
