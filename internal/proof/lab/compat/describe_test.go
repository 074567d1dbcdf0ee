package compat

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/invopop/jsonschema"

	"github.com/snowkey/snowkey/types"
)

// Document has the types as a JSON API has them.
type Document struct {
	ID     types.Snowflake     `json:"id"`
	Parent types.NullSnowflake `json:"parent" jsonschema:"nullable"`
	Items  []types.Snowflake   `json:"items"`
}

// stringSchema is for openapi3gen.SchemaCustomizer.
func stringSchema(_ string, typ reflect.Type, _ reflect.StructTag, schema *openapi3.Schema) error {
	if typ.Implements(reflect.TypeFor[interface{ JSONSchemaAlias() any }]()) {
		*schema = *openapi3.NewStringSchema()
		schema.Nullable = typ.Kind() == reflect.Struct // a NullSnowflake or a NullID
	}
	return nil
}

func TestSchemaOfAnIDIsAString(t *testing.T) {
	huma := huma.SchemaFromType(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer), reflect.TypeFor[Document]())
	kin, err := openapi3gen.NewSchemaRefForValue(Document{}, nil, openapi3gen.SchemaCustomizer(stringSchema))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name             string
		schema           any
		id, parent, item string
	}{
		{"jsonschema", (&jsonschema.Reflector{ExpandedStruct: true}).Reflect(Document{}),
			`{"type":"string"}`, `{"oneOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string"}`},
		{"huma", huma, `{"type":"string"}`, `{"type":"string"}`, `{"type":"string"}`},
		{"kin-openapi", kin, `{"type":"string"}`, `{"nullable":true,"type":"string"}`, `{"type":"string"}`},
	} {
		text, err := json.Marshal(c.schema)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Properties struct {
				ID, Parent json.RawMessage
				Items      struct{ Items json.RawMessage }
			}
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		p := got.Properties
		if string(p.ID) != c.id || string(p.Parent) != c.parent || string(p.Items.Items) != c.item {
			t.Errorf("%s: id %s, parent %s, an item %s; want %s, %s, %s\n%s",
				c.name, p.ID, p.Parent, p.Items.Items, c.id, c.parent, c.item, text)
		}
	}
}
