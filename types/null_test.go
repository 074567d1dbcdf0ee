package types_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

var (
	absent      = types.NullSnowflake{}
	presentZero = types.NullSnowflake{Valid: true}
	presentFive = types.NullSnowflake{Snowflake: 5, Valid: true}
	presentNeg  = types.NullSnowflake{Snowflake: -5, Valid: true}
	// stale is what a careless program makes; it is absent all the same.
	stale = types.NullSnowflake{Snowflake: 5}
)

func TestPresentZeroIsAnotherThingThanAbsent(t *testing.T) {
	for _, c := range []struct {
		n      types.NullSnowflake
		isZero bool
		str    string
		text   string
		json   string
	}{
		{absent, true, "NULL", "", "null"},
		{stale, true, "NULL", "", "null"},
		{presentZero, false, "0", "0", `"0"`},
		{presentFive, false, "5", "5", `"5"`},
		{types.NullSnowflake{Snowflake: maxInt64, Valid: true}, false, "9223372036854775807", "9223372036854775807", `"9223372036854775807"`},
	} {
		if got := c.n.IsZero(); got != c.isZero {
			t.Errorf("%#v.IsZero() = %v; want %v", c.n, got, c.isZero)
		}
		if got := c.n.String(); got != c.str {
			t.Errorf("%#v.String() = %q; want %q", c.n, got, c.str)
		}
		if got, err := c.n.MarshalText(); string(got) != c.text || err != nil {
			t.Errorf("%#v.MarshalText() = %q, %v; want %q, nil", c.n, got, err, c.text)
		}
		if got, err := c.n.AppendText([]byte("id=")); string(got) != "id="+c.text || err != nil {
			t.Errorf("%#v.AppendText(\"id=\") = %q, %v; want %q, nil", c.n, got, err, "id="+c.text)
		}
		if got, err := c.n.MarshalJSON(); string(got) != c.json || err != nil {
			t.Errorf("%#v.MarshalJSON() = %q, %v; want %q, nil", c.n, got, err, c.json)
		}
	}
}

func TestNegativeNullSnowflakeIsWrittenToNoText(t *testing.T) {
	if got, err := presentNeg.MarshalText(); len(got) != 0 || !errors.Is(err, types.ErrRange) {
		t.Errorf("MarshalText() of {-5 true} = %q, %v; want nothing, ErrRange", got, err)
	}
	if got, err := presentNeg.MarshalJSON(); len(got) != 0 || !errors.Is(err, types.ErrRange) {
		t.Errorf("MarshalJSON() of {-5 true} = %q, %v; want nothing, ErrRange", got, err)
	}
	if got, err := presentNeg.AppendText([]byte("id=")); string(got) != "id=" || !errors.Is(err, types.ErrRange) {
		t.Errorf("AppendText(\"id=\") of {-5 true} = %q, %v; want \"id=\", ErrRange", got, err)
	}
	if got := presentNeg.String(); got != "-5" {
		t.Errorf("String() of {-5 true} = %q; want \"-5\"", got)
	}
}

func TestEmptyTextAndJSONNullMakeItAbsent(t *testing.T) {
	for _, was := range []types.NullSnowflake{absent, presentZero, presentFive, stale} {
		for _, empty := range [][]byte{nil, {}} {
			n := was
			if err := n.UnmarshalText(empty); n != absent || err != nil {
				t.Errorf("%#v.UnmarshalText(%#v) = %+v, %v; want absent, nil", was, empty, n, err)
			}
			n = was
			if err := n.UnmarshalParam(string(empty)); n != absent || err != nil {
				t.Errorf("%#v.UnmarshalParam(%q) = %+v, %v; want absent, nil", was, empty, n, err)
			}
		}
		for _, data := range []string{"null", `""`} {
			n := was
			if err := n.UnmarshalJSON([]byte(data)); n != absent || err != nil {
				t.Errorf("%#v.UnmarshalJSON(%s) = %+v, %v; want absent, nil", was, data, n, err)
			}
		}
	}
}

