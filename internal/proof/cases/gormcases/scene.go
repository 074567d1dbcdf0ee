package gormcases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A row is one of [oracleRow], by the names of its columns. With "id" it has a key of the caller.
type row = map[string]any

const (
	// why in a row says that it gets no key, for a reason of gormplugin or for anyReason.
	why = "why"

	anyReason gormplugin.Reason = 0
)

// A scene is a table, stored rows, and statements, all written by hand. The oracle says what each
// statement does, so a scene says only which rows get no key.
type scene struct {
	*oracle
	// many returns row n of those that are stored, and are sent again after the others, because the
	// plugin looks many up in another way. They equal no other row. nil: only few are sent.
	many     func(n int) row
	unlisted bool // that way is not for this table
	maps     bool // only maps are sent
	structs  bool // only structs are
	models   []oracleModel
	stored   int
}

// scene makes the table, with columns of other types than usual and with unique indexes.
func (e *env) scene(columns string, unique ...string) *scene {
	e.Helper()
	return e.sceneOf("bigint NOT NULL PRIMARY KEY", columns, "", unique...)
}

func (e *env) sceneOf(key, columns, options string, unique ...string) *scene {
	e.Helper()
	s := &scene{oracle: &oracle{env: e}, models: oracleModels[:1]}
	s.begin()
	var given []string
	if columns != "" {
		given = strings.Split(columns, ", ")
	}
	for _, table := range []string{"rows", "kids"} {
		e.ddl("DROP TABLE IF EXISTS PRE_oracle_" + table)
	}
	e.ddl(tableText(key, given) + options)
	e.ddl(kidsText)
	for n, index := range unique {
		e.ddl(fmt.Sprintf("CREATE UNIQUE INDEX PRE_oracle_%d ON PRE_oracle_rows %s", n, index))
	}
	return s
}

// numbered returns rows that have a value of their own in each of columns.
func numbered(columns ...string) func(n int) row {
	return func(n int) row {
		r := row{}
		for _, column := range columns {
			if r[column] = any(fmt.Sprint("many ", n)); column[0] == 'n' {
				r[column] = int64(1000 + n)
			}
		}
		return r
	}
}

// store stores rows without the plugin, under the keys 1, 2, 3 and so on if they have none.
func (s *scene) store(rows ...row) {
	s.Helper()
	for _, r := range rows {
		s.stored++
		r = maps.Clone(r)
		if r["id"] == nil {
			r["id"] = s.stored
		}
		r["note"] = fmt.Sprint("stored ", r["id"])
		s.must(s.plain.Table(s.name).Create(r))
	}
}

// upsert sends rows as structs and as maps, with children, as parents, and with many others, and
// undoes each. The plugin has to leave the keys that the oracle says in memory, and in the children.
func (s *scene) upsert(conflict clause.Expression, rows ...row) {
	s.Helper()
	on, isConflict := conflict.(clause.OnConflict)
	nested := isConflict && on.DoNothing && len(on.Columns) == 0 && on.OnConstraint == "" // as GORM saves associations
	lone := !slices.ContainsFunc(rows, func(r row) bool { _, keyless := r[why]; return keyless })
	for _, model := range s.models {
		for _, form := range []struct {
			name       string
			kids, many bool
			sent       bool
		}{
			{"slice", false, false, !s.maps && !lone},
			{"slice", true, false, !s.maps},
			{"slice", false, true, !s.maps && s.many != nil},
			{"maps", false, false, !s.structs},
			{"maps", false, true, !s.structs && s.many != nil},
			{"parents", false, false, !s.maps && nested},
		} {
			b := &batch{form: form.name, model: model, clause: conflict, why: map[int]gormplugin.Reason{}}
			if !form.sent || !s.add(b, rows, form.kids) && form.name == "parents" {
				continue
			}
			if form.many {
				b.many = manyRows
				s.addMany(b)
			} else if len(rows) == 1 && form.name == "slice" {
				b.form = "struct"
			}
			s.log.reset()
			if err := s.play(b); err != nil {
				s.Errorf("%v with the reasons %v: %v", b, b.why, err)
			}
			if form.many {
				if !s.unlisted && nested && !slices.ContainsFunc(s.log.statements("SELECT"), func(text string) bool { return lists(text) > 0 }) {
					s.Errorf("%v: looks %q; want a list of values", b, s.log.statements("SELECT"))
				}
				s.must(s.plain.Exec("DELETE FROM "+s.name+" WHERE id BETWEEN ? AND ?", firstMany, firstMany+manyRows-1))
			}
		}
	}
}

// manyRows is enough for the plugin.
const manyRows = 25

// add adds rows to b, and reports whether their keys differ.
func (s *scene) add(b *batch, rows []row, kids bool) (differ bool) {
	differ = true
	for _, r := range rows {
		i := len(b.rows)
		sent := row{"note": fmt.Sprint("sent ", i)}
		id, _ := r["id"].(int)
		if reason, keyless := r[why].(gormplugin.Reason); keyless {
			b.why[i] = reason
		}
		for name, value := range r {
			if n, number := value.(int); number {
				value = int64(n)
			}
			if name != "id" && name != why {
				sent[name] = value
			}
		}
		differ = differ && (id == 0 || !slices.Contains(b.keys, types.Snowflake(id)))
		b.rows, b.keys = append(b.rows, sent), append(b.keys, types.Snowflake(id))
		b.kids = append(b.kids, map[bool]int{true: 1}[kids])
	}
	return differ
}

// addMany stores many rows and adds them to b.
func (s *scene) addMany(b *batch) {
	s.Helper()
	for n := range b.many {
		r := s.many(n)
		s.add(b, []row{r}, false)
		r = maps.Clone(r)
		r["id"] = firstMany + n
		s.store(r)
		s.stored--
	}
}

// play compares b with what the plain database does, and undoes it. If b must fail, the plugin
// does.
func (s *scene) play(b *batch) error {
	s.Helper()
	before, err := s.rowsOf(s.plain)
	if err != nil {
		return err
	}
	want, err := s.without(b, before)
	if err != nil {
		return err
	}
	if want.refused != nil {
		return fmt.Errorf("without the plugin: %w", want.refused)
	}
	if len(b.why) > 0 && (b.kids[0] > 0 || b.form == "parents" && !s.tellsMet()) {
		return s.with(b, want, s.db, s.plain)
	}
	return undone(s.db, func(tx *gorm.DB) error { return s.with(b, want, tx, tx) })
}
