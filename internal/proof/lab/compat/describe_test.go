package compat

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3gen"
	"github.com/invopop/jsonschema"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// Documents have keys as a JSON API has them.
type (
	untypedDocument struct {
		ID     types.Snowflake     `json:"id"`
		Parent types.NullSnowflake `json:"parent" jsonschema:"nullable"`
		Items  []types.Snowflake   `json:"items"`
	}
	typedDocument struct {
		ID     types.ID[buyer]      `json:"id"`
		Parent types.NullID[seller] `json:"parent" jsonschema:"nullable"`
		Items  []types.ID[buyer]    `json:"items"`
	}
	publicDocument struct {
		ID    publicid.ID[buyer]   `json:"id"`
		Items []publicid.ID[buyer] `json:"items"`
	}
)

// stringSchema is for openapi3gen.SchemaCustomizer.
func stringSchema(_ string, typ reflect.Type, _ reflect.StructTag, schema *openapi3.Schema) error {
	if typ.Implements(reflect.TypeFor[interface{ JSONSchemaAlias() any }]()) {
		*schema = *openapi3.NewStringSchema()
		schema.Nullable = typ.Kind() == reflect.Struct // a NullSnowflake or a NullID
	}
	return nil
}

func TestSchemaOfAKeyIsAString(t *testing.T) {
	const key = `{"type":"string"}`
	for _, c := range []struct {
		name, parent string
		describe     func(document any) (any, error)
	}{
		{"jsonschema", `{"oneOf":[{"type":"string"},{"type":"null"}]}`, func(document any) (any, error) {
			return (&jsonschema.Reflector{ExpandedStruct: true}).Reflect(document), nil
		}},
		{"huma", key, func(document any) (any, error) {
			return huma.SchemaFromType(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer), reflect.TypeOf(document)), nil
		}},
		{"kin-openapi", `{"nullable":true,"type":"string"}`, func(document any) (any, error) {
			return openapi3gen.NewSchemaRefForValue(document, nil, openapi3gen.SchemaCustomizer(stringSchema))
		}},
	} {
		for _, document := range []any{untypedDocument{}, typedDocument{}, publicDocument{}} {
			_, isPublic := document.(publicDocument)
			if isPublic && c.name == "kin-openapi" {
				continue // its customizer is the caller's, of docs/types.md
			}
			schema, err := c.describe(document)
			must(t, err)
			text, err := json.Marshal(schema)
			must(t, err)
			var got struct {
				Properties struct {
					ID, Parent json.RawMessage
					Items      struct{ Items json.RawMessage }
				}
			}
			must(t, json.Unmarshal(text, &got))
			p := got.Properties
			if string(p.ID) != key || string(p.Parent) != c.parent && !isPublic || string(p.Items.Items) != key {
				t.Errorf("%s: id %s, parent %s, an item %s; want strings, the parent as %s\n%s", c.name, p.ID, p.Parent, p.Items.Items, c.parent, text)
			}
		}
	}
}
