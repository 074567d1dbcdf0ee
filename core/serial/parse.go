package serial

import (
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Parse returns the key of a text. It accepts only what Format writes for a key of the layout: no
// other case, no spaces, no other width. The error is a [*core.ValueError] that names the part, and
// matches [ErrCheckDigit] if the check digits are wrong.
func (c *Codec) Parse(text string) (types.Snowflake, error) {
	p, err := frame(text, c.format.Prefix, c.width-len(c.format.Prefix)-c.format.Check.width(), "", 0, c.format.Check)
	if err != nil {
		return 0, err
	}
	year, month, date := p.number("year", 4, 1, 9999), p.number("month", 2, 1, 12), p.number("day", 2, 1, 31)
	hour := p.number("hour", 2, 0, 23)
	var fold int64
	if c.format.Fold {
		fold = p.number("fold", 1, 0, 1)
	}
	minute, second := p.number("minute", 2, 0, 59), p.number("second", 2, 0, 59)
	nanosecond := p.number("fraction of the second", c.fraction, 0, int64(time.Second)/c.step-1) * c.step
	l := c.format.Layout
	node := p.number("datacenter and worker", c.node, 0, ones(l.DatacenterBits+l.WorkerBits))
	sequence := p.number("sequence", c.sequence, 0, ones(l.SequenceBits))
	if p.err != nil {
		return 0, p.err
	}
	local := time.Date(int(year), time.Month(month), int(date), int(hour), int(minute), int(second), 0, time.UTC)
	if local.Day() != int(date) {
		return 0, invalid("date", fmt.Sprintf("%04d-%02d-%02d", year, month, date), "a day of the calendar")
	}
	moment, ok := c.zone.unix(local.Unix(), fold == 1)
	if !ok {
		return 0, invalid("local time", local.Format(time.DateTime), c.wantLocal(fold))
	}
	at := time.Unix(moment, nanosecond)
	id, err := l.Compose(core.Parts{
		Time: at, Datacenter: node >> l.WorkerBits, Worker: node & ones(l.WorkerBits), Sequence: sequence,
	})
	if err != nil {
		return 0, invalid("time", at.UTC().Format(time.RFC3339Nano),
			"from "+l.Epoch.UTC().Format(time.RFC3339Nano)+" until before "+l.Exhausted().Format(time.RFC3339Nano))
	}
	if begin := l.Parts(id).Time; !begin.Equal(at) {
		return 0, invalid("time", at.UTC().Format(time.RFC3339Nano),
			"the beginning of a tick of "+l.Unit.String()+", such as "+begin.Format(time.RFC3339Nano))
	}
	return id, nil
}

func (c *Codec) wantLocal(fold int64) string {
	if fold == 1 {
		return "the digit 0 after the hour: this time occurs only once in " + c.format.Zone.String()
	}
	return "a time that exists in " + c.format.Zone.String()
}

// frame checks all but the numbers: width, prefix, check digits, and the separator between before
// digits and after digits. These digits are the rest of the parser.
func frame(text, prefix string, before int, separator string, after int, check Check) (parser, error) {
	p := parser{text: text}
	digits := before + after
	width := len(prefix) + digits + len(separator) + check.width()
	if len(text) != width {
		return p, invalid("text", quote(text), strconv.Itoa(width)+" bytes")
	}
	if text[:len(prefix)] != prefix {
		return p, invalid("text", quote(text), "the prefix "+quote(prefix))
	}
	p.rest = text[len(prefix):]
	if separator != "" {
		if p.rest[before:before+len(separator)] != separator {
			return p, invalid("text", quote(text), "the separator "+quote(separator)+" after the period")
		}
		p.rest = p.rest[:before] + p.rest[before+len(separator):]
	}
	for i := range len(p.rest) {
		if !isDigit(p.rest[i]) {
			return p, invalid("text", quote(text), "digits alone after the prefix "+quote(prefix))
		}
	}
	given := p.rest[digits:]
	p.rest = p.rest[:digits]
	if n, _ := strconv.Atoi(given); n != check.digits([]byte(text[:len(text)-len(given)])) {
		// The error does not give the right digits, or a mistyped text would be corrected into a
		// valid one.
		err := invalid("text", quote(text), "its check digits ("+check.String()+") to be right")
		err.Err = ErrCheckDigit
		return p, err
	}
	return p, nil
}

// A parser reads the numbers of a text, until the first that is out of range.
type parser struct {
	text, rest string
	err        error
}

// number reads the number of the next width digits.
func (p *parser) number(name string, width int, least, most int64) int64 {
	var n uint64 // holds 19 digits, as many as 62 bits need
	for _, digit := range []byte(p.rest[:width]) {
		n = n*10 + uint64(digit-'0')
	}
	p.rest = p.rest[width:]
	if p.err == nil && (n < uint64(least) || n > uint64(most)) {
		p.err = invalid(name+" of "+quote(p.text), strconv.FormatUint(n, 10), fmt.Sprintf("%d to %d", least, most))
	}
	return int64(n)
}

// quote returns a text for an error, cut to 64 bytes.
func quote(text string) string {
	const most = 64
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}
