// Package protobuf tests what Protobuf, its JSON and its JavaScript libraries do to a key.
package protobuf

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/shop"
	"github.com/snowkey/snowkey/types"
)

// message returns a message with the key in every field.
func message(key types.Snowflake) *shop.Keys {
	return &shop.Keys{
		Int64: key.Int64(), Uint64: uint64(key), Sint64: key.Int64(), Fixed64: uint64(key), Sfixed64: key.Int64(),
		String_: key.String(), JsString: key.Int64(),
	}
}

// scanned returns the keys of the fields of a message, each by Scan.
func scanned(t *testing.T, m *shop.Keys) map[protoreflect.Name]types.Snowflake {
	t.Helper()
	keys := map[protoreflect.Name]types.Snowflake{}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		var key types.Snowflake
		if err := key.Scan(value.Interface()); err != nil {
			t.Errorf("Scan(%v) of the field %s = %v; want nil", value, field.Name(), err)
		}
		keys[field.Name()] = key
		return true
	})
	return keys
}

// every fails the test unless each field of the message has the key.
func every(t *testing.T, how string, m *shop.Keys, key types.Snowflake) {
	t.Helper()
	keys := scanned(t, m)
	if fields := m.ProtoReflect().Descriptor().Fields().Len(); len(keys) != fields {
		t.Errorf("%s keeps the fields %v; want %d of them", how, keys, fields)
	}
	for field, got := range keys {
		if got != key {
			t.Errorf("%s makes %d of the key %d in the field %s", how, got, key, field)
		}
	}
}

func TestProtobufKeepsAKeyInEveryType(t *testing.T) {
	for _, key := range large.Keys {
		wire, err := proto.Marshal(message(key))
		if err != nil {
			t.Fatal(err)
		}
		var back shop.Keys
		if err := proto.Unmarshal(wire, &back); err != nil {
			t.Fatal(err)
		}
		every(t, "the wire", &back, key)
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

// The sizes of the page: the value alone, without the byte that names the field.
func TestAKeyIsNineBytesAsInt64AndEightAsFixed64(t *testing.T) {
	newKey := large.Keys[1]
	for field, want := range map[protoreflect.Name]int{
		"int64": 9, "uint64": 9, "sint64": 9, "fixed64": 8, "sfixed64": 8, "string": 19, "js_string": 8,
	} {
		one := message(newKey).ProtoReflect()
		one.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if f.Name() != field {
				one.Clear(f)
			}
			return true
		})
		if got := proto.Size(one.Interface()) - 1; got != want {
			t.Errorf("size of %d in the field %s = %d bytes; want %d", newKey, field, got, want)
		}
	}
}

func TestScanRefusesANumberThatIsNoKey(t *testing.T) {
	for _, number := range []any{int64(-1), int64(-1 << 63), uint64(1 << 63)} {
		key := types.Snowflake(42)
		if err := key.Scan(number); key != 42 || !errors.Is(err, types.ErrRange) {
			t.Errorf("Scan(%T %v) = %d, %v; want 42 and an error that matches ErrRange", number, number, key, err)
		}
	}
}
