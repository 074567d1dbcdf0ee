package compat

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/gin-gonic/gin"
	"github.com/go-playground/validator/v10"
	"github.com/go-viper/mapstructure/v2"
	"github.com/invopop/jsonschema"
	"github.com/jmoiron/sqlx"
	"github.com/labstack/echo/v4"
	"github.com/swaggo/swag"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	yaml "go.yaml.in/yaml/v3"

	"github.com/snowkey/snowkey/types"
)

// typedBuyer and typedOrder are marks of their own keys.
type (
	typedBuyer struct{}

	typedOrder struct {
		ID      types.ID[typedOrder]            `json:"id" yaml:"id" xml:"id,attr"`
		Parent  types.NullID[typedOrder]        `json:"parent" yaml:"parent" xml:"parent" jsonschema:"nullable"`
		BuyerID types.ID[typedBuyer]            `json:"buyer_id" yaml:"buyer_id" xml:"buyer"`
		Several []types.ID[typedBuyer]          `json:"several" yaml:"several" xml:"several"`
		Counts  map[types.ID[typedBuyer]]uint64 `json:"counts" yaml:"counts" xml:"-"`
	}
)

// typedOrders are one with all keys, and one that has no parent.
func typedOrders() []typedOrder {
	full := typedOrder{
		ID: types.ID[typedOrder](id), Parent: types.NullID[typedOrder]{ID: 1<<63 - 1, Valid: true}, BuyerID: 9007199254740993,
		Several: []types.ID[typedBuyer]{1, 9007199254740993}, Counts: map[types.ID[typedBuyer]]uint64{9007199254740993: 5},
	}
	single := full
	single.Parent = types.NullID[typedOrder]{}
	return []typedOrder{full, single}
}

func TestTypedKeysAreEncodedExactly(t *testing.T) {
	for _, c := range []struct {
		name      string
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
		want      []string // in what is written of the first order
	}{
		{"json", json.Marshal, json.Unmarshal, []string{`"id":"175928847299117063"`, `"parent":"9223372036854775807"`, `"counts":{"9007199254740993":5}`}},
		{"yaml", yaml.Marshal, yaml.Unmarshal, []string{`id: "175928847299117063"`, `parent: "9223372036854775807"`, `"9007199254740993": 5`}},
		{"xml", xml.Marshal, xml.Unmarshal, []string{`<typedOrder id="175928847299117063">`, `<parent>9223372036854775807</parent>`, `<buyer>9007199254740993</buyer>`}},
		{"gob", func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.Bytes(), err
		}, func(data []byte, v any) error { return gob.NewDecoder(bytes.NewReader(data)).Decode(v) }, nil},
	} {
		for i, order := range typedOrders() {
			text, err := c.marshal(order)
			if err != nil {
				t.Errorf("%s: Marshal(%+v) = %v; want nil", c.name, order, err)
				continue
			}
			for _, want := range c.want {
				if i == 0 && !strings.Contains(string(text), want) {
					t.Errorf("%s: Marshal = %s; want %s in it", c.name, text, want)
				}
			}
			var got typedOrder
			err = c.unmarshal(text, &got)
			if c.name == "xml" { // which writes no maps
				got.Counts = order.Counts
			}
			if err != nil || !reflect.DeepEqual(got, order) {
				t.Errorf("%s: Unmarshal(%s) = %+v, %v; want %+v, nil", c.name, text, got, err, order)
			}
		}
	}
}

func TestCBORAndMessagePackHaveTypedKeysAsTheUntyped(t *testing.T) {
	type typed struct {
		ID     types.ID[typedOrder]
		Parent types.NullID[typedOrder]
	}
	for _, c := range codecs(t) {
		for _, null := range []types.NullSnowflake{{}, {Valid: true}, {Snowflake: id, Valid: true}} {
			want := typed{ID: 5, Parent: types.NullID[typedOrder]{ID: types.ID[typedOrder](null.Snowflake), Valid: null.Valid}}
			data, err := c.marshal(want)
			if err != nil {
				t.Errorf("%s: Marshal(%+v) = %v; want nil", c.name, want, err)
				continue
			}
			var got typed
			if err := c.unmarshal(data, &got); err != nil || got != want {
				t.Errorf("%s: Unmarshal(%q) = %+v, %v; want %+v, nil", c.name, data, got, err, want)
			}
		}
		if got, err := c.marshal(types.ID[typedOrder](5)); string(got) != c.want || err != nil {
			t.Errorf("%s: Marshal(ID 5) = %q, %v; want %q, as of a Snowflake", c.name, got, err, c.want)
		}
	}
}

// The trap that docs/types.md names: both are structs there, whose fields have other names.
func TestGobDoesNotReadANullSnowflakeIntoANullID(t *testing.T) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(types.NullSnowflake{Snowflake: id, Valid: true}); err != nil {
		t.Fatal(err)
	}
	var got types.NullID[typedOrder]
	if err := gob.NewDecoder(&b).Decode(&got); err != nil || got != (types.NullID[typedOrder]{Valid: true}) {
		t.Errorf("Decode(a NullSnowflake) = %+v, %v; want a present zero, nil, or a document that says otherwise", got, err)
	}
}

