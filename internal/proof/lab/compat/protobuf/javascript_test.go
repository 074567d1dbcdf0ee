package protobuf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// A reading is what a library of JavaScript makes of a key.
type reading struct {
	Type string
	Text string
	Sent []byte // the message that it sends for it, unless it is a number
}

// readings returns what each library makes of the keys.
func readings(t *testing.T, keys []types.Snowflake) map[string][]reading {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "keys.proto"))
	must(t, err)
	marshal := func(m proto.Message) []byte {
		wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(m) // in the order of the fields, as generated code does
		must(t, err)
		return wire
	}
	file := protodesc.ToFileDescriptorProto(empty(t).Descriptor().ParentFile())
	work := struct {
		Source      string   `json:"source"`
		Descriptors []byte   `json:"descriptors"`
		Messages    [][]byte `json:"messages"`
	}{
		Source:      string(source),
		Descriptors: marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}}),
	}
	for _, key := range keys {
		work.Messages = append(work.Messages, marshal(message(t, key, "int64", "js_string")))
	}
	text, err := json.Marshal(work)
	must(t, err)
	var results map[string][]reading
	out := node.Run(t, node.Project(t, "testdata"), "keys.mjs", string(text))
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("keys.mjs prints %s: %v", out, err)
	}
	return results
}

func TestJavaScriptReadsAnInt64OfProtobuf(t *testing.T) {
	results := readings(t, large.Keys)
	for name, want := range map[string]string{
		"protobufjs":                   "object", // a Long
		"protobufjs, longs: Number":    "number",
		"protobufjs, longs: String":    "string",
		"protobufjs, longs: BigInt":    "bigint",
		"protobuf-es":                  "bigint",
		"protobuf-es, JS_STRING":       "string",
		"google-protobuf 3":            "number",
		"google-protobuf 3, JS_STRING": "string",
		"google-protobuf 4":            "string",
		"google-protobuf 4, JS_STRING": "string",
	} {
		t.Run(name, func(t *testing.T) {
			for i, key := range large.Keys {
				got := results[name][i]
				if got.Type != want {
					t.Errorf("type of the key %d = %s; want %s", key, got.Type, want)
				}
				if want == "number" {
					if got.Text != large.Rounded[i] {
						t.Errorf("text of the key %d = %s; want it rounded, %s", key, got.Text, large.Rounded[i])
					}
					continue
				}
				back := empty(t)
				if err := proto.Unmarshal(got.Sent, back); err != nil || !proto.Equal(back, message(t, key, "int64")) || got.Text != key.String() {
					t.Errorf("the key %d has the text %s and comes back as %v, %v; want no change", key, got.Text, back, err)
				}
			}
		})
	}
}

// The type changes with the value, so a test with small keys does not find a program that
// computes with them.
func TestGoogleProtobuf4ReadsASmallKeyAsANumber(t *testing.T) {
	results := readings(t, []types.Snowflake{5})
	if got := results["google-protobuf 4"][0].Type; got != "number" {
		t.Errorf("type of the key 5 = %s; want number", got)
	}
	if got := results["google-protobuf 4, JS_STRING"][0].Type; got != "string" {
		t.Errorf("type of the key 5 with JS_STRING = %s; want string", got)
	}
}
