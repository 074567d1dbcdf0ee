package serial

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A CodecConfig describes the texts of a [Codec]. The zero value is usable: the default layout in
// UTC, without prefix and check digits.
//
// A text consists of the prefix, year, month, day and hour, the fold digit, minute, second,
// fraction of the second, datacenter and worker as one number, sequence, and check digits. Each
// number has the width of its greatest value. A field without bits in the layout is left out.
type CodecConfig struct {
	// Prefix begins every text: up to 16 characters of A to Z, 0 to 9, "-", "/" and ".".
	Prefix string

	// Layout is the layout of the keys, which must end before the year 10000. Defaults to
	// [core.Default].
	Layout core.Layout

	// Zone is the time zone of date and time. Defaults to UTC. [time.Local] is refused, because it
	// differs between machines. See Fold.
	Zone *time.Location

	// Fold adds a digit after the hour to every text: 1 for the second of two equal local times,
	// otherwise 0. A zone whose offset changes after the epoch of the layout needs it. The few
	// zones in which the texts would not be in order even so, such as Pacific/Chatham, are refused.
	Fold bool

	// Check selects the check digits that end a text.
	Check Check
}

// A Codec writes the keys of a layout as texts and reads them back. NewCodec creates it; the zero
// value is not usable. It is safe for concurrent use.
type Codec struct {
	format   CodecConfig
	zone     zone
	fraction int   // digits of the fraction of a second
	step     int64 // nanoseconds that the last of these digits stands for
	node     int   // digits of datacenter and worker
	sequence int   // digits
	width    int
}

// year10000 is the Unix second at which years have five digits.
const year10000 = 253402300800

// year1 is the Unix second at which the year 1 begins.
const year1 = -62135596800

// New is NewCodec. Use [NewCodec] in new code.
func New(f Format) (*Codec, error) { return NewCodec(f) }

// Format is CodecConfig. Use [CodecConfig] in new code.
type Format = CodecConfig

// NewCodec returns a Codec, or a [*core.ValueError].
func NewCodec(f CodecConfig) (*Codec, error) {
	if f.Layout == (core.Layout{}) {
		f.Layout = core.Default()
	}
	if err := f.Layout.Validate(); err != nil {
		return nil, &core.ValueError{Package: "serial", Name: "CodecConfig.Layout", Value: "invalid (" + err.Error() + ")", Want: "a layout that its Validate accepts", Err: err}
	}
	for _, err := range []error{validatePrefix("CodecConfig.Prefix", f.Prefix), validateCheck("CodecConfig.Check", f.Check), validateZone("CodecConfig.Zone", f.Zone)} {
		if err != nil {
			return nil, err
		}
	}
	f.Zone = resolve(f.Zone)
	f.Layout.ShardBits = 0 // a text has the whole sequence
	c := &Codec{format: f}
	const days = 2 * 24 * 60 * 60 // more than any offset
	first, last, ok := c.seconds()
	if !ok || first < year1+days || last >= year10000-days {
		return nil, invalid("CodecConfig.Layout", fmt.Sprintf("from %s to %s", f.Layout.Epoch.UTC().Format(time.DateOnly), f.Layout.Exhausted().Format(time.DateOnly)), "years from 1 to 9999")
	}
	var err error
	if c.zone, err = newZone(f.Zone, first, last, f.Fold); err != nil {
		return nil, err
	}
	c.fraction, c.step = fraction(f.Layout)
	c.node = digitsOf(f.Layout.DatacenterBits + f.Layout.WorkerBits)
	c.sequence = digitsOf(f.Layout.SequenceBits)
	c.width = len(f.Prefix) + len("20060102150405") + c.fraction + c.node + c.sequence + f.Check.width()
	if f.Fold {
		c.width++
	}
	return c, nil
}

// seconds returns the Unix seconds of the first and the last tick.
func (c *Codec) seconds() (first, last int64, ok bool) {
	l := c.format.Layout
	if hi, _ := bits.Mul64(uint64(1)<<l.TimeBits-1, uint64(l.Unit)); hi >= uint64(time.Second)-1 {
		return 0, 0, false // beyond 64 bits of seconds
	}
	last, _ = c.moment(1<<l.TimeBits - 1)
	return l.Epoch.Unix(), last, true
}