func TestTypedKeysAreBoundAsParseReads(t *testing.T) {
	type target struct {
		ID     types.ID[typedOrder]     `uri:"id" param:"id"`
		After  types.ID[typedBuyer]     `form:"after" query:"after"`
		Parent types.NullID[typedOrder] `form:"parent" query:"parent"`
	}
	gin.SetMode(gin.TestMode)
	for name, bind := range map[string]func(string) (target, error){
		"gin": func(url string) (to target, err error) {
			router := gin.New()
			router.GET("/orders/:id", func(c *gin.Context) { err = errors.Join(c.ShouldBindUri(&to), c.ShouldBindQuery(&to)) })
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
			return to, err
		},
		"echo": func(url string) (to target, err error) {
			router := echo.New()
			router.GET("/orders/:id", func(c echo.Context) error {
				err = c.Bind(&to)
				return nil
			})
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, nil))
			return to, err
		},
	} {
		want := target{ID: 1<<63 - 1, After: 9007199254740993, Parent: types.NullID[typedOrder]{Valid: true}}
		if got, err := bind("/orders/9223372036854775807?after=9007199254740993&parent=0"); got != want || err != nil {
			t.Errorf("%s bound %+v, %v; want %+v, nil", name, got, err, want)
		}
		if got, err := bind("/orders/1?parent="); got != (target{ID: 1}) || err != nil {
			t.Errorf("%s bound an empty parent to %+v, %v; want it absent, nil", name, got, err)
		}
		for _, text := range []string{"-1", "007", "%2B5", "1e3", "9223372036854775808", "abc"} {
			for _, url := range []string{"/orders/" + text, "/orders/1?after=" + text, "/orders/1?parent=" + text} {
				if got, err := bind(url); err == nil {
					t.Errorf("%s bound %s to %+v; want an error", name, url, got)
				}
			}
		}
	}
}

func TestValidatorTakesAnUnassignedTypedKeyForMissing(t *testing.T) {
	type request struct {
		ID     types.ID[typedOrder]     `validate:"required,gt=0"`
		Parent types.NullID[typedOrder] `validate:"required"`
	}
	// Without the option, validator looks at no struct that is required.
	plain, strict := validator.New(), validator.New(validator.WithRequiredStructEnabled())
	present := types.NullID[typedOrder]{Valid: true}
	for _, c := range []struct {
		request       request
		plain, strict int // errors
	}{
		{request{ID: 5, Parent: present}, 0, 0},
		{request{Parent: present}, 1, 1},
		{request{ID: -5, Parent: present}, 1, 1},
		{request{ID: 5}, 0, 1},
	} {
		for v, want := range map[*validator.Validate]int{plain: c.plain, strict: c.strict} {
			var invalid validator.ValidationErrors
			if err := v.Struct(c.request); err != nil && !errors.As(err, &invalid) || len(invalid) != want {
				t.Errorf("Struct(%+v) = %v; want %d validation errors, strict: %v", c.request, err, want, v == strict)
			}
		}
	}
}

func TestMapstructureDecodesTypedKeysExactly(t *testing.T) {
	type target struct {
		ID     types.ID[typedOrder]
		Parent types.NullID[typedOrder]
	}
	present := types.NullID[typedOrder]{ID: types.ID[typedOrder](id), Valid: true}
	for _, c := range []struct {
		input map[string]any
		want  target
	}{
		{map[string]any{"id": "5", "parent": "175928847299117063"}, target{5, present}},
		{map[string]any{"id": 5, "parent": id.Int64()}, target{5, present}},
		{map[string]any{"id": 5.0, "parent": present}, target{5, present}},
		{map[string]any{"id": 5, "parent": &present}, target{5, present}},
		{map[string]any{"id": 5, "parent": types.NullSnowflake{Snowflake: id, Valid: true}}, target{5, present}},
		{map[string]any{"id": types.ID[typedOrder](5), "parent": types.ID[typedOrder](id)}, target{5, present}},
		{map[string]any{"id": 5, "parent": nil}, target{ID: 5}},
		{map[string]any{"id": 5, "parent": ""}, target{ID: 5}},
		{map[string]any{"id": 5}, target{ID: 5}},
	} {
		var got target
		if err := mapstructure.Decode(c.input, &got); got != c.want || err != nil {
			t.Errorf("Decode(%v) = %+v, %v; want %+v, nil", c.input, got, err, c.want)
		}
	}
	for _, value := range []any{1e17, "007", -1, 1.5, true, types.NullID[typedBuyer]{ID: 5, Valid: true}} {
		for _, field := range []string{"id", "parent"} {
			got := target{ID: 7, Parent: present}
			err := mapstructure.Decode(map[string]any{field: value}, &got)
			if err == nil || got != (target{ID: 7, Parent: present}) {
				t.Errorf("Decode(%s: %T %v) = %+v, %v; want an error and no change", field, value, value, got, err)
			}
		}
	}
}

