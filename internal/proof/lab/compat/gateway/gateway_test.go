// Package gateway tests what a client of gRPC-gateway gets and sends for a key.
package gateway

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/shop"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// orders has an order for every key, and keeps the keys of those that clients save.
type orders struct {
	shop.UnimplementedOrdersServer
	mu   sync.Mutex
	keys []types.Snowflake
}

func (o *orders) saved() []types.Snowflake {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.keys)
}

func (*orders) GetOrder(_ context.Context, r *shop.GetOrderRequest) (*shop.Order, error) {
	var id types.Snowflake
	if err := id.Scan(r.GetId()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &shop.Order{Id: id.Int64(), ParentId: id.Int64()}, nil
}

func (o *orders) FindOrder(ctx context.Context, r *shop.FindOrderRequest) (*shop.Order, error) {
	id, err := types.Parse(r.GetId())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return o.GetOrder(ctx, &shop.GetOrderRequest{Id: id.Int64()})
}

func (o *orders) SaveOrder(_ context.Context, r *shop.Order) (*shop.Order, error) {
	var id types.Snowflake
	if err := id.Scan(r.GetId()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, id)
	return r, nil
}

// serve returns the URL of a gateway in front of a gRPC server for the orders.
func serve(t *testing.T, o *orders, options ...runtime.ServeMuxOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	shop.RegisterOrdersServer(server, o)
	go func() { _ = server.Serve(listener) }() // Stop ends it
	t.Cleanup(server.Stop)
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	mux := runtime.NewServeMux(options...)
	if err := shop.RegisterOrdersHandler(t.Context(), mux, client); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	return front.URL
}

// passOn runs a client that gets the order of each key and saves it. It returns the order as the
// client prints it.
func passOn(t *testing.T, url string) []string {
	t.Helper()
	var keys []string
	for _, key := range large.Keys {
		keys = append(keys, key.String())
	}
	return node.Lines(t, "testdata", "client.mjs", keys, url)
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
			var o orders
			parent := "parentId"
			if name == "UseProtoNames" {
				parent = "parent_id"
			}
			for i, got := range passOn(t, serve(t, &o, options...)) {
				key := large.Keys[i].String()
				if want := `{"id":"` + key + `","` + parent + `":"` + key + `"}`; got != want {
					t.Errorf("the client gets %s; want %s", got, want)
				}
			}
			if got := o.saved(); !slices.Equal(got, large.Keys) {
				t.Errorf("the client saves %d; want %d", got, large.Keys)
			}
		})
	}
}

// The last key becomes a number above those of an int64, which is an error and not another key.
func TestGatewayWithJSONBuiltinIsRoundedInJavaScript(t *testing.T) {
	var o orders
	for i, got := range passOn(t, serve(t, &o, marshaler(&runtime.JSONBuiltin{}))) {
		if key := large.Rounded[i]; got != `{"id":`+key+`,"parent_id":`+key+"}" {
			t.Errorf("the client gets %s for the key %d; want %s, rounded", got, large.Keys[i], key)
		}
	}
	want := []types.Snowflake{9007199254740992, 118972074688540670, 1234567890123456800}
	if got := o.saved(); !slices.Equal(got, want) {
		t.Errorf("the client saves %d; want %d", got, want)
	}
}

// get returns the key of the order that a path has, or nothing if it is refused.
func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var order struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&order); err != nil {
		t.Fatal(err)
	}
	if refused := response.StatusCode == http.StatusBadRequest; refused != (order.ID == "") {
		t.Errorf("GET %s = %s with the order %q; want status 400 or an order", url, response.Status, order.ID)
	}
	return order.ID
}

// The generated code reads an int64 of the path as Go reads a literal. A string is for Parse.
func TestGatewayReadsAnInt64OfThePathInOtherBases(t *testing.T) {
	url := serve(t, &orders{})
	for _, c := range []struct{ path, integer, text string }{
		{"1234567890123456789", "1234567890123456789", "1234567890123456789"},
		{"9223372036854775807", "9223372036854775807", "9223372036854775807"},
		{"010", "8", ""},
		{"0x10", "16", ""},
		{"1_0", "10", ""},
		{"-1", "", ""}, // Scan refuses it
		{"9223372036854775808", "", ""},
	} {
		if got := get(t, url+"/orders/"+c.path); got != c.integer {
			t.Errorf("an int64 reads %s in the path as %q; want %q", c.path, got, c.integer)
		}
		if got := get(t, url+"/texts/"+c.path); got != c.text {
			t.Errorf("Parse of a string reads %s in the path as %q; want %q", c.path, got, c.text)
		}
	}
}
