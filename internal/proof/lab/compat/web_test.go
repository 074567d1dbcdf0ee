package compat

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/labstack/echo/v4"

	"github.com/snowkey/snowkey/types"
)

var (
	_ binding.BindUnmarshaler = (*types.Snowflake)(nil)
	_ binding.BindUnmarshaler = (*types.NullSnowflake)(nil)
	_ echo.BindUnmarshaler    = (*types.Snowflake)(nil)
	_ echo.BindUnmarshaler    = (*types.NullSnowflake)(nil)
)

type (
	path struct {
		ID types.Snowflake `uri:"id" param:"id"`
	}
	query struct {
		After  types.Snowflake     `form:"after" query:"after"`
		Parent types.NullSnowflake `form:"parent" query:"parent"`
		IDs    []types.Snowflake   `form:"ids" query:"ids"`
	}
)

// A binder reads the path /orders/:id and the query of one request.
type binder struct {
	name string
	bind func(target string) (path, query, error)
}

func binders() []binder {
	return []binder{
		{"gin", func(target string) (p path, q query, err error) {
			gin.SetMode(gin.TestMode)
			router := gin.New()
			router.GET("/orders/:id", func(c *gin.Context) {
				err = errors.Join(c.ShouldBindUri(&p), c.ShouldBindQuery(&q))
			})
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
			return p, q, err
		}},
		{"echo", func(target string) (p path, q query, err error) {
			router := echo.New()
			router.GET("/orders/:id", func(c echo.Context) error {
				var b echo.DefaultBinder
				err = errors.Join(b.BindPathParams(c, &p), b.BindQueryParams(c, &q))
				return nil
			})
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
			return p, q, err
		}},
	}
}

func TestPathAndQueryAreBoundAsParseReads(t *testing.T) {
	const largest = types.Snowflake(1<<63 - 1)
	for _, b := range binders() {
		p, q, err := b.bind("/orders/9223372036854775807?after=9007199254740993&parent=0&ids=1&ids=9223372036854775807")
		if err != nil || p.ID != largest || q.After != 9007199254740993 ||
			q.Parent != (types.NullSnowflake{Valid: true}) || len(q.IDs) != 2 || q.IDs[0] != 1 || q.IDs[1] != largest {
			t.Errorf("%s bound %+v, %+v, %v; want the numbers of the request, nil", b.name, p, q, err)
		}
	}
}

func TestWhatParseRefusesIsNotBound(t *testing.T) {
	for _, b := range binders() {
		for _, text := range []string{"-1", "007", "%2B5", "1e3", "0x10", "1_000", "5%20", "9223372036854775808", "abc"} {
			for _, target := range []string{
				"/orders/" + text, "/orders/1?after=" + text, "/orders/1?parent=" + text, "/orders/1?ids=1&ids=" + text,
			} {
				p, q, err := b.bind(target)
				if err == nil {
					t.Errorf("%s bound %s to %+v, %+v; want an error", b.name, target, p, q)
				}
			}
		}
	}
}

func TestEmptyParameterIsAbsentForANullSnowflakeAlone(t *testing.T) {
	for _, b := range binders() {
		for _, target := range []string{"/orders/1", "/orders/1?parent="} {
			if _, q, err := b.bind(target); err != nil || q.Parent.Valid || q.After != 0 {
				t.Errorf("%s bound %s to %+v, %v; want an absent parent, nil", b.name, target, q, err)
			}
		}
		if _, q, err := b.bind("/orders/1?after="); err == nil {
			t.Errorf("%s bound after= to %+v; want an error", b.name, q)
		}
	}
}
