package redislease

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/lease"
)

// errReply is the error for a reply that is none to the script. It comes from a proxy,
// or a connection out of step. Whether the script was run is unknown.
var errReply = errors.New("the reply is not one of the script that was sent")

// A reader takes a script's reply apart. After the first mistake it only returns
// zeros, and err says so.
type reader struct {
	operation string
	fields    []any
	err       error
}

// failed returns err as the error of the operation.
func (r *reader) failed() error { return fmt.Errorf("redislease: %s: %w", r.operation, r.err) }

func (r *reader) fail() {
	if r.err == nil {
		r.err = errReply
	}
}

func (r *reader) next() any {
	if len(r.fields) == 0 {
		r.fail()
		return nil
	}
	field := r.fields[0]
	r.fields = r.fields[1:]
	return field
}

func (r *reader) text() string {
	text, ok := r.next().(string)
	if !ok {
		r.fail()
	}
	return text
}

func (r *reader) number() int64 {
	n, ok := r.next().(int64)
	if !ok {
		r.fail()
	}
	return n
}

// numbers reads a list of them, nil if it is empty.
func (r *reader) numbers() []int64 {
	fields, ok := r.next().([]any)
	if !ok {
		r.fail()
	}
	list := reader{fields: fields}
	var all []int64
	for range fields {
		all = append(all, list.number())
	}
	if list.err != nil {
		r.fail()
	}
	return all
}

// reply reads what common.lua returns after a write: worker, row, clock.
func (r *reader) reply() lease.Reply {
	worker, text, now := r.number(), r.text(), r.number()
	if r.err != nil {
		return lease.Reply{}
	}
	row, before, err := parseRow(worker, text)
	if err != nil {
		r.err = err
	}
	return lease.Reply{Row: row, Before: before, Now: lease.Millis(now)}
}

// other returns the error of the verdicts that end an operation in the same way,
// whichever it is.
func (r *reader) other(verdict string) error {
	switch verdict {
	case "damaged", "unwritable":
		worker, text := r.number(), r.text()
		if r.err == nil {
			r.err = damagedRow(worker, text)
		}
	case "foreign":
		key := r.text()
		if r.err == nil {
			r.err = lease.Permanent(fmt.Errorf("%w: key %q exists without the others of its namespace", ErrDamaged, key))
		}
	default:
		r.fail()
	}
	return r.failed()
}
