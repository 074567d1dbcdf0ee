package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

var decode = command{
	name:    "decode",
	summary: "say when a key was made, and by which worker",
	args:    "[key ...]",
	most:    math.MaxInt,
	flags:   "layout bits shard-bits epoch unit form zone json",
	text: `Takes keys apart: those that are arguments, or else the lines of the standard input. A key may be in decimal, base62, base58, base32, or a UUID. Where a text is a key in several forms, such as 11 digits, -form has to say which.

    snowkey decode 177026472345612305
    psql -Atc 'SELECT id FROM orders' | snowkey decode -json

The layout must be the one that made the keys: with another one the parts have no meaning, without an error. Discord's worker is the datacenter here, and its process the worker. Below the 64 bits stands what each is of: t the time, d the datacenter, w the worker, s the sequence, h the shard.

A bad key is reported on standard error, with the number of its line, and the others go on.`,
	run: func(ctx context.Context, o *options, out *bufio.Writer, args []string) error {
		l, err := o.keyLayout()
		if err != nil {
			return err
		}
		d := decoder{options: o, layout: l, parse: read, out: out}
		if o.form.chosen {
			d.parse = o.form.value.parse
		}
		for _, text := range args {
			if err := d.decode("", text, nil); err != nil {
				return err
			}
		}
		if len(args) == 0 {
			if isTerminal(os.Stdin) {
				_, _ = fmt.Fprintln(os.Stderr, "snowkey: type keys, each on a line; Ctrl-D ends")
			}
			err = lines(ctx, os.Stdin, out, func(number int, text string, err error) error {
				return d.decode(fmt.Sprintf("line %d: ", number), text, err)
			})
		}
		if err == nil && d.bad {
			return errBad
		}
		return err
	},
}

// A decoder writes keys taken apart.
type decoder struct {
	*options
	layout core.Layout
	parse  func(string) (types.Snowflake, error)
	out    *bufio.Writer
	some   bool // a key was written
	bad    bool // a key was bad
}

// decode writes a key, or reports that it is bad. It returns the output's errors only.
func (d *decoder) decode(where, text string, err error) error {
	var id types.Snowflake
	if err == nil {
		id, err = d.parse(text)
	}
	if err == nil {
		if _, outside := d.layout.Compose(d.layout.Parts(id)); outside != nil {
			err = fmt.Errorf("%d is not a key of the layout, whose last is %d", id, d.layout.Max(d.layout.Exhausted()))
		}
	}
	if err == nil {
		return d.write(id)
	}
	d.bad = true
	flushed := d.out.Flush() // in order on a terminal
	complain(fmt.Errorf("%s%w", where, err))
	return flushed
}

func (d *decoder) write(id types.Snowflake) error {
	p := d.layout.Parts(id)
	var local string
	if d.zone != nil {
		local = stamp(p.Time.In(d.zone))
	}
	if d.json {
		var shard *int64
		if d.layout.ShardBits > 0 {
			shard = &p.Shard
		}
		return json.NewEncoder(d.out).Encode(struct {
			Key        types.Snowflake `json:"key"`
			Time       string          `json:"time"`
			Local      string          `json:"local,omitempty"`
			Datacenter int64           `json:"datacenter"`
			Worker     int64           `json:"worker"`
			Sequence   int64           `json:"sequence"`
			Shard      *int64          `json:"shard,omitempty"`
			Base62     string          `json:"base62"`
			Base58     string          `json:"base58"`
			Base32     string          `json:"base32"`
			UUID       string          `json:"uuid"`
		}{id, stamp(p.Time), local, p.Datacenter, p.Worker, p.Sequence, shard, id.Base62(), id.Base58(), id.Base32(), writeUUID(id)})
	}
	var b strings.Builder
	row := func(name string, value any) { fmt.Fprintf(&b, "%-11s %v\n", name, value) }
	if d.some {
		b.WriteByte('\n')
	}
	d.some = true
	for _, f := range forms {
		row(f.name, f.write(id))
	}
	at := stamp(p.Time)
	if p.Time.After(time.Now()) {
		at += " (in the future: is the layout another one?)"
	}
	row("time", at)
	if local != "" {
		row("", local+" "+d.zone.String())
	}
	var digits, letters string
	rest := fmt.Sprintf("%064b", int64(id))
	for _, f := range []struct {
		name   string
		letter string // below its bits
		width  int
		value  int64 // 0 for the time, which is written above
	}{
		{"", "0", 64 - d.layout.TimeBits - d.layout.DatacenterBits - d.layout.WorkerBits - d.layout.SequenceBits, 0},
		{"", "t", d.layout.TimeBits, 0},
		{"datacenter", "d", d.layout.DatacenterBits, p.Datacenter},
		{"worker", "w", d.layout.WorkerBits, p.Worker},
		{"sequence", "s", d.layout.SequenceBits - d.layout.ShardBits, p.Sequence},
		{"shard", "h", d.layout.ShardBits, p.Shard},
	} {
		if f.width == 0 {
			continue
		}
		if f.name != "" {
			row(f.name, f.value)
		}
		digits, letters = digits+" "+rest[:f.width], letters+" "+strings.Repeat(f.letter, f.width)
		rest = rest[f.width:]
	}
	row("bits", digits[1:])
	row("", letters[1:])
	_, err := d.out.WriteString(b.String())
	return err
}

// stamp writes a time in RFC 3339, to the millisecond or finer.
func stamp(t time.Time) string {
	if t.Nanosecond()%int(time.Millisecond) == 0 {
		return t.Format("2006-01-02T15:04:05.000Z07:00")
	}
	return t.Format(time.RFC3339Nano)
}
