package javascript

import (
	"encoding/json"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// compiled returns a folder with the program as JavaScript. The library of a browser is left out,
// because to read it takes tsc most of its time.
func compiled(t *testing.T, program string) string {
	t.Helper()
	folder := node.Project(t, "testdata")
	node.Run(t, folder, "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--lib", "es2022", program)
	return folder
}

// A type says what JSON.parse returns, and changes nothing of it.
func TestTypeScriptCompilesAKeyThatIsRounded(t *testing.T) {
	for i, got := range returned(t, compiled(t, "number.ts"), "number.js", numbers()) {
		if want := `{"id":` + large.Rounded[i] + "}"; got != want {
			t.Errorf("order of the key %d = %s; want %s", large.Keys[i], got, want)
		}
	}
}

func TestBrandedStringKeepsAKeyAndRefusesArithmetic(t *testing.T) {
	type order struct {
		ID         types.Snowflake `json:"id"`
		CustomerID types.Snowflake `json:"customer_id"`
	}
	var orders []order
	for _, key := range large.Keys {
		orders = append(orders, order{key, key - 1})
	}
	for i, got := range returned(t, compiled(t, "branded.ts"), "branded.js", orders) {
		var back order
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != orders[i] {
			t.Errorf("json.Unmarshal(%s) = %+v, %v; want %+v", got, back, err, orders[i])
		}
	}
}