// moment returns the Unix second and the nanosecond within it at which a tick begins. A tick may be
// more nanoseconds than 64 bits hold, even in a layout that ends before the year 10000.
func (c *Codec) moment(tick int64) (second, nanosecond int64) {
	epoch := c.format.Layout.Epoch
	hi, lo := bits.Mul64(uint64(tick), uint64(c.format.Layout.Unit))
	lo, carry := bits.Add64(lo, uint64(epoch.Nanosecond()), 0)
	if hi+carry == 0 { // for centuries, in most layouts
		return epoch.Unix() + int64(lo/uint64(time.Second)), int64(lo % uint64(time.Second))
	}
	seconds, rest := bits.Div64(hi+carry, lo, uint64(time.Second))
	return epoch.Unix() + int64(seconds), int64(rest)
}

// fraction returns how many digits the fraction of a second needs to distinguish all ticks, which
// follows from the unit and the epoch, and how many nanoseconds the last of them stands for.
func fraction(l core.Layout) (digits int, step int64) {
	step = int64(time.Second)
	for int64(l.Unit)%step != 0 || int64(l.Epoch.Nanosecond())%step != 0 {
		digits, step = digits+1, step/10
	}
	return digits, step
}

// digitsOf returns the number of decimal digits of the greatest number of width bits.
func digitsOf(width int) int {
	if width == 0 {
		return 0
	}
	return len(strconv.FormatUint(1<<width-1, 10))
}

// Width returns the length of every text in bytes.
func (c *Codec) Width() int { return c.width }

// Format returns the text of a key. A key that the layout cannot have is a [*core.ValueError].
func (c *Codec) Format(id types.Snowflake) (string, error) {
	b, err := c.Append(make([]byte, 0, c.width), id)
	return string(b), err
}

// Append appends the text of a key to b. If the layout cannot have the key, it returns b and a
// [*core.ValueError]. It does not allocate if b has room for [Codec.Width] bytes.
func (c *Codec) Append(b []byte, id types.Snowflake) ([]byte, error) {
	l := &c.format.Layout
	below := l.DatacenterBits + l.WorkerBits + l.SequenceBits
	tick := int64(id) >> below
	if tick>>l.TimeBits != 0 { // a negative key has a negative tick
		return b, invalid("key", id.String(), "one of the layout, from 0 to "+strconv.FormatUint(1<<(l.TimeBits+below)-1, 10))
	}
	second, nanosecond := c.moment(tick)
	span := c.zone.at(second)
	local := time.Unix(second+span.offset, 0).UTC()
	year, month, day := local.Date()
	hour, minute, clockSecond := local.Clock()

	start := len(b)
	b = append(b, c.format.Prefix...)
	b = appendDigits(b, int64(year), 4)
	b = appendDigits(b, int64(month), 2)
	b = appendDigits(b, int64(day), 2)
	b = appendDigits(b, int64(hour), 2)
	if c.format.Fold {
		b = appendDigits(b, span.fold(second), 1)
	}
	b = appendDigits(b, int64(minute), 2)
	b = appendDigits(b, int64(clockSecond), 2)
	b = appendDigits(b, nanosecond/c.step, c.fraction)
	b = appendDigits(b, int64(id)>>l.SequenceBits&ones(l.DatacenterBits+l.WorkerBits), c.node)
	b = appendDigits(b, int64(id)&ones(l.SequenceBits), c.sequence)
	return appendDigits(b, int64(c.format.Check.digits(b[start:])), c.format.Check.width()), nil
}

// Min returns the text of the first key of the tick that contains t. With Max it selects a span of
// time in a column of texts:
//
//	WHERE serial BETWEEN min AND max
//
// A time outside of the layout counts as its first or last tick.
func (c *Codec) Min(t time.Time) string { return c.bound(c.format.Layout.Min(t)) }

// Max returns the text of the last key of the tick that contains t. See Min.
func (c *Codec) Max(t time.Time) string { return c.bound(c.format.Layout.Max(t)) }

func (c *Codec) bound(id types.Snowflake) string {
	text, _ := c.Format(id) // which fails for no key of the layout
	return text
}

func ones(n int) int64 { return 1<<n - 1 }
