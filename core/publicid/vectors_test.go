package publicid_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// vectors is testdata/vectors.json, which vectors.mjs has computed with node and OpenSSL.
type vectors struct {
	Accepted []struct {
		Key, Prefix, Text string
		ID                types.Snowflake
	}
	Key, Prefix string // those of Refused
	Refused     []struct{ Why, Text string }
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Accepted) < 90 || len(v.Refused) < 200 {
		t.Fatalf("%d vectors are accepted and %d refused; want at least 90 and 200", len(v.Accepted), len(v.Refused))
	}
	return v
}

func TestTheVectorsAreThoseOfTheScript(t *testing.T) {
	want, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Run(t, "testdata", "vectors.mjs"); got != string(want) {
		t.Errorf("vectors.mjs prints %d bytes that are not those of vectors.json: %.200s…", len(got), got)
	}
}

func TestAnotherImplementationWritesTheSameTexts(t *testing.T) {
	for _, v := range readVectors(t).Accepted {
		key, err := hex.DecodeString(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		c := newCodec(t, v.Prefix, key)
		if got := c.Encode(v.ID); got != v.Text {
			t.Errorf("Encode(%d) = %q; want %q (prefix %q, key %s)", v.ID, got, v.Text, v.Prefix, v.Key)
		}
		if got, err := c.Decode(v.Text); got != v.ID || err != nil {
			t.Errorf("Decode(%q) = %d, %v; want %d, nil", v.Text, got, err, v.ID)
		}
	}
}

// They are well-formed, and differ from a text that is accepted in the least that there is.
func TestBlocksOfAnotherImplementationThatAreNotQuiteRightAreRefused(t *testing.T) {
	v := readVectors(t)
	key, err := hex.DecodeString(v.Key)
	if err != nil {
		t.Fatal(err)
	}
	c := newCodec(t, v.Prefix, key)
	for _, r := range v.Refused {
		if name, _ := strings.CutPrefix(r.Text, v.Prefix+"_"); name[:1] != keyName(key) {
			t.Fatalf("%q has another key name; want that of the key", r.Text)
		}
		if got, err := c.Decode(r.Text); got != 0 || !errors.Is(err, publicid.ErrInvalid) {
			t.Errorf("Decode(%q) = %d, %v; want 0, ErrInvalid: %s", r.Text, got, err, r.Why)
		}
	}
}
