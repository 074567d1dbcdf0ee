package protobuf

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// An order is a message whose code protoc-gen-go has generated, with the key in an int64. It is not the
// dynamic message of the other tests, of which encoding/json sees no field.
func order(key types.Snowflake) *descriptorpb.UninterpretedOption {
	return &descriptorpb.UninterpretedOption{NegativeIntValue: proto.Int64(key.Int64())}
}

// passOn writes the order of each key as a gateway with the options does, has a client in JavaScript parse
// it and write it again, and returns that with what the gateway reads in it.
func passOn(t *testing.T, options ...runtime.ServeMuxOption) (texts []string, back []int64, errs []error) {
	t.Helper()
	// The code of a gateway gets both from here.
	in, out := runtime.MarshalerForRequest(runtime.NewServeMux(options...), httptest.NewRequest(http.MethodPost, "/orders", nil))
	for _, key := range large.Keys {
		text, err := out.Marshal(order(key))
		must(t, err)
		texts = append(texts, string(text))
	}
	texts = node.Lines(t, filepath.Join("..", "javascript", "testdata"), "json.mjs", texts)
	for _, text := range texts {
		var o descriptorpb.UninterpretedOption
		errs = append(errs, in.NewDecoder(strings.NewReader(text)).Decode(&o))
		back = append(back, o.GetNegativeIntValue())
	}
	return texts, back, errs
}

func marshaler(m runtime.Marshaler) runtime.ServeMuxOption {
	return runtime.WithMarshalerOption(runtime.MIMEWildcard, m)
}

func TestGatewayKeepsAKeyInJavaScript(t *testing.T) {
	for name, options := range map[string][]runtime.ServeMuxOption{
		"default":         nil,
		"zero JSONPb":     {marshaler(&runtime.JSONPb{})},
		"UseProtoNames":   {marshaler(&runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{UseProtoNames: true}})},
		"EmitUnpopulated": {marshaler(&runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{EmitUnpopulated: true}})},
		"UseEnumNumbers":  {marshaler(&runtime.JSONPb{MarshalOptions: protojson.MarshalOptions{UseEnumNumbers: true}})},
	} {
		t.Run(name, func(t *testing.T) {
			texts, back, errs := passOn(t, options...)
			for i, key := range large.Keys {
				if !strings.Contains(texts[i], `"`+key.String()+`"`) || back[i] != key.Int64() || errs[i] != nil {
					t.Errorf("the client gets %s and saves %d, %v; want the key %d", texts[i], back[i], errs[i], key)
				}
			}
		})
	}
}

// The last key becomes a number above those of an int64, which is an error and not another key.
func TestGatewayWithJSONBuiltinIsRoundedInJavaScript(t *testing.T) {
	texts, back, errs := passOn(t, marshaler(&runtime.JSONBuiltin{}))
	want := []int64{9007199254740992, 118972074688540670, 1234567890123456800, 0}
	for i, key := range large.Keys {
		if text := `{"negative_int_value":` + large.Rounded[i] + `}`; texts[i] != text {
			t.Errorf("the client gets %s for the key %d; want %s, rounded", texts[i], key, text)
		}
		if refused := want[i] == 0; back[i] != want[i] || (errs[i] != nil) != refused {
			t.Errorf("the client saves %d, %v; want %d, refused: %v", back[i], errs[i], want[i], refused)
		}
	}
}

// The code of a gateway reads an int64 of the path with runtime.Int64, as Go reads a literal. A string is for
// Parse.
func TestGatewayReadsAnInt64OfThePathInOtherBases(t *testing.T) {
	for _, c := range []struct {
		path          string
		integer, text types.Snowflake // 0: refused
	}{
		{"1234567890123456789", 1234567890123456789, 1234567890123456789},
		{"9223372036854775807", 9223372036854775807, 9223372036854775807},
		{"010", 8, 0},
		{"0x10", 16, 0},
		{"1_0", 10, 0},
		{"-1", 0, 0}, // Scan refuses it
		{"9223372036854775808", 0, 0},
	} {
		var integer types.Snowflake
		number, err := runtime.Int64(c.path)
		if err == nil {
			err = integer.Scan(number)
		}
		if integer != c.integer || (err != nil) != (c.integer == 0) {
			t.Errorf("an int64 reads %s in the path as %d, %v; want %d", c.path, integer, err, c.integer)
		}
		if text, err := types.Parse(c.path); text != c.text || (err != nil) != (c.text == 0) {
			t.Errorf("Parse of a string reads %s in the path as %d, %v; want %d", c.path, text, err, c.text)
		}
	}
}
