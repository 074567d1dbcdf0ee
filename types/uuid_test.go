package types_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// uuidText returns u in the form of RFC 9562.
func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func uuidOf(t testing.TB, text string) (u [16]byte) {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || copy(u[:], b) != 16 {
		t.Fatalf("%s is no UUID: %v", text, err)
	}
	return u
}

// digits spells the UUID of id with the digits that strconv writes.
func digits(id types.Snowflake) string {
	k := strconv.FormatInt(int64(id), 16)
	k = strings.Repeat("0", 16-len(k)) + k
	return k[:8] + "-" + k[8:12] + "-8" + k[12:15] + "-9" + k[15:] + "73-6e6f776b6579"
}

func TestUUIDsOfKnownKeys(t *testing.T) {
	for id, want := range map[types.Snowflake]string{
		0:                   "00000000-0000-8000-9073-6e6f776b6579",
		1:                   "00000000-0000-8000-9173-6e6f776b6579",
		0x1234:              "00000000-0000-8123-9473-6e6f776b6579",
		1541815603606036487: "1565a11f-6217-8a00-9773-6e6f776b6579",
		math.MaxInt64:       "7fffffff-ffff-8fff-9f73-6e6f776b6579",
	} {
		u := id.UUID()
		if got := uuidText(u); got != want {
			t.Errorf("Snowflake(%d).UUID() = %s; want %s", id, got, want)
		}
		if got, err := types.FromUUID(u); got != id || err != nil {
			t.Errorf("FromUUID(%s) = %d, %v; want %d", want, got, err, id)
		}
		if got := types.ID[typedOrder](id).UUID(); got != u {
			t.Errorf("ID(%d).UUID() = %s; want that of the Snowflake, %s", id, uuidText(got), want)
		}
	}
}

func TestUUIDsOfOthersAreRefused(t *testing.T) {
	for text, want := range map[string]error{
		"00000000-0000-0000-0000-000000000000": types.ErrSyntax, // nil
		"ffffffff-ffff-ffff-ffff-ffffffffffff": types.ErrSyntax, // max
		"1565a11f-6217-4a00-9773-6e6f776b6579": types.ErrSyntax, // version 4
		"1565a11f-6217-8a00-a773-6e6f776b6579": types.ErrSyntax, // other bits after the variant
		"1565a11f-6217-8a00-8773-6e6f776b6579": types.ErrSyntax,
		"1565a11f-6217-8a00-c773-6e6f776b6579": types.ErrSyntax, // another variant
		"1565a11f-6217-8a00-9773-6e6f776b6578": types.ErrSyntax, // another mark
		"018f3f5e-8a00-7abc-8def-0123456789ab": types.ErrSyntax, // version 7
		"2489e9ad-2ee2-8e00-8ec9-32d5f69181c0": types.ErrSyntax, // version 8 of RFC 9562, appendix B.1
		"80000000-0000-8000-9073-6e6f776b6579": types.ErrRange,
	} {
		got, err := types.FromUUID(uuidOf(t, text))
		checkError(t, "FromUUID", err)
		if got != 0 || !errors.Is(err, want) {
			t.Errorf("FromUUID(%s) = %d, %v; want an error that is %v", text, got, err, want)
		}
	}
	if got, err := types.FromUUID(types.Snowflake(-1).UUID()); got != 0 || !errors.Is(err, types.ErrRange) {
		t.Errorf("FromUUID of the UUID of -1 = %d, %v; want ErrRange", got, err)
	}
}

// Law: each key has one UUID, of version 8 and variant 10, which is read back and sorts as
// the key does, as bytes and as text.
func FuzzUUID(f *testing.F) {
	f.Fuzz(func(t *testing.T, one, other int64) {
		a, b := types.Snowflake(one&math.MaxInt64), types.Snowflake(other&math.MaxInt64)
		ua, ub := a.UUID(), b.UUID()
		if got := uuidText(ua); got != digits(a) {
			t.Fatalf("Snowflake(%d).UUID() = %s; want %s", a, got, digits(a))
		}
		if ua[6]>>4 != 8 || ua[8]>>6 != 0b10 {
			t.Fatalf("UUID %s is not of version 8 and variant 10", uuidText(ua))
		}
		if got, err := types.FromUUID(ua); got != a || err != nil {
			t.Fatalf("FromUUID(%s) = %d, %v; want %d", uuidText(ua), got, err, a)
		}
		want := cmp.Compare(a, b)
		if bytes.Compare(ua[:], ub[:]) != want || strings.Compare(uuidText(ua), uuidText(ub)) != want {
			t.Fatalf("UUIDs of %d and %d sort otherwise than the keys", a, b)
		}
	})
}

// Law: what FromUUID reads is written again as the same UUID; all else is refused.
func FuzzFromUUID(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var u [16]byte
		copy(u[:], data)
		id, err := types.FromUUID(u)
		checkError(t, "FromUUID", err)
		if err == nil && id.UUID() != u || err != nil && id != 0 {
			t.Fatalf("FromUUID(%s) = %d, %v; want the key of this UUID, or 0 and an error", uuidText(u), id, err)
		}
	})
}
