package publicid_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

type Customer struct{ ID types.ID[Customer] }

// Both have the same keys, so that the prefix alone tells them apart.
var customerIDs, _ = publicid.New(publicid.Config{Prefix: "customer", Keys: keys()})

func (Customer) PublicIDs() *publicid.Codec { return customerIDs }

// Forgotten has no Codec, because the program forgot to make it.
type Forgotten struct{}

func (Forgotten) PublicIDs() *publicid.Codec { return nil }

var (
	_ encoding.TextAppender    = publicid.ID[Order]{}
	_ encoding.TextMarshaler   = publicid.ID[Order]{}
	_ encoding.TextUnmarshaler = (*publicid.ID[Order])(nil)
	_ json.Unmarshaler         = (*publicid.ID[Order])(nil)
	_ fmt.Stringer             = publicid.ID[Order]{}
	_ driver.Valuer            = publicid.ID[Order]{} // which is an error
	_ sql.Scanner              = (*publicid.ID[Order])(nil)
	_ interface {
		UnmarshalParam(string) error
	} = (*publicid.ID[Order])(nil)
)

func of(id int64) publicid.ID[Order] { return publicid.Of(types.ID[Order](id)) }

// readers are all that read an ID from a text.
func readers() map[string]func(*publicid.ID[Order], string) error {
	return map[string]func(*publicid.ID[Order], string) error{
		"UnmarshalText":  func(id *publicid.ID[Order], text string) error { return id.UnmarshalText([]byte(text)) },
		"UnmarshalParam": func(id *publicid.ID[Order], text string) error { return id.UnmarshalParam(text) },
		"UnmarshalJSON": func(id *publicid.ID[Order], text string) error {
			if text == "null" { // bare, as it would be a JSON null
				text = "x"
			}
			return id.UnmarshalJSON([]byte(`"` + text + `"`))
		},
		"Parse": func(id *publicid.ID[Order], text string) error {
			parsed, err := publicid.Parse[Order](text)
			if err == nil {
				*id = parsed
			}
			return err
		},
	}
}

func TestEveryFormOfAnIDIsItsPublicForm(t *testing.T) {
	for _, key := range someIDs(100) {
		id, want := publicid.Of(types.ID[Order](key)), orderIDs.Encode(key)
		text, err := id.MarshalText()
		if string(text) != want || err != nil {
			t.Fatalf("MarshalText of %d = %q, %v; want %q, nil", key, text, err, want)
		}
		appended, err := id.AppendText([]byte("id="))
		if string(appended) != "id="+want || err != nil {
			t.Fatalf("AppendText of %d = %q, %v; want id=%s, nil", key, appended, err, want)
		}
		var slogged strings.Builder
		slog.New(slog.NewTextHandler(&slogged, nil)).Info("sold", "order", id)
		slog.New(slog.NewJSONHandler(&slogged, nil)).Info("sold", "order", id)
		for _, c := range []struct{ got, want string }{
			{id.String(), want}, {fmt.Sprint(id), want}, {fmt.Sprintf("%v %+v %s %q", id, &id, id, id), want + " " + want + " " + want + ` "` + want + `"`},
			{fmt.Sprintf("%v", OrderView{ID: id}), "{" + want + " }"},
		} {
			if c.got != c.want {
				t.Fatalf("a text of %d = %s; want %s", key, c.got, c.want)
			}
		}
		if log := slogged.String(); !strings.Contains(log, "order="+want+"\n") || !strings.Contains(log, `"order":"`+want+`"`) {
			t.Fatalf("slog writes %s; want %s in both lines", log, want)
		}
		for name, read := range readers() {
			var got publicid.ID[Order]
			if err := read(&got, want); err != nil || got != id || got.Key() != types.ID[Order](key) {
				t.Fatalf("%s(%q) = %v, %v; want %d, nil", name, want, got.Key(), err, key)
			}
		}
	}
}

// The verbs and the fields for which fmt calls no method.
func TestFmtShowsTheKeyWhereTheCommentSaysSo(t *testing.T) {
	for _, text := range []string{fmt.Sprintf("%d", of(12345)), fmt.Sprintf("%#v", of(12345)), fmt.Sprint(struct{ id publicid.ID[Order] }{of(12345)})} {
		if !strings.Contains(text, "12345") {
			t.Errorf("fmt writes %s; want the key, or another comment of ID", text)
		}
	}
}

