package compat

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	library "github.com/bwmarrin/snowflake"

	"github.com/snowkey/snowkey/types"
	"github.com/snowkey/snowkey/types/bwmarrin"
)

// readsOf returns the ID that read, a method which stores into its receiver, has stored.
func readsOf(read func(*types.Snowflake, string) error) func(string) (types.Snowflake, error) {
	return func(text string) (types.Snowflake, error) {
		var id types.Snowflake
		err := read(&id, text)
		return id, err
	}
}

var (
	writers = map[string]func(types.Snowflake) string{
		"bwmarrin's Base58":   func(id types.Snowflake) string { return library.ID(id).Base58() },
		"bwmarrin's Base64":   func(id types.Snowflake) string { return library.ID(id).Base64() },
		"bwmarrin's Bytes":    func(id types.Snowflake) string { return string(library.ID(id).Bytes()) },
		"bwmarrin's IntBytes": func(id types.Snowflake) string { bytes := library.ID(id).IntBytes(); return string(bytes[:]) },
		"decimal":             types.Snowflake.String,
		"Base62":              types.Snowflake.Base62,
		"Base58":              types.Snowflake.Base58,
		"Base32":              types.Snowflake.Base32,
	}
	readers = map[string]func(string) (types.Snowflake, error){
		"bwmarrin.ParseBase58": bwmarrin.ParseBase58,
		"bwmarrin.ParseBase64": bwmarrin.ParseBase64,
		"Parse":                types.Parse,
		"ParseBase62":          types.ParseBase62,
		"ParseBase58":          types.ParseBase58,
		"ParseBase32":          types.ParseBase32,
		"UnmarshalText":        readsOf(func(id *types.Snowflake, text string) error { return id.UnmarshalText([]byte(text)) }),
		"UnmarshalParam":       readsOf((*types.Snowflake).UnmarshalParam),
		"UnmarshalJSON":        readsOf(func(id *types.Snowflake, text string) error { return id.UnmarshalJSON([]byte(`"` + text + `"`)) }),
		"UnmarshalBinary":      readsOf(func(id *types.Snowflake, text string) error { return id.UnmarshalBinary([]byte(text)) }),
		"Scan":                 readsOf(func(id *types.Snowflake, text string) error { return id.Scan(text) }),
	}
)

// Each form is read as the key that it was made of, and the forms that can be taken for each other, of
// keys of 14 digits or more, are those of which package bwmarrin and docs/types.md warn.
func TestOnlyBase58AndBase62AreTakenForEachOther(t *testing.T) {
	decimal := []string{"Parse", "UnmarshalText", "UnmarshalParam", "UnmarshalJSON", "Scan"}
	own := map[string][]string{
		"bwmarrin's Base58":   {"bwmarrin.ParseBase58"},
		"bwmarrin's Base64":   {"bwmarrin.ParseBase64"},
		"bwmarrin's Bytes":    decimal,
		"bwmarrin's IntBytes": {"UnmarshalBinary"},
		"decimal":             decimal,
		"Base62":              {"ParseBase62"},
		"Base58":              {"ParseBase58"},
		"Base32":              {"ParseBase32"},
	}
	taken := map[string][]string{
		"bwmarrin's Base58": {"ParseBase58", "ParseBase62", "UnmarshalBinary"}, // 8 characters are 8 bytes
		"Base58":            {"ParseBase62", "bwmarrin.ParseBase58"},
		"Base62":            {"ParseBase58", "bwmarrin.ParseBase58"},
	}
	for form, write := range writers {
		r, others := rand.New(rand.NewPCG(5, 6)), map[string]bool{} // the same keys for each form
		for range 20_000 {
			id := 10_000_000_000_000 + types.Snowflake(r.Int64N(math.MaxInt64-10_000_000_000_000))>>r.IntN(8)
			text := write(id)
			for name, read := range readers {
				got, err := read(text)
				switch {
				case slices.Contains(own[form], name):
					if got != id || err != nil {
						t.Fatalf("%s(%q) = %d, %v; want %d, nil", name, text, got, err, id)
					}
				case err == nil:
					others[name] = true
				case got != 0:
					t.Fatalf("%s(%q) = %d, %v; want 0 beside the error", name, text, got, err)
				}
			}
		}
		if got := slices.Sorted(maps.Keys(others)); !slices.Equal(got, taken[form]) {
			t.Errorf("%s is read by %q too; want %q", form, got, taken[form])
		}
	}
}
