package sqltype

import "testing"

func TestPartsAreReadAsCatalogsWriteThem(t *testing.T) {
	for typ, want := range map[string]struct {
		base             string
		precision, scale int
	}{
		"bigint":            {"bigint", 0, 0},
		"varchar(40)":       {"varchar", 40, 0},
		"numeric(20,0)":     {"numeric", 20, 0},
		"decimal(10,2)":     {"decimal", 10, 2},
		"enum('a','b')":     {"enum", 0, 0},
		"int(10) unsigned":  {"int", 10, 0},
		"timestamp without": {"timestamp without", 0, 0},
	} {
		base, precision, scale := Parts(typ)
		if base != want.base || precision != want.precision || scale != want.scale {
			t.Errorf("Parts(%q) = %q, %d, %d; want %q, %d, %d", typ, base, precision, scale, want.base, want.precision, want.scale)
		}
	}
}
