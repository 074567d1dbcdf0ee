package types_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

type xmlOrder struct {
	XMLName xml.Name            `xml:"order"`
	ID      types.Snowflake     `xml:"id,attr"`
	Parent  types.NullSnowflake `xml:"parent,attr"`
	Buyer   types.Snowflake     `xml:"buyer"`
	Seller  types.NullSnowflake `xml:"seller"`
	Items   []types.Snowflake   `xml:"item"`
}

func TestXMLAttributesAndElementsAreDecimal(t *testing.T) {
	for _, c := range []struct {
		order xmlOrder
		want  string
	}{
		{
			xmlOrder{ID: maxInt64, Parent: presentFive, Buyer: 7, Seller: presentZero, Items: []types.Snowflake{1, 0}},
			`<order id="9223372036854775807" parent="5"><buyer>7</buyer><seller>0</seller><item>1</item><item>0</item></order>`,
		},
		{
			xmlOrder{},
			`<order id="0" parent=""><buyer>0</buyer><seller></seller></order>`,
		},
	} {
		got, err := xml.Marshal(c.order)
		if string(got) != c.want || err != nil {
			t.Errorf("xml.Marshal(%+v) = %s, %v; want %s, nil", c.order, got, err, c.want)
			continue
		}
		back := xmlOrder{ID: before, Parent: presentFive, Buyer: before, Seller: presentFive}
		if err := xml.Unmarshal(got, &back); err != nil {
			t.Errorf("xml.Unmarshal(%s) = %v; want nil", got, err)
		} else if back.ID != c.order.ID || back.Parent != c.order.Parent || back.Buyer != c.order.Buyer ||
			back.Seller != c.order.Seller || len(back.Items) != len(c.order.Items) {
			t.Errorf("xml.Unmarshal(%s) = %+v; want %+v", got, back, c.order)
		}
	}
}

func TestXMLThatIsNoIDIsAnErrorAndStoresNothing(t *testing.T) {
	for _, doc := range []string{
		`<order id=""/>`, `<order id="007"/>`, `<order id=" 5"/>`, `<order id="-1"/>`, `<order id="9223372036854775808"/>`,
		`<order parent="x"/>`, `<order><buyer></buyer></order>`, `<order><buyer/></order>`,
		`<order><buyer> 5 </buyer></order>`, "<order><buyer>\n5\n</buyer></order>", `<order><seller>5x</seller></order>`,
	} {
		back := xmlOrder{ID: before, Parent: presentFive, Buyer: before, Seller: presentFive}
		err := xml.Unmarshal([]byte(doc), &back)
		var ve *types.ValueError
		if !errors.As(err, &ve) {
			t.Errorf("xml.Unmarshal(%q) error = %v; want a *ValueError", doc, err)
		}
		if back.ID != before || back.Buyer != before || back.Parent != presentFive || back.Seller != presentFive {
			t.Errorf("xml.Unmarshal(%q) stored %+v; want nothing stored", doc, back)
		}
	}
}

func TestXMLRefusesANegativeID(t *testing.T) {
	for _, order := range []xmlOrder{{ID: -1}, {Buyer: -1}, {Seller: presentNeg}} {
		if got, err := xml.Marshal(order); !errors.Is(err, types.ErrRange) {
			t.Errorf("xml.Marshal(%+v) = %s, %v; want an error that matches ErrRange", order, got, err)
		}
	}
}

func TestFlagTextVarReadsAnID(t *testing.T) {
	for _, c := range []struct {
		args   []string
		id     types.Snowflake
		parent types.NullSnowflake
		bad    bool
	}{
		{nil, 7, absent, false},
		{[]string{"-id", "9223372036854775807", "-parent=5"}, maxInt64, presentFive, false},
		{[]string{"-parent="}, 7, absent, false},
		{[]string{"-id="}, 7, absent, true},
		{[]string{"-id", "-5"}, 7, absent, true},
		{[]string{"-id", "+5"}, 7, absent, true},
		{[]string{"-id", "0x10"}, 7, absent, true},
		{[]string{"-parent", "null"}, 7, absent, true},
	} {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		var id types.Snowflake
		var parent types.NullSnowflake
		fs.TextVar(&id, "id", types.Snowflake(7), "an ID")
		fs.TextVar(&parent, "parent", types.NullSnowflake{}, "an ID or nothing")
		err := fs.Parse(c.args)
		if (err != nil) != c.bad || id != c.id || parent != c.parent {
			t.Errorf("Parse(%q) = %d, %+v, %v; want %d, %+v, error: %v", c.args, id, parent, err, c.id, c.parent, c.bad)
		}
		if c.bad && err != nil && !strings.Contains(err.Error(), "types: cannot unmarshal text ") {
			t.Errorf("Parse(%q) error = %v; want it to hold the message of the ValueError", c.args, err)
		}
	}
}

func logged(handler func(io.Writer) slog.Handler, args ...any) string {
	var buf bytes.Buffer
	slog.New(handler(&buf)).Info("m", args...)
	return buf.String()
}

// noTime drops what changes from run to run.
var noTime = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

func TestSlogWritesAStringInJSONAndDigitsInText(t *testing.T) {
	id := maxInt64
	args := []any{
		"id", types.Snowflake(9007199254740993), slog.Any("ptr", &id),
		"none", absent, "parent", presentFive, "ids", []types.Snowflake{1, 2},
	}
	inJSON := func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, noTime) }
	want := `{"level":"INFO","msg":"m","id":"9007199254740993","ptr":"9223372036854775807","none":null,"parent":"5","ids":["1","2"]}` + "\n"
	if got := logged(inJSON, args...); got != want {
		t.Errorf("JSONHandler wrote %s; want %s", got, want)
	}
	inText := func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, noTime) }
	want = `level=INFO msg=m id=9007199254740993 ptr=9223372036854775807 none="" parent=5 ids="[1 2]"` + "\n"
	if got := logged(inText, args...); got != want {
		t.Errorf("TextHandler wrote %s; want %s", got, want)
	}
}

// A negative ID is a bug that a log must show, though no marshaler writes it.
func TestSlogShowsANegativeIDInTheErrorItLogs(t *testing.T) {
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"JSONHandler": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, noTime) },
		"TextHandler": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, noTime) },
	} {
		if got := logged(handler, "id", types.Snowflake(-5)); !strings.Contains(got, "-5") {
			t.Errorf("%s wrote %s; want the number -5 in it", name, got)
		}
	}
}
