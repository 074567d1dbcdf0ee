// Package javascript tests what plain JavaScript and TypeScript do to a key.
package javascript

import (
	"encoding/json"
	"testing"

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

func TestJavaScriptRoundsAKeyThatIsANumber(t *testing.T) {
	for i, got := range returned(t, "testdata", "json.mjs", numbers()) {
		if want := `{"id":` + large.Rounded[i] + "}"; got != want {
			t.Errorf("JSON.stringify(JSON.parse(…)) of the number %d = %s; want %s", large.Keys[i], got, want)
		}
	}
}

func TestJavaScriptKeepsAKeyThatIsAString(t *testing.T) {
	type order struct {
		ID types.Snowflake `json:"id"`
	}
	var orders []order
	for _, key := range large.Keys {
		orders = append(orders, order{key})
	}
	for i, got := range returned(t, "testdata", "json.mjs", orders) {
		var back order
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != orders[i] {
			t.Errorf("json.Unmarshal(%s) = %+v, %v; want %+v", got, back, err, orders[i])
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