func TestFailedReadLeavesPresenceAsItWas(t *testing.T) {
	for _, was := range []types.NullSnowflake{absent, presentZero, presentFive, stale} {
		for name, read := range map[string]func(*types.NullSnowflake) error{
			"UnmarshalParam(x)":            func(n *types.NullSnowflake) error { return n.UnmarshalParam("x") },
			"UnmarshalMapstructure(false)": func(n *types.NullSnowflake) error { return n.UnmarshalMapstructure(false) },
			"UnmarshalText(x)":             func(n *types.NullSnowflake) error { return n.UnmarshalText([]byte("x")) },
			"UnmarshalText(NULL)":          func(n *types.NullSnowflake) error { return n.UnmarshalText([]byte("NULL")) },
			`UnmarshalJSON("null")`:        func(n *types.NullSnowflake) error { return n.UnmarshalJSON([]byte(`"null"`)) },
			"UnmarshalJSON(nothing)":       func(n *types.NullSnowflake) error { return n.UnmarshalJSON(nil) },
			"UnmarshalJSON(false)":         func(n *types.NullSnowflake) error { return n.UnmarshalJSON([]byte("false")) },
			"Scan(empty string)":           func(n *types.NullSnowflake) error { return n.Scan("") },
			"Scan(7.0)":                    func(n *types.NullSnowflake) error { return n.Scan(7.0) },
		} {
			n := was
			if err := read(&n); n != was || !errors.Is(err, types.ErrSyntax) {
				t.Errorf("%#v.%s = %+v, %v; want it unchanged, ErrSyntax", was, name, n, err)
			}
		}
	}
}

func TestSuccessfulReadMakesItPresent(t *testing.T) {
	for _, was := range []types.NullSnowflake{absent, presentZero, stale} {
		for name, read := range map[string]func(*types.NullSnowflake) error{
			"UnmarshalText(5)":         func(n *types.NullSnowflake) error { return n.UnmarshalText([]byte("5")) },
			"UnmarshalParam(5)":        func(n *types.NullSnowflake) error { return n.UnmarshalParam("5") },
			"UnmarshalMapstructure(5)": func(n *types.NullSnowflake) error { return n.UnmarshalMapstructure(5) },
			"UnmarshalJSON(5)":         func(n *types.NullSnowflake) error { return n.UnmarshalJSON([]byte("5")) },
			`UnmarshalJSON("5")`:       func(n *types.NullSnowflake) error { return n.UnmarshalJSON([]byte(`"5"`)) },
			"Scan(int64(5))":           func(n *types.NullSnowflake) error { return n.Scan(int64(5)) },
		} {
			n := was
			if err := read(&n); n != presentFive || err != nil {
				t.Errorf("%#v.%s = %+v, %v; want %+v, nil", was, name, n, err, presentFive)
			}
		}
	}
}

func TestReadingTextIntoANilReceiverIsAnError(t *testing.T) {
	var (
		id *types.Snowflake
		n  *types.NullSnowflake
	)
	for name, err := range map[string]error{
		"Snowflake.UnmarshalText(5)":             id.UnmarshalText([]byte("5")),
		"Snowflake.UnmarshalText(x)":             id.UnmarshalText([]byte("x")),
		"Snowflake.UnmarshalJSON(5)":             id.UnmarshalJSON([]byte("5")),
		"Snowflake.UnmarshalJSON(x)":             id.UnmarshalJSON([]byte("x")),
		"Snowflake.UnmarshalBinary(8)":           id.UnmarshalBinary(make([]byte, 8)),
		"Snowflake.UnmarshalBinary(0)":           id.UnmarshalBinary(nil),
		"Snowflake.UnmarshalParam(5)":            id.UnmarshalParam("5"),
		"Snowflake.UnmarshalMapstructure(5)":     id.UnmarshalMapstructure(5),
		"Snowflake.UnmarshalMapstructure()":      id.UnmarshalMapstructure(nil),
		"NullSnowflake.UnmarshalParam(5)":        n.UnmarshalParam("5"),
		"NullSnowflake.UnmarshalParam()":         n.UnmarshalParam(""),
		"NullSnowflake.UnmarshalMapstructure(5)": n.UnmarshalMapstructure(5),
		"NullSnowflake.UnmarshalMapstructure()":  n.UnmarshalMapstructure(""),
		"NullSnowflake.UnmarshalText(5)":         n.UnmarshalText([]byte("5")),
		"NullSnowflake.UnmarshalText()":          n.UnmarshalText(nil),
		"NullSnowflake.UnmarshalJSON(5)":         n.UnmarshalJSON([]byte("5")),
		"NullSnowflake.UnmarshalJSON(x)":         n.UnmarshalJSON([]byte("x")),
		"NullSnowflake.UnmarshalJSON(\"\")":      n.UnmarshalJSON([]byte(`""`)),
	} {
		var ve *types.ValueError
		if !errors.As(err, &ve) || !strings.HasPrefix(name, ve.Type+".") {
			t.Errorf("%s into nil = %v; want a *ValueError that names the type", name, err)
		}
		if well := strings.Contains(name, "(5)") || strings.Contains(name, "(8)"); well && !strings.Contains(err.Error(), "nil pointer") {
			t.Errorf("%s into nil = %v; want an error that names the nil pointer", name, err)
		}
	}
	// null stores nothing, so there is nothing to fail.
	if err := errors.Join(id.UnmarshalJSON([]byte("null")), n.UnmarshalJSON([]byte("null"))); err != nil {
		t.Errorf("UnmarshalJSON(null) into nil = %v; want nil", err)
	}
}
