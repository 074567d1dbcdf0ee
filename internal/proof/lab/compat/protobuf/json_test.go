package protobuf

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/shop"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
)

// parsed returns the documents as JSON.parse and JSON.stringify pass them on.
func parsed(t *testing.T, documents []string) []string {
	t.Helper()
	return node.Lines(t, "testdata", "json.mjs", documents)
}

func TestProtojsonKeepsAKeyInJavaScript(t *testing.T) {
	var documents []string
	for _, key := range large.Keys {
		text, err := protojson.Marshal(message(key))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	for i, text := range parsed(t, documents) {
		var back shop.Keys
		if err := protojson.Unmarshal([]byte(text), &back); err != nil {
			t.Fatal(err)
		}
		every(t, "JSON.parse of protojson", &back, large.Keys[i])
	}
}

// Other programs may write a number.
func TestProtojsonReadsANumberExactly(t *testing.T) {
	for _, key := range large.Keys {
		var back shop.Keys
		text := `{"int64": ` + key.String() + `, "fixed64": ` + key.String() + "}"
		if err := protojson.Unmarshal([]byte(text), &back); err != nil || back.GetInt64() != key.Int64() || back.GetFixed64() != uint64(key) {
			t.Errorf("protojson.Unmarshal(%s) = %v, %v; want the key in both", text, &back, err)
		}
	}
}

func TestEncodingJSONOfAMessageIsRoundedInJavaScript(t *testing.T) {
	var documents []string
	for _, key := range large.Keys {
		text, err := json.Marshal(&shop.Keys{Int64: key.Int64()})
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	for i, got := range parsed(t, documents) {
		if want := `{"int64":` + large.Rounded[i] + "}"; got != want {
			t.Errorf("JSON.parse of json.Marshal(%d) = %s; want %s", large.Keys[i], got, want)
		}
	}
}