// A codec is one of the two JSON packages, as in the tests of types.
type codec struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

func jsonV1() codec { return codec{"encoding/json", json.Marshal, json.Unmarshal} }

type everywhere struct {
	ID      publicid.ID[Order]                           `json:"id"`
	Buyer   publicid.ID[Customer]                        `json:"buyer"`
	Pointer *publicid.ID[Order]                          `json:"pointer"`
	Nil     *publicid.ID[Order]                          `json:"nil"`
	Slice   []publicid.ID[Order]                         `json:"slice"`
	ByID    map[publicid.ID[Order]]publicid.ID[Customer] `json:"by_id"`
	Omitted publicid.ID[Order]                           `json:"omitted,omitzero"`
	Any     any                                          `json:"any"`
}

func TestJSONIsTheTextWhereverTheIDStands(t *testing.T) {
	five := of(5)
	buyer := publicid.Of(types.ID[Customer](5))
	v := everywhere{
		ID: of(7), Buyer: buyer, Pointer: &five, Slice: []publicid.ID[Order]{of(0), of(1 << 53)},
		ByID: map[publicid.ID[Order]]publicid.ID[Customer]{of(8): buyer}, Any: of(9),
	}
	o, c := orderIDs.Encode, customerIDs.Encode
	want := `{"id":"` + o(7) + `","buyer":"` + c(5) + `","pointer":"` + o(5) + `","nil":null,"slice":["` + o(0) + `","` + o(1<<53) +
		`"],"by_id":{"` + o(8) + `":"` + c(5) + `"},"any":"` + o(9) + `"}`
	for _, codec := range codecs() {
		for _, in := range []any{v, &v} {
			if got, err := codec.marshal(in); string(got) != want || err != nil {
				t.Errorf("%s: Marshal(%T) = %s, %v; want %s, nil", codec.name, in, got, err, want)
			}
		}
		var got everywhere
		err := codec.unmarshal([]byte(strings.ReplaceAll(want, ",", " ,\n")), &got)
		got.Any = of(9) // nothing in the document says that it is an ID
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: Unmarshal = %+v, %v; want %+v, nil", codec.name, got, err, v)
		}
	}
}

func TestJSONThatIsNoPublicFormIsRefused(t *testing.T) {
	o := orderIDs.Encode(5)
	type request struct {
		ID  publicid.ID[Order]
		Map map[publicid.ID[Order]]int
	}
	for _, codec := range codecs() {
		for _, value := range []string{
			`5`, `"5"`, `250134256414617600`, `1.0`, `1e18`, `true`, `false`, `{}`, `[]`, `["` + o + `"]`, `""`, `" ` + o + `"`, `"` + o + ` "`,
			`"\u006f` + o[1:] + `"`, `"` + customerIDs.Encode(5) + `"`, `"` + orderIDs.Encode(-5) + `"`, `{"key":5}`, `"null"`,
		} {
			got := request{ID: of(7)}
			err := codec.unmarshal([]byte(`{"ID":`+value+`}`), &got)
			if !errors.Is(err, publicid.ErrInvalid) || got.ID != of(7) {
				t.Errorf("%s: Unmarshal(%s) = %v, %v; want ErrInvalid and the ID as before", codec.name, value, got.ID, err)
			}
		}
		for _, document := range []string{`{"ID":"` + o, `{"ID":"` + o + `"`, `{"ID":nul}`, `{"Map":{"5":1}}`, `{"Map":{"` + o[1:] + `":1}}`} {
			got := request{ID: of(7)}
			if err := codec.unmarshal([]byte(document), &got); err == nil || got.ID == of(0) {
				t.Errorf("%s: Unmarshal(%s) = %+v, %v; want an error", codec.name, document, got, err)
			}
		}
		got := request{ID: of(7)}
		if err := codec.unmarshal([]byte(`{"ID":null}`), &got); err != nil || got.ID != of(7) {
			t.Errorf("%s: Unmarshal(null) = %v, %v; want the ID as before, nil", codec.name, got.ID, err)
		}
		if err := codec.unmarshal([]byte(`{"ID":"`+o+`"}`), &got); err != nil || got.ID != of(5) {
			t.Errorf("%s: Unmarshal(%s) = %v, %v; want 5, nil", codec.name, o, got.ID.Key(), err)
		}
	}
}

