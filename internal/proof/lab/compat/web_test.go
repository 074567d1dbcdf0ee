package compat

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"
	"github.com/oapi-codegen/runtime"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

var (
	_ binding.BindUnmarshaler = (*types.Snowflake)(nil)
	_ binding.BindUnmarshaler = (*types.NullSnowflake)(nil)
	_ binding.BindUnmarshaler = (*publicid.ID[buyer])(nil)
	_ echo.BindUnmarshaler    = (*types.Snowflake)(nil)
	_ echo.BindUnmarshaler    = (*types.NullSnowflake)(nil)
	_ echo.BindUnmarshaler    = (*publicid.ID[buyer])(nil)
)

// A bound is what frameworks read of the path /orders/:id and of the query of one request.
type bound[K, N comparable] struct {
	ID     K   `uri:"id" param:"id" json:"-"`
	After  K   `form:"after" query:"after" json:"-"`
	Parent N   `form:"parent" query:"parent" json:"-"`
	IDs    []K `form:"ids" query:"ids" json:"-"`
}

// frameworks bind the request of an URL.
func frameworks[K, N comparable]() map[string]func(target string) (bound[K, N], error) {
	gin.SetMode(gin.TestMode)
	return map[string]func(string) (bound[K, N], error){
		"gin": func(target string) (to bound[K, N], err error) {
			router := gin.New()
			router.GET("/orders/:id", func(c *gin.Context) { err = errors.Join(c.ShouldBindUri(&to), c.ShouldBindQuery(&to)) })
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
			return to, err
		},
		"echo": func(target string) (to bound[K, N], err error) {
			router := echo.New()
			router.GET("/orders/:id", func(c echo.Context) error {
				err = c.Bind(&to)
				return nil
			})
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
			return to, err
		},
	}
}

func TestPathAndQueryAreBoundAsParseReads(t *testing.T) {
	notParsed := []string{"-1", "007", "%2B5", "1e3", "0x10", "1_000", "5%20", "9223372036854775808", "abc"}
	each(t, func(t *testing.T) { untyped.binds(t, notParsed) }, func(t *testing.T) { typed.binds(t, notParsed) })
	text := public.text(largest)
	t.Run("public ID", func(t *testing.T) {
		public.binds(t, []string{"5", "abc", "%20" + text, text[1:], text + "0", public.text(-5), "buyer_", "9223372036854775807"})
	})
}

func (k kind[K, N]) binds(t *testing.T, refused []string) {
	last, other := k.text(largest), k.text(9007199254740993)
	for name, bind := range frameworks[K, N]() {
		want := bound[K, N]{ID: k.key(largest), After: k.key(9007199254740993), Parent: k.null(0), IDs: []K{k.key(9007199254740993), k.key(largest)}}
		target := "/orders/" + last + "?after=" + other + "&parent=" + k.text(0) + "&ids=" + other + "&ids=" + last
		if got, err := bind(target); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s bound %s to %+v, %v; want %+v, nil", name, target, got, err, want)
		}
		for _, text := range refused {
			for _, target := range []string{
				"/orders/" + text, "/orders/" + last + "?after=" + text, "/orders/" + last + "?parent=" + text, "/orders/" + last + "?ids=" + last + "&ids=" + text,
			} {
				if got, err := bind(target); err == nil {
					t.Errorf("%s bound %s to %+v; want an error", name, target, got)
				}
			}
		}
	}
}

func TestEmptyParameterIsAbsentForANullKeyAlone(t *testing.T) {
	each(t, untyped.bindsEmpty, typed.bindsEmpty)
}

func (k kind[K, N]) bindsEmpty(t *testing.T) {
	for name, bind := range frameworks[K, N]() {
		for _, target := range []string{"/orders/1", "/orders/1?parent="} {
			if got, err := bind(target); err != nil || !reflect.DeepEqual(got, bound[K, N]{ID: k.key(1)}) {
				t.Errorf("%s bound %s to %+v, %v; want an absent parent, nil", name, target, got, err)
			}
		}
		if got, err := bind("/orders/1?after="); err == nil {
			t.Errorf("%s bound after= to %+v; want an error", name, got)
		}
	}
}

// Without Bind, oapi-codegen takes the struct for an object, and does not find the parameter.
func TestOapiCodegenBindsAPublicID(t *testing.T) {
	bind := func(text string) (id publicid.ID[buyer], err error) {
		err = runtime.BindQueryParameterWithOptions("form", true, true, "after", url.Values{"after": {text}}, &id, runtime.BindQueryParameterOptions{})
		return id, err
	}
	want, text := public.key(9007199254740993), public.text(9007199254740993)
	if got, err := bind(text); got != want || err != nil {
		t.Errorf("BindQueryParameter(%s) = %d, %v; want %d, nil", text, got.Key(), err, want.Key())
	}
	for _, text := range []string{"", "5", text + "0", public.text(-5)} {
		if got, err := bind(text); err == nil {
			t.Errorf("BindQueryParameter(%q) = %d, nil; want an error", text, got.Key())
		}
	}
	var got publicid.ID[buyer]
	options := runtime.BindStyledParameterOptions{ParamLocation: runtime.ParamLocationPath, Required: true}
	if err := runtime.BindStyledParameterWithOptions("simple", "id", text, &got, options); got != want || err != nil {
		t.Errorf("BindStyledParameter(%s) = %d, %v; want %d, nil", text, got.Key(), err, want.Key())
	}
}

func TestValidatorTakesAnUnassignedKeyForMissing(t *testing.T) {
	each(t, untyped.validates, typed.validates)
}

func (k kind[K, N]) validates(t *testing.T) {
	type request struct {
		ID     K `validate:"required,gt=0"`
		Parent N `validate:"required"`
	}
	// Without the option, validator looks at no struct that is required.
	plain, strict := validator.New(), validator.New(validator.WithRequiredStructEnabled())
	present := k.null(0)
	for _, c := range []struct {
		request       request
		plain, strict int // errors
	}{
		{request{ID: k.key(5), Parent: present}, 0, 0},
		{request{Parent: present}, 1, 1},
		{request{ID: k.key(-5), Parent: present}, 1, 1},
		{request{ID: k.key(5)}, 0, 1},
	} {
		for v, want := range map[*validator.Validate]int{plain: c.plain, strict: c.strict} {
			var invalid validator.ValidationErrors
			if err := v.Struct(c.request); err != nil && !errors.As(err, &invalid) || len(invalid) != want {
				t.Errorf("Struct(%+v) = %v; want %d validation errors, strict: %v", c.request, err, want, v == strict)
			}
		}
	}
}
