// Package javascript tests what plain JavaScript and TypeScript do to a key.
package javascript

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linkedin/goavro/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// returned gives documents to a script that reads and writes each, and returns what comes back.
func returned[T any](t *testing.T, folder, script string, documents []T) []string {
	t.Helper()
	var texts []string
	for _, d := range documents {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return node.Lines(t, folder, script, texts)
}

// A number is an order of a server that writes its keys as numbers.
type number struct {
	ID int64 `json:"id"`
}

func numbers() (orders []number) {
	for _, key := range large.Keys {
		orders = append(orders, number{key.Int64()})
	}
	return orders
}

// event returns what writes a change event of Debezium with a key.
func event(file string) func(types.Snowflake) ([]byte, error) {
	return func(key types.Snowflake) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join("..", "debezium", "testdata", file))
		return bytes.ReplaceAll(text, []byte("1234567890123456789"), []byte(key.String())), err
	}
}

func TestJavaScriptRoundsAKeyThatIsANumberAndKeepsAString(t *testing.T) {
	avro, err := goavro.NewCodec(`{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	// A message of generated code with an int64, which the protobuf module has itself.
	message := func(key types.Snowflake) *descriptorpb.UninterpretedOption {
		return &descriptorpb.UninterpretedOption{NegativeIntValue: proto.Int64(key.Int64())}
	}
	var documents []json.RawMessage
	var want []string
	for _, c := range []struct {
		name    string
		write   func(types.Snowflake) ([]byte, error)
		rounded bool
	}{
		{"an int64", func(key types.Snowflake) ([]byte, error) { return json.Marshal(number{key.Int64()}) }, true},
		{"a Snowflake", func(key types.Snowflake) ([]byte, error) { return json.Marshal(types.Model{ID: key}) }, false},
		{"a message by encoding/json", func(key types.Snowflake) ([]byte, error) { return json.Marshal(message(key)) }, true},
		{"a message by protojson", func(key types.Snowflake) ([]byte, error) { return protojson.Marshal(message(key)) }, false},
		{"Avro's JSON", func(key types.Snowflake) ([]byte, error) {
			return avro.TextualFromNative(nil, map[string]any{"id": key.Int64()})
		}, true},
		{"an event of Debezium", event("change.json"), true},
		{"an event of Debezium, cast to a string", event("flat.json"), false},
	} {
		for i, key := range large.Keys {
			text, err := c.write(key)
			var compact bytes.Buffer
			if err == nil {
				err = json.Compact(&compact, text)
			}
			if err != nil || !strings.Contains(compact.String(), key.String()) {
				t.Fatalf("%s writes %s, %v; want the key %d", c.name, text, err, key)
			}
			documents = append(documents, compact.Bytes())
			if c.rounded {
				want = append(want, strings.ReplaceAll(compact.String(), key.String(), large.Rounded[i]))
			} else {
				want = append(want, compact.String())
			}
		}
	}
	for i, got := range returned(t, "testdata", "json.mjs", documents) {
		if got != want[i] {
			t.Errorf("JSON.stringify(JSON.parse(%s)) = %s; want %s", documents[i], got, want[i])
		}
	}
}

// For a server that cannot change.
func TestLosslessJSONKeepsAKeyThatIsANumber(t *testing.T) {
	orders := numbers()
	for i, got := range returned(t, node.Project(t, "testdata"), "lossless.mjs", orders) {
		var back number
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != orders[i] {
			t.Errorf("json.Unmarshal(%s) = %+v, %v; want %+v", got, back, err, orders[i])
		}
	}
}
