package graphql_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	graphql "github.com/snowkey/snowkey/internal/proof/lab/compat/shop"
	"github.com/snowkey/snowkey/internal/proof/lab/compat/shop/generated"
	"github.com/snowkey/snowkey/types"
)

// A server has orders, and counts what it was asked for.
type server struct {
	orders []*graphql.Order
	calls  int
}

func (s *server) Query() generated.QueryResolver       { return s }
func (s *server) Mutation() generated.MutationResolver { return s }

func (s *server) CreateOrder(_ context.Context, n graphql.NewOrder) (*graphql.Order, error) {
	s.calls++
	o := &graphql.Order{
		ID: 1234567890123456789, CustomerID: n.CustomerID, ParentID: n.ParentID, WarehouseID: n.WarehouseID, Lines: n.Lines,
	}
	s.orders = append(s.orders, o)
	return o, nil
}

func (s *server) Order(_ context.Context, id types.ID[graphql.Order]) (*graphql.Order, error) {
	s.calls++
	for _, o := range s.orders {
		if o.ID == id {
			return o, nil
		}
	}
	return nil, nil
}

func (s *server) Orders(_ context.Context, ids []types.Snowflake, after *types.Snowflake) (found []*graphql.Order, _ error) {
	s.calls++
	for _, o := range s.orders {
		if slices.Contains(ids, o.ID.Snowflake()) && (after == nil || o.ID.Snowflake() > *after) {
			found = append(found, o)
		}
	}
	return found, nil
}

