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
		"bwmarrin's Base58": func(id types.Snowflake) string { return library.ID(id).Base58() },
		"bwmarrin's Base64": func(id types.Snowflake) string { return library.ID(id).Base64() },
		"decimal":           types.Snowflake.String,
		"Base62":            types.Snowflake.Base62,
		"Base58":            types.Snowflake.Base58,
		"Base32":            types.Snowflake.Base32,
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
		"Scan":                 readsOf(func(id *types.Snowflake, text string) error { return id.Scan(text) }),
	}
)

func TestTextsOfBwmarrinAreReadAsTheKeysTheyWereMadeOf(t *testing.T) {
	ids := []types.Snowflake{0, math.MaxInt64}
	for power := types.Snowflake(1); power > 0; power *= 2 {
		ids = append(ids, power-1, power, power+1)
	}
	for power := types.Snowflake(58); power > 0 && power < math.MaxInt64/58; power *= 58 {
		ids = append(ids, power-1, power, power+1)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		ids = append(ids, types.Snowflake(r.Uint64()>>(1+r.IntN(63))))
	}
	node, err := library.NewNode(5)
	must(t, err)
	for range 100 {
		ids = append(ids, types.Snowflake(node.Generate()))
	}
	for _, id := range ids {
		old := library.ID(id)
		if got, err := bwmarrin.ParseBase58(old.Base58()); got != id || err != nil {
			t.Fatalf("ParseBase58(%q) = %d, %v; want %d, nil", old.Base58(), got, err, id)
		}
		if got, err := bwmarrin.ParseBase64(old.Base64()); got != id || err != nil {
			t.Fatalf("ParseBase64(%q) = %d, %v; want %d, nil", old.Base64(), got, err, id)
		}
		// What the package comment says of the other forms.
		bytes := old.IntBytes()
		var binary types.Snowflake
		if err := binary.UnmarshalBinary(bytes[:]); binary != id || err != nil {
			t.Fatalf("UnmarshalBinary(IntBytes of %d) = %d, %v; want the key", id, binary, err)
		}
		if got, err := types.Parse(string(old.Bytes())); got != id || err != nil {
			t.Fatalf("Parse(%q) = %d, %v; want %d, nil", old.Bytes(), got, err, id)
		}
	}
}

// Which forms can be taken for each other, of keys of 14 digits or more. Package bwmarrin and
// docs/types.md warn of them.
func TestOnlyBase58AndBase62AreTakenForEachOther(t *testing.T) {
	own := map[string][]string{
		"bwmarrin's Base58": {"bwmarrin.ParseBase58"},
		"bwmarrin's Base64": {"bwmarrin.ParseBase64"},
		"decimal":           {"Parse", "UnmarshalText", "UnmarshalParam", "UnmarshalJSON", "Scan"},
		"Base62":            {"ParseBase62"},
		"Base58":            {"ParseBase58"},
		"Base32":            {"ParseBase32"},
	}
	taken := map[string][]string{
		"bwmarrin's Base58": {"ParseBase58", "ParseBase62"},
		"Base58":            {"ParseBase62", "bwmarrin.ParseBase58"},
		"Base62":            {"ParseBase58", "bwmarrin.ParseBase58"},
	}
	r := rand.New(rand.NewPCG(5, 6))
	for form, write := range writers {
		others := map[string]bool{}
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
