package gormplugin_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

func TestFilledReturnsTheFieldsThatGetKeysTheKeyFirst(t *testing.T) {
	type Wrong struct {
		ID types.Snowflake `gorm:"snowflake:sometimes"`
	}
	type Parent struct{ ID types.Snowflake }
	type Child struct {
		Public   string `gorm:"snowflake"`
		ID       types.Snowflake
		ParentID types.Snowflake
		Parent   *Parent
		Other    types.Snowflake
	}
	for _, test := range []struct {
		model any
		want  []string
		fails bool
	}{
		{&Child{}, []string{"ID", "Public"}, false},
		{&struct{ ID uint }{}, nil, false},
		{&Wrong{}, nil, true},
	} {
		s, err := schema.Parse(test.model, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatalf("Parse(%T) = %v; want no error", test.model, err)
		}
		fields, err := gormplugin.Filled(s)
		var names []string
		for _, f := range fields {
			names = append(names, f.Name)
		}
		if e := (*gormplugin.ModelError)(nil); !slices.Equal(names, test.want) || errors.As(err, &e) != test.fails {
			t.Errorf("Filled(%T) = %q, %v; want %q, and a ModelError to be %v", test.model, names, err, test.want, test.fails)
		}
	}
}
