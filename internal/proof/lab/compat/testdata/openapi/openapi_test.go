package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/shop/generated"
	"github.com/snowkey/snowkey/types"
)

// A server stores orders.
type server struct {
	mu     sync.Mutex // guards orders
	orders []generated.Order
}

func (s *server) CreateOrder(w http.ResponseWriter, r *http.Request) {
	var o generated.Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, o)
	reply(w, http.StatusCreated, o)
}

func (s *server) GetOrder(w http.ResponseWriter, _ *http.Request, id generated.OrderID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.Id == id {
			reply(w, http.StatusOK, o)
			return
		}
	}
	http.Error(w, "no such order", http.StatusNotFound)
}

func (s *server) ListOrders(w http.ResponseWriter, _ *http.Request, params generated.ListOrdersParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []generated.Order{}
	for _, o := range s.orders {
		id := o.Id.Snowflake()
		if (params.After == nil || id > *params.After) && (params.Ids == nil || slices.Contains(*params.Ids, id)) {
			found = append(found, o)
		}
	}
	reply(w, http.StatusOK, found)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// start returns the address of a server.
func start(t *testing.T) (*server, string) {
	s := new(server)
	at := httptest.NewServer(generated.Handler(s))
	t.Cleanup(at.Close)
	return s, at.URL
}

// orders returns an order for each of some keys that no double holds, the first without a parent.
func orders() (list []generated.Order) {
	keys := []types.Snowflake{1<<53 + 1, 118972074688540673, 1234567890123456789, 1<<63 - 1}
	for i, key := range keys {
		o := generated.Order{Id: generated.OrderID(key), CustomerId: key - 1, Lines: []generated.Snowflake{key, 0}}
		if i > 0 {
			o.ParentId = types.NullSnowflake{Snowflake: keys[i-1], Valid: true}
		}
		list = append(list, o)
	}
	return list
}

func TestTheGoClientKeepsEveryDigit(t *testing.T) {
	_, address := start(t)
	client, err := generated.NewClientWithResponses(address)
	if err != nil {
		t.Fatal(err)
	}
	list := orders()
	for _, o := range list {
		if r, err := client.CreateOrderWithResponse(t.Context(), o); err != nil || !reflect.DeepEqual(r.JSON201, &o) {
			t.Fatalf("CreateOrder(%+v) = %+v, %v; want the order", o, r, err)
		}
	}
	for _, o := range list {
		if r, err := client.GetOrderWithResponse(t.Context(), o.Id); err != nil || !reflect.DeepEqual(r.JSON200, &o) {
			t.Errorf("GetOrder(%d) = %+v, %v; want %+v", o.Id, r, err, o)
		}
	}
	after := list[0].Id.Snowflake()
	ids := []types.Snowflake{after, list[1].Id.Snowflake(), list[2].Id.Snowflake()}
	r, err := client.ListOrdersWithResponse(t.Context(), &generated.ListOrdersParams{After: &after, Ids: &ids})
	if want := list[1:3]; err != nil || r.JSON200 == nil || !reflect.DeepEqual(*r.JSON200, want) {
		t.Errorf("ListOrders(after %d, %d) = %+v, %v; want %+v", after, ids, r, err, want)
	}
}

func TestTheGoClientSendsNoNegativeKey(t *testing.T) {
	client, err := generated.NewClientWithResponses("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"path": func() error {
			_, err := client.GetOrderWithResponse(t.Context(), -1)
			return err
		},
		"body": func() error {
			_, err := client.CreateOrderWithResponse(t.Context(), generated.Order{Id: -1})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "types: cannot marshal") {
			t.Errorf("a call with a negative key in the %s = %v; want the error of package types", name, err)
		}
	}
}

func TestTheGeneratedServerReadsKeysAsParseDoes(t *testing.T) {
	s, address := start(t)
	for _, key := range []string{"-1", "007", "%2B5", "1e3", "1.0", "0x10", "1_000", "5%20", "9223372036854775808", "abc"} {
		for _, target := range []string{"/orders/" + key, "/orders?after=" + key, "/orders?ids=1&ids=" + key} {
			r, err := http.Get(address + target)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != http.StatusBadRequest {
				t.Errorf("GET %s = %s; want 400", target, r.Status)
			}
		}
	}
	for _, key := range []string{`""`, `"-1"`, `"007"`, `"+5"`, `"5 "`, `1.0`, `1e3`, `-1`, `9223372036854775808`, `true`, `{}`, `[]`} {
		body := `{"id": ` + key + `, "customerId": "1", "parentId": null, "lines": []}`
		r, err := http.Post(address+"/orders", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		s.mu.Lock()
		if r.StatusCode != http.StatusBadRequest || len(s.orders) > 0 {
			t.Errorf("POST %s = %s, stored %+v; want 400, nothing", body, r.Status, s.orders)
		}
		s.mu.Unlock()
	}
}

// document returns what openapi.yaml says.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	d, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// A pattern of 19 digits does not know where int64 ends.
func TestThePatternAllowsWhatParseReadsAndLargerNumbersOf19Digits(t *testing.T) {
	d := document(t)
	for _, name := range []string{"Snowflake", "NullSnowflake", "OrderID"} {
		schema := d.Components.Schemas[name].Value
		pattern := regexp.MustCompile(schema.Pattern)
		if example, ok := schema.Example.(string); !ok || !pattern.MatchString(example) {
			t.Errorf("the example of %s is %v; want text of the pattern", name, schema.Example)
		}
		for _, text := range []string{
			"0", "1", "10", "1234567890123456789", "9223372036854775806", "9223372036854775807",
			"9223372036854775808", "9999999999999999999", // these two are the exception
			"10000000000000000000", "", "-1", "+5", "-0", "00", "007", " 5", "5 ", "5\n", "1e3", "1.0", "0x10", "1_000", "５", "null",
		} {
			_, err := types.Parse(text)
			want := err == nil || len(text) == 19 && text > "9223372036854775807"
			if got := pattern.MatchString(text); got != want {
				t.Errorf("the pattern of %s matches %q: %v; want %v (Parse: %v)", name, text, got, want, err)
			}
		}
	}
}