func TestSchemaOfATypedKeyIsAString(t *testing.T) {
	kin, err := openapi3gen.NewSchemaRefForValue(typedOrder{}, nil, openapi3gen.SchemaCustomizer(stringSchema))
	if err != nil {
		t.Fatal(err)
	}
	for name, schema := range map[string]any{
		"jsonschema":  (&jsonschema.Reflector{ExpandedStruct: true}).Reflect(typedOrder{}),
		"huma":        huma.SchemaFromType(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer), reflect.TypeFor[typedOrder]()),
		"kin-openapi": kin,
	} {
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Properties struct {
				ID, Parent json.RawMessage
				Several    struct{ Items json.RawMessage }
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		p := got.Properties
		parent := map[string]string{
			"jsonschema": `{"oneOf":[{"type":"string"},{"type":"null"}]}`, "huma": `{"type":"string"}`, "kin-openapi": `{"nullable":true,"type":"string"}`,
		}[name]
		if string(p.ID) != `{"type":"string"}` || string(p.Parent) != parent || string(p.Several.Items) != `{"type":"string"}` {
			t.Errorf("%s: id %s, parent %s, an item %s; want strings, the parent as %s\n%s", name, p.ID, p.Parent, p.Several.Items, parent, text)
		}
	}
}

// swag reads sources: testdata/swag has an API with both kinds of keys, with and without the tag.
func TestSwagNeedsItsTagForKeys(t *testing.T) {
	parser := swag.New(swag.SetParseDependency(1), swag.ParseUsingGoList(true), swag.SetDebugger(log.New(io.Discard, "", 0)))
	if err := parser.ParseAPI("testdata/swag", "main.go", 100); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"main.Untyped", "main.Typed"} {
		properties := parser.GetSwagger().Definitions[model].Properties
		got := map[string]string{}
		for name, p := range properties {
			got[name] = strings.Join(p.Type, ",")
			if len(p.AllOf) > 0 || p.Ref.String() != "" {
				got[name] = "object"
			}
		}
		want := map[string]string{"id": "integer", "parent": "object", "tagged": "string", "tagged_parent": "string"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is described as %v; want %v", model, got, want)
		}
	}
}

type bunTyped struct {
	ID       types.ID[bunTyped]       `bun:",pk"`
	Parent   types.NullID[bunTyped]   `bun:"type:bigint"`
	Untagged types.NullID[typedBuyer] `bun:",nullzero"`
}

func TestBunStoresTypedKeys(t *testing.T) {
	for dialect, want := range map[schema.Dialect][]string{
		pgdialect.New():     {`"id" BIGINT NOT NULL`, `"parent" bigint`, `"untagged" JSONB`},
		sqlitedialect.New(): {`"id" INTEGER NOT NULL`, `"parent" bigint`, `"untagged" VARCHAR`},
	} {
		table := bunDB(t, dialect).NewCreateTable().Model((*bunTyped)(nil)).String()
		for _, column := range want {
			if !strings.Contains(table, column) {
				t.Errorf("%s: %s; want the column %s", dialect.Name(), table, column)
			}
		}
	}
	db := bunDB(t, sqlitedialect.New())
	ctx := t.Context()
	if _, err := db.NewCreateTable().Model((*bunTyped)(nil)).Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for _, row := range []bunTyped{
		{ID: 1},
		{ID: 2, Parent: types.NullID[bunTyped]{Valid: true}},
		{ID: 1<<63 - 1, Parent: types.NullID[bunTyped]{ID: types.ID[bunTyped](id), Valid: true}},
	} {
		if _, err := db.NewInsert().Model(&row).Exec(ctx); err != nil {
			t.Fatalf("insert %+v = %v; want nil", row, err)
		}
		got := bunTyped{Parent: types.NullID[bunTyped]{ID: 7, Valid: true}}
		if err := db.NewSelect().Model(&got).Where("id = ?", row.ID).Scan(ctx); got != row || err != nil {
			t.Errorf("select of %d = %+v, %v; want %+v, nil", row.ID, got, err, row)
		}
	}
}

func TestSqlxExpandsSlicesOfKeys(t *testing.T) {
	pool := bunDB(t, sqlitedialect.New()).DB
	db := sqlx.NewDb(pool, "sqlite3")
	db.MustExec("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	db.MustExec("INSERT INTO orders VALUES (1), (2), (9223372036854775807)")
	for _, ids := range []any{[]types.Snowflake{1, 1<<63 - 1}, []types.ID[typedOrder]{1, 1<<63 - 1}} {
		query, args, err := sqlx.In("SELECT count(*) FROM orders WHERE id IN (?)", ids)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := db.Get(&n, query, args...); n != 2 || err != nil {
			t.Errorf("Get(IN %T) = %d, %v; want 2, nil", ids, n, err)
		}
	}
}
