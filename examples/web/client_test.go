package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// One test, because it compiles once. The page and misuse.ts compile only if the types are right.
func TestTypeScript(t *testing.T) {
	folder := node.Project(t, "testdata")
	if err := os.CopyFS(filepath.Join(folder, "page"), os.DirFS("page")); err != nil {
		t.Fatal(err)
	}
	node.Run(t, folder, "node_modules/typescript/bin/tsc")
	t.Run("TheJavaScriptIsWhatTscMakes", func(t *testing.T) { sameJavaScript(t, folder) })
	t.Run("TheClientReadsKeysAsGoDoes", func(t *testing.T) { sameKeys(t, folder) })
}

// The JavaScript is committed, so that the program runs where there is no node.
func sameJavaScript(t *testing.T, folder string) {
	for _, name := range []string{"page/client.js", "page/page.js"} {
		want, err := os.ReadFile(filepath.Join(folder, "out", name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what tsc makes, %v; run: npx -p typescript@5.9.3 tsc -p examples/web/page", name, err)
		}
	}
}

func sameKeys(t *testing.T, folder string) {
	layout := core.Default()
	keys := []types.Snowflake{0, 1, 9, 10, 1 << 22, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for range 1000 {
		keys = append(keys, types.Snowflake(rand.Int64()>>rand.IntN(63))) // of every length
	}
	values := []any{5, 0.5, nil, true, []int{5}, map[string]int{"a": 5}, "0", "5", "9223372036854775807"}
	for _, text := range strangers {
		values = append(values, text)
	}
	input, err := json.Marshal(map[string]any{"keys": keys, "values": values})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Sorted       []types.Snowflake
		Milliseconds []int64
		Compared     []int
		Accepted     []bool
	}
	if err := json.Unmarshal([]byte(node.Run(t, folder, "keys.mjs", string(input))), &got); err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(slices.Values(keys)); !slices.Equal(got.Sorted, want) {
		t.Errorf("sorted(%d) = %d; want %d", keys, got.Sorted, want)
	}
	for i, key := range keys {
		if want := layout.Parts(key).Time.UnixMilli(); got.Milliseconds[i] != want {
			t.Errorf("time(%d) = %d ms; want %d", key, got.Milliseconds[i], want)
		}
		if other := keys[len(keys)-1-i]; got.Compared[i] != key.Compare(other) {
			t.Errorf("compare(%d, %d) = %d; want %d", key, other, got.Compared[i], key.Compare(other))
		}
	}
	for i, value := range values {
		text, isText := value.(string)
		_, err := types.Parse(text)
		if want := isText && err == nil; got.Accepted[i] != want {
			t.Errorf("key(%#v) returns: %t; want %t", value, got.Accepted[i], want)
		}
	}
}