// Other JSON packages may pass what is no JSON.
func TestUnmarshalJSONWantsQuotes(t *testing.T) {
	o := orderIDs.Encode(5)
	for _, text := range []string{"", `"`, o, "x" + o + "x", `"` + o, o + `"`, "'" + o + "'", ` "` + o + `"`, `"` + o + "x"} {
		id := of(7)
		if err := id.UnmarshalJSON([]byte(text)); !errors.Is(err, publicid.ErrInvalid) || id != of(7) {
			t.Errorf("UnmarshalJSON(%s) = %v, and the ID is %d; want ErrInvalid and 7, as before", text, err, id.Key())
		}
	}
}

func TestANegativeKeyIsNotWritten(t *testing.T) {
	b, err := of(-5).AppendText([]byte("id="))
	if string(b) != "id=" || !errors.Is(err, types.ErrRange) {
		t.Errorf("AppendText of -5 = %q, %v; want the bytes as they were, ErrRange", b, err)
	}
	if b, err := of(-5).MarshalText(); b != nil || !errors.Is(err, types.ErrRange) {
		t.Errorf("MarshalText of -5 = %q, %v; want nil, ErrRange", b, err)
	}
	if b, err := json.Marshal(of(-5)); b != nil || !errors.Is(err, types.ErrRange) {
		t.Errorf("Marshal of -5 = %q, %v; want nil, ErrRange", b, err)
	}
	if id, err := publicid.Parse[Order](of(-5).String()); !id.IsZero() || !errors.Is(err, publicid.ErrInvalid) {
		t.Errorf("Parse(String of -5) = %v, %v; want the zero ID, ErrInvalid", id.Key(), err)
	}
}

func TestAnIDReadsWhatIsOfItsTypeAlone(t *testing.T) {
	text := publicid.Of(types.ID[Customer](5)).String()
	if id, err := publicid.Parse[Order](text); !id.IsZero() || !errors.Is(err, publicid.ErrInvalid) {
		t.Errorf("Parse[Order](%q) = %v, %v; want the zero ID, ErrInvalid", text, id, err)
	}
	if id, err := publicid.Parse[Customer](text); id.Key() != 5 || err != nil {
		t.Errorf("Parse[Customer](%q) = %v, %v; want 5, nil", text, id.Key(), err)
	}
}

func TestWithoutACodecThereIsAnErrorAndNoPanic(t *testing.T) {
	const want = "publicid: Forgotten.PublicIDs is nil: want a Codec of publicid.New"
	id := publicid.Of(types.ID[Forgotten](5))
	_, marshal := id.MarshalText()
	_, parse := publicid.Parse[Forgotten]("order_x")
	for call, err := range map[string]error{
		"MarshalText": marshal, "Parse": parse, "UnmarshalText": id.UnmarshalText([]byte("x")), "UnmarshalJSON": id.UnmarshalJSON([]byte(`"x"`)),
	} {
		if ve := (*core.ValueError)(nil); !errors.As(err, &ve) || err.Error() != want || errors.Is(err, publicid.ErrInvalid) {
			t.Errorf("%s = %v; want %s", call, err, want)
		}
	}
	if got := id.String(); got != want {
		t.Errorf("String = %s; want %s", got, want)
	}
}

func TestAHandlerReadsAndWritesIDs(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}/buyer", func(w http.ResponseWriter, r *http.Request) {
		var id publicid.ID[Order]
		var body struct{ Buyer publicid.ID[Customer] }
		if err := errors.Join(id.UnmarshalText([]byte(r.PathValue("id"))), json.NewDecoder(r.Body).Decode(&body)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, "%d has %d", id.Key(), body.Buyer.Key())
	})
	put := func(id, buyer string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/orders/"+id+"/buyer", strings.NewReader(`{"Buyer":"`+buyer+`"}`)))
		return w.Code, w.Body.String()
	}
	order, buyer := orderIDs.Encode(7), customerIDs.Encode(5)
	if code, body := put(order, buyer); code != http.StatusOK || body != "7 has 5" {
		t.Errorf("PUT %s, %s = %d, %s; want 200, 7 has 5", order, buyer, code, body)
	}
	for _, c := range [][2]string{{buyer, buyer}, {order, order}, {"7", buyer}, {order, "5"}} {
		if code, _ := put(c[0], c[1]); code != http.StatusBadRequest {
			t.Errorf("PUT %s = %d; want 400", c, code)
		}
	}
}
