package compat

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/invopop/jsonschema"
	"github.com/labstack/echo/v4"
	"github.com/oapi-codegen/runtime"
	yaml "go.yaml.in/yaml/v3"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

var (
	_ binding.BindUnmarshaler = (*publicid.ID[shownOrder])(nil)
	_ echo.BindUnmarshaler    = (*publicid.ID[shownOrder])(nil)
)

type shownOrder struct{}

var shownOrders, _ = publicid.New(publicid.Config{Prefix: "order", Keys: [][]byte{[]byte("a test's 16 byte")}})

func (shownOrder) PublicIDs() *publicid.Codec { return shownOrders }

func shown(id int64) publicid.ID[shownOrder] { return publicid.Of(types.ID[shownOrder](id)) }

func TestPublicIDsAreBoundFromPathQueryAndBody(t *testing.T) {
	type target struct {
		ID    publicid.ID[shownOrder]   `uri:"id" param:"id" json:"-"`
		After publicid.ID[shownOrder]   `form:"after" query:"after" json:"-"`
		IDs   []publicid.ID[shownOrder] `form:"ids" query:"ids" json:"-"`
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
		a, b := shown(1<<63-1), shown(9007199254740993)
		want := target{ID: a, After: b, IDs: []publicid.ID[shownOrder]{b, a}}
		if got, err := bind("/orders/" + a.String() + "?after=" + b.String() + "&ids=" + b.String() + "&ids=" + a.String()); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s bound %+v, %v; want %+v, nil", name, got, err, want)
		}
		for _, text := range []string{"5", "abc", "%20" + a.String(), a.String()[1:], a.String() + "0", shown(-5).String(), "order_", "9223372036854775807"} {
			for _, url := range []string{"/orders/" + text, "/orders/" + a.String() + "?after=" + text, "/orders/" + a.String() + "?ids=" + text} {
				if got, err := bind(url); err == nil {
					t.Errorf("%s bound %s to %+v; want an error", name, url, got)
				}
			}
		}
	}
}

// Without Bind, oapi-codegen takes the struct for an object, and does not find the parameter.
func TestOapiCodegenBindsAPublicID(t *testing.T) {
	bind := func(text string) (id publicid.ID[shownOrder], err error) {
		err = runtime.BindQueryParameterWithOptions("form", true, true, "after", url.Values{"after": {text}}, &id, runtime.BindQueryParameterOptions{})
		return id, err
	}
	want := shown(9007199254740993)
	id, err := bind(want.String())
	if id != want || err != nil {
		t.Errorf("BindQueryParameter(%s) = %d, %v; want %d, nil", want, id.Key(), err, want.Key())
	}
	for _, text := range []string{"", "5", want.String() + "0", shown(-5).String()} {
		if got, err := bind(text); err == nil {
			t.Errorf("BindQueryParameter(%q) = %d, nil; want an error", text, got.Key())
		}
	}
	id = shown(0)
	if err := runtime.BindStyledParameterWithOptions("simple", "id", want.String(), &id, runtime.BindStyledParameterOptions{ParamLocation: runtime.ParamLocationPath, Required: true}); id != want || err != nil {
		t.Errorf("BindStyledParameter(%s) = %d, %v; want %d, nil", want, id.Key(), err, want.Key())
	}
}

func TestAPublicIDIsAStringInYAMLAndInSchemas(t *testing.T) {
	type document struct {
		ID publicid.ID[shownOrder] `json:"id" yaml:"id"`
	}
	text, err := yaml.Marshal(document{shown(5)})
	if want := "id: " + shown(5).String() + "\n"; string(text) != want || err != nil {
		t.Errorf("yaml.Marshal = %q, %v; want %q, nil", text, err, want)
	}
	var got document
	if err := yaml.Unmarshal(text, &got); err != nil || got.ID != shown(5) {
		t.Errorf("yaml.Unmarshal(%q) = %v, %v; want 5, nil", text, got.ID.Key(), err)
	}
	for name, schema := range map[string]any{
		"jsonschema": (&jsonschema.Reflector{ExpandedStruct: true}).Reflect(document{}),
		"huma":       huma.SchemaFromType(huma.NewMapRegistry("#/", huma.DefaultSchemaNamer), reflect.TypeFor[document]()),
	} {
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Properties struct{ ID json.RawMessage } }
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Properties.ID) != `{"type":"string"}` {
			t.Errorf("%s: the schema of an ID = %s; want a string", name, got.Properties.ID)
		}
	}
}