// ask returns the response to an operation. The variables are a JSON object.
func (s *server) ask(t *testing.T, operation, variables string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": operation, "variables": json.RawMessage(variables)})
	if err != nil {
		t.Fatal(err)
	}
	h := handler.New(generated.NewExecutableSchema(generated.Config{Resolvers: s}))
	h.AddTransport(transport.POST{})
	// gqlgen panics for an integer literal above 2^63-1, and prints the stack by default.
	h.SetRecoverFunc(func(_ context.Context, reason any) error { return fmt.Errorf("%v", reason) })
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

const fields = `{id customerId parentId warehouseId lines}`

func TestKeysAreStringsInGraphQL(t *testing.T) {
	const (
		create = `mutation($order: NewOrder!) {createOrder(order: $order) ` + fields + `}`
		order  = `{"id":"1234567890123456789","customerId":"9007199254740993","parentId":"9223372036854775807",` +
			`"warehouseId":"0","lines":["9007199254740993","1"]}`
		lone = `{"id":"1234567890123456789","customerId":"7","parentId":null,"warehouseId":null,"lines":[]}`
	)
	for _, c := range []struct{ operation, variables, want string }{
		{create, `{"order": {"customerId": "9007199254740993", "parentId": "9223372036854775807", "warehouseId": "0", "lines": ["9007199254740993", "1"]}}`,
			`{"data":{"createOrder":` + order + `}}`},
		// A JSON number of a client that writes 64 bits.
		{create, `{"order": {"customerId": 9007199254740993, "parentId": 9223372036854775807, "warehouseId": 0, "lines": [9007199254740993, 1]}}`,
			`{"data":{"createOrder":` + order + `}}`},
		{create, `{"order": {"customerId": "7", "parentId": null, "lines": []}}`, `{"data":{"createOrder":` + lone + `}}`},
		{`mutation {createOrder(order: {customerId: 9007199254740993, parentId: "9223372036854775807", warehouseId: 0, lines: [9007199254740993, "1"]}) ` + fields + `}`, `{}`,
			`{"data":{"createOrder":` + order + `}}`},
		{`mutation {createOrder(order: {customerId: 7, parentId: null, lines: []}) ` + fields + `}`, `{}`,
			`{"data":{"createOrder":` + lone + `}}`},
	} {
		var s server
		if got := s.ask(t, c.operation, c.variables); got != c.want {
			t.Errorf("%s with %s = %s; want %s", c.operation, c.variables, got, c.want)
		}
	}
}

func TestAnOrderIsFoundByItsKeyInGraphQL(t *testing.T) {
	s := server{orders: []*graphql.Order{{ID: 1234567890123456789}, {ID: 1234567890123456790}}}
	for _, c := range []struct{ operation, variables, want string }{
		{`{order(id: "1234567890123456789") {id}}`, `{}`, `{"order":{"id":"1234567890123456789"}}`},
		{`{order(id: 1234567890123456789) {id}}`, `{}`, `{"order":{"id":"1234567890123456789"}}`},
		{`query($id: OrderID!) {order(id: $id) {id}}`, `{"id": "1234567890123456789"}`, `{"order":{"id":"1234567890123456789"}}`},
		{`query($id: OrderID!) {order(id: $id) {id}}`, `{"id": "1234567890123456800"}`, `{"order":null}`}, // the same double
		{`{orders(ids: ["1234567890123456789", 1234567890123456790]) {id}}`, `{}`,
			`{"orders":[{"id":"1234567890123456789"},{"id":"1234567890123456790"}]}`},
		{`query($ids: [ID!]!, $after: ID) {orders(ids: $ids, after: $after) {id}}`,
			`{"ids": ["1234567890123456789", "1234567890123456790"], "after": "1234567890123456789"}`,
			`{"orders":[{"id":"1234567890123456790"}]}`},
		{`query($after: ID) {orders(ids: "1234567890123456790", after: $after) {id}}`, `{"after": null}`,
			`{"orders":[{"id":"1234567890123456790"}]}`},
	} {
		if got, want := s.ask(t, c.operation, c.variables), `{"data":`+c.want+`}`; got != want {
			t.Errorf("%s with %s = %s; want %s", c.operation, c.variables, got, want)
		}
	}
}

func TestWhatIsNoKeyReachesNoResolver(t *testing.T) {
	var s server
	for _, key := range []string{
		`""`, `" 5"`, `"5 "`, `"+5"`, `"-0"`, `"-1"`, `"007"`, `"1_000"`, `"0x10"`, `"1e3"`, `"1.0"`, `"５"`, `"5\u0000"`,
		`"9223372036854775808"`, `"99999999999999999999"`, `"` + strings.Repeat("9", 1<<20) + `"`, `"AzL8n0Y58m7"`,
		`-1`, `1.0`, `1e3`, `1e18`, `9223372036854775808`, `true`, `[]`, `["5", "6"]`, `null`,
	} {
		for _, c := range []struct {
			operation, variables string
			nullable             bool
		}{
			{`{order(id: ` + key + `) {id}}`, `{}`, false},
			{`query($id: OrderID!) {order(id: $id) {id}}`, `{"id": ` + key + `}`, false},
			{`query($ids: [ID!]!) {orders(ids: $ids) {id}}`, `{"ids": [` + key + `]}`, false},
			{`{orders(ids: "5", after: ` + key + `) {id}}`, `{}`, true},
			{`mutation {createOrder(order: {customerId: ` + key + `, lines: []}) {id}}`, `{}`, false},
			{`mutation($parent: OrderID) {createOrder(order: {customerId: "5", parentId: $parent, lines: []}) {id}}`, `{"parent": ` + key + `}`, true},
			{`mutation($warehouse: ID) {createOrder(order: {customerId: "5", warehouseId: $warehouse, lines: []}) {id}}`, `{"warehouse": ` + key + `}`, true},
		} {
			if key == `null` && c.nullable {
				continue
			}
			got := s.ask(t, c.operation, c.variables)
			if !strings.HasPrefix(got, `{"errors":[{"message":`) || len(got) > 1000 || s.calls != 0 {
				t.Errorf("%.200s with %.200s = %.1000s and %d calls of a resolver; want an error and none", c.operation, c.variables, got, s.calls)
			}
		}
	}
}

func TestAKeyThatIsNoneIsAnErrorAtItsPathInGraphQL(t *testing.T) {
	s := server{orders: []*graphql.Order{{ID: 1, CustomerID: -5}}}
	for _, c := range []struct{ operation, want string }{
		{`{orders(ids: ["5", "007"]) {id}}`,
			`{"errors":[{"message":"types: cannot unmarshal GraphQL \"007\" into Snowflake: want a string or integer 0..9223372036854775807",` +
				`"path":["orders","ids",1]}],"data":null}`},
		{`{order(id: 1.5) {id}}`,
			`{"errors":[{"message":"types: cannot unmarshal GraphQL float64 1.5 into ID[Order]: want a string or integer 0..9223372036854775807",` +
				`"path":["order","id"]}],"data":{"order":null}}`},
		{`{order(id: 1) {customerId}}`,
			`{"errors":[{"message":"types: cannot marshal ID[Customer] -5 into text: want 0..9223372036854775807",` +
				`"path":["order","customerId"]}],"data":{"order":{"customerId":null}}}`},
	} {
		if got := s.ask(t, c.operation, `{}`); got != c.want {
			t.Errorf("%s = %s; want %s", c.operation, got, c.want)
		}
	}
}
