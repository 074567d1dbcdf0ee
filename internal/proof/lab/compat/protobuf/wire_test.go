// Package protobuf tests what Protobuf, its JSON, its JavaScript libraries and gRPC-gateway do to a key.
package protobuf

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/types"
)

// file is what protoc would make of testdata/keys.proto.
var file = sync.OnceValues(func() (protoreflect.FileDescriptor, error) {
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"testdata"}}}
	files, err := compiler.Compile(context.Background(), "keys.proto")
	if err != nil {
		return nil, err
	}
	return files[0], nil
})

// empty returns a message without a key.
func empty(t *testing.T) *dynamicpb.Message {
	t.Helper()
	file, err := file()
	must(t, err)
	return dynamicpb.NewMessage(file.Messages().ByName("Keys"))
}

// message returns a message with the key in the fields, or in every field.
func message(t *testing.T, key types.Snowflake, names ...protoreflect.Name) *dynamicpb.Message {
	t.Helper()
	m := empty(t)
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if len(names) > 0 && !slices.Contains(names, field.Name()) {
			continue
		}
		switch field.Kind() {
		case protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(key.String()))
		case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
			m.Set(field, protoreflect.ValueOfUint64(uint64(key)))
		default:
			m.Set(field, protoreflect.ValueOfInt64(key.Int64()))
		}
	}
	return m
}

// scanned returns the keys of the fields of a message, each by Scan.
func scanned(t *testing.T, m *dynamicpb.Message) map[protoreflect.Name]types.Snowflake {
	t.Helper()
	keys := map[protoreflect.Name]types.Snowflake{}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
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
func every(t *testing.T, how string, m *dynamicpb.Message, key types.Snowflake) {
	t.Helper()
	keys := scanned(t, m)
	if fields := m.Descriptor().Fields().Len(); len(keys) != fields {
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
		wire, err := proto.Marshal(message(t, key))
		must(t, err)
		back := empty(t)
		must(t, proto.Unmarshal(wire, back))
		every(t, "the wire", back, key)
	}
}

// Other programs may write a number.
func TestProtojsonReadsANumberExactly(t *testing.T) {
	for _, key := range large.Keys {
		back := empty(t)
		text := `{"int64": ` + key.String() + `, "fixed64": ` + key.String() + "}"
		if err := protojson.Unmarshal([]byte(text), back); err != nil || !proto.Equal(back, message(t, key, "int64", "fixed64")) {
			t.Errorf("protojson.Unmarshal(%s) = %v, %v; want the key in both", text, back, err)
		}
	}
}

// The sizes of the page: the value alone, without the byte that names the field.
func TestAKeyIsNineBytesAsInt64AndEightAsFixed64(t *testing.T) {
	newKey := large.Keys[1]
	for field, want := range map[protoreflect.Name]int{
		"int64": 9, "uint64": 9, "sint64": 9, "fixed64": 8, "sfixed64": 8, "string": 19, "js_string": 8,
	} {
		if got := proto.Size(message(t, newKey, field)) - 1; got != want {
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

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
