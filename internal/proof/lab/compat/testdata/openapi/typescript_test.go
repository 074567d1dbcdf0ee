package openapi_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/shop/generated"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
)

// The programs of testdata are compiled with the types that openapi-typescript makes of
// openapi.yaml.
func TestTheTypeScriptClient(t *testing.T) {
	folder := node.Project(t, "testdata")
	document, err := filepath.Abs("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node.Run(t, folder, "node_modules/openapi-typescript/bin/cli.js", document, "--output", "schema.d.ts")
	node.Run(t, folder, "node_modules/typescript/bin/tsc")

	t.Run("KeepsAKeyThatIsAString", func(t *testing.T) {
		s, address := start(t)
		args, list := []string{address}, orders()
		for _, o := range list {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, string(text))
		}
		printed := strings.Fields(node.Run(t, folder, "orders.mjs", args...))
		var received []generated.Order
		if err := json.Unmarshal([]byte("["+strings.Join(printed, ",")+"]"), &received); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !reflect.DeepEqual(s.orders, list) || !reflect.DeepEqual(received, list) {
			t.Errorf("the client sent %+v and received %+v; want %+v", s.orders, received, list)
		}
	})

	// As openapi-typescript's issue 1439 has it.
	t.Run("RoundsAKeyThatIsAnInteger", func(t *testing.T) {
		s, address := start(t)
		const key, rounded, printed = "1234567890123456789", 1234567890123456800, "1234567890123456800"
		got := strings.TrimSpace(node.Run(t, folder, "numbers.mjs", address, key))
		s.mu.Lock()
		defer s.mu.Unlock()
		if got != printed || len(s.numbers) != 1 || s.numbers[0] != rounded {
			t.Errorf("the client sent %d for %s and printed %s; want %d and %s", s.numbers, key, got, rounded, printed)
		}
	})
}
