package sqlxhelper

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// tagKey is the key of this package in a struct tag.
const tagKey = "snowkey"

const wantTag = `want "pk", "-", "table,fk=column" or "table,belongs_to=column"`

// A tag is the parsed value of a snowkey tag. At most one of its parts is set.
type tag struct {
	present bool   // there is a tag
	skip    bool   // "-"
	key     bool   // "pk"
	table   string // "table,fk=column" or "table,belongs_to=column"
	foreign string // the column
	belongs bool   // it is that of the struct with the tag, not of the children
}

// parseTag reads the snowkey part of a struct tag. The form of the whole tag is
// checked too. Where it is broken, reflect and sqlx stop reading, and the field
// silently changes its name or is lost.
func parseTag(t reflect.StructTag) (parsed tag, problem string) {
	if !wellFormed(string(t)) {
		return tag{}, fmt.Sprintf("malformed struct tag `%s`: want key:\"value\" pairs with a space between them", t)
	}
	text, ok := t.Lookup(tagKey)
	switch {
	case !ok:
		return tag{}, ""
	case text == "-":
		return tag{present: true, skip: true}, ""
	case text == "pk":
		return tag{present: true, key: true}, ""
	}
	table, option, _ := strings.Cut(text, ",")
	kind, foreign, _ := strings.Cut(option, "=")
	if kind != "fk" && kind != "belongs_to" || strings.Contains(foreign, ",") {
		return tag{}, fmt.Sprintf("snowkey tag %q: %s", text, wantTag)
	}
	for _, problem := range []string{tableProblem(table), nameProblem(foreign)} {
		if problem != "" {
			return tag{}, fmt.Sprintf("snowkey tag %q: %s", text, problem)
		}
	}
	return tag{present: true, table: table, foreign: foreign, belongs: kind == "belongs_to"}, ""
}

// wellFormed reports whether the whole of a tag is key:"value" pairs, as
// reflect.StructTag describes them.
func wellFormed(tag string) bool {
	for {
		tag = strings.TrimLeft(tag, " ")
		if tag == "" {
			return true
		}
		colon := strings.IndexByte(tag, ':')
		if colon < 1 || strings.ContainsFunc(tag[:colon], func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
			return false
		}
		tag = tag[colon+1:]
		value, err := strconv.QuotedPrefix(tag)
		if err != nil || value[0] != '"' {
			return false
		}
		tag = tag[len(value):]
	}
}
