package publicid_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// The seeds of each target are in testdata/fuzz, and run with every go test.
//
//	go test ./core/publicid -run '^$' -fuzz '^FuzzDecode$' -fuzztime 60s

// Law: a text is accepted if and only if Encode writes it for an ID in range. All readers agree, and
// all writers.
func FuzzDecode(f *testing.F) {
	f.Add(orderIDs.Encode(orderID))
	f.Add(orderIDs.Encode(0))
	f.Add(orderIDs.Encode(-1))
	f.Fuzz(func(t *testing.T, text string) {
		want, err := orderIDs.Decode(text)
		if err != nil {
			if want != 0 || !errors.Is(err, publicid.ErrInvalid) || len(err.Error()) > 512 {
				t.Fatalf("Decode(%q) = %d, %v; want 0 and a short ErrInvalid", text, want, err)
			}
		} else if want < 0 || orderIDs.Encode(want) != text {
			t.Fatalf("Decode(%q) = %d, whose text is %q; want the input", text, want, orderIDs.Encode(want))
		}
		accepted := err == nil
		for name, read := range readers() {
			id := publicid.Of(types.ID[Order](7))
			err := read(&id, text)
			if (err == nil) != accepted || accepted && id.Key() != types.ID[Order](want) || !accepted && id.Key() != 7 {
				t.Fatalf("%s(%q) = %v, and the ID is %d; want what Decode returns, %d, accepted: %v", name, text, err, id.Key(), want, accepted)
			}
		}
	})
}

// Law: every ID that is not negative comes back under every prefix that New accepts, and no URL
// changes the text.
func FuzzEncode(f *testing.F) {
	f.Fuzz(func(t *testing.T, prefix string, id int64) {
		c, err := publicid.New(publicid.Config{Prefix: prefix, Keys: keys()})
		if err != nil {
			return
		}
		text := c.Encode(types.Snowflake(id))
		if len(text) != len(prefix)+24 || !strings.HasPrefix(text, prefix+"_") || len(text) > 64 || url.PathEscape(text) != text || url.QueryEscape(text) != text {
			t.Fatalf("Encode(%d) = %q; want %s_ and 23 characters, at most 64 in all, that no URL escapes", id, text, prefix)
		}
		if got, err := c.Decode(text); (err == nil) != (id >= 0) || err == nil && got.Int64() != id {
			t.Fatalf("Decode(%q) = %d, %v; want %d, or an error for a negative ID", text, got, err, id)
		}
		for _, reader := range []func(string) (types.Snowflake, error){types.Parse, types.ParseBase62, types.ParseBase58, types.ParseBase32} {
			if got, err := reader(text); err == nil {
				t.Fatalf("a parser of types reads %q as %d; want an error", text, got)
			}
		}
	})
}
