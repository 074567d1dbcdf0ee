package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// ErrUnfilled means that the plugin fills no key of a model, and that the model does not say
// that this is intended. The error is a [*ModelError].
var ErrUnfilled = errors.New("gormplugin: key that the plugin does not fill")

// Verify returns everything that keeps p from filling the keys of models on db, in one error,
// or nil. It runs no query. Call it when the program starts, with all models:
//
//	plugin := gormplugin.New(gen)
//	err := errors.Join(db.Use(plugin), plugin.Verify(db, &Order{}, &Item{}))
//
// The error joins these, as errors.Join does, one a line:
//
//   - [ErrNotInstalled], if p is not the plugin on db, or if another plugin has removed or
//     replaced its callbacks, or runs them in another order; [ErrNoAnchor].
//   - A [ModelError] for all that makes creates of a model fail, see [Filled]: a foreign key
//     that is too narrow, autoIncrement beside a key of the plugin, an unknown tag.
//   - A ModelError that matches [ErrUnfilled] for a key that the database or the program
//     fills instead, and says which of them, such as that of gorm.Model without
//     [WithIntegerKeys]. A model says that this is intended by the tag snowflake:-,
//     autoIncrement or default:, with WithIntegerKeys also by autoIncrement:false, by a
//     key that consists of foreign keys, or by an [OwnKey]. A key of several columns without an
//     ID is taken for that of a join table.
//   - GORM's error for a model that it cannot parse.
//   - gorm.ErrInvalidDB.
//
// Verify also makes the relations of all models known before the first row is created, see
// Filled. What is stored it cannot see: package schemacheck says the same, and compares the
// models with the tables. Verify is safe for concurrent use.
func (p *Plugin) Verify(db *gorm.DB, models ...any) error {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return fmt.Errorf("gormplugin: Verify: %w", gorm.ErrInvalidDB)
	}
	schemas, wrong := parse(db, models)
	if err := p.installedOn(db); err != nil {
		wrong = append([]error{err}, wrong...)
	}
	said := map[string]bool{} // a narrow foreign key is an error of both models of its relation
	for _, s := range schemas {
		for _, err := range p.policy(db).verify(s) {
			if !said[err.Error()] {
				said[err.Error()] = true
				wrong = append(wrong, err)
			}
		}
	}
	return errors.Join(wrong...)
}

// parse returns the schemas of models, each once, and the errors of those that GORM cannot
// parse. All are parsed when it returns, so that every has-one and has-many is known.
func parse(db *gorm.DB, models []any) (list []*schema.Schema, wrong []error) {
	for _, m := range models {
		stmt := &gorm.Statement{DB: db}
		err := stmt.Parse(m)
		if err == nil {
			err = awaitParsed(db, stmt.Schema)
		}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("gormplugin: %T: %w", m, err))
		case !slices.Contains(list, stmt.Schema):
			list = append(list, stmt.Schema)
		}
	}
	return list, wrong
}

// verify returns what is wrong with s.
func (k policy) verify(s *schema.Schema) []error {
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	if p := k.plan(s); p.err != nil || len(p.columns) > 0 || k.meant(s) || ownKey(s) != nil {
		return p.wrong
	}
	e := &ModelError{s.String(), "", "no primary key, so the plugin fills none; add one, such as types.Model", ErrUnfilled}
	if f := s.PrioritizedPrimaryField; f != nil {
		by, remedy := "the program has to set", "give it the type types.Snowflake or types.ID, or the tag snowflake"
		if f.HasDefaultValue {
			by = "the database fills"
		}
		if (policy{integers: true}).takes(f) {
			remedy = "pass WithIntegerKeys to New"
		}
		e.Field, e.Reason = f.Name, fmt.Sprintf("the plugin does not fill this %s, which %s; %s, or tag it snowflake:- if that is meant", f.FieldType, by, remedy)
	}
	return []error{e}
}

// meant reports whether s itself says why the plugin fills no key of it.
func (k policy) meant(s *schema.Schema) bool {
	if len(s.PrimaryFields) > 1 && s.PrioritizedPrimaryField == nil {
		return true
	}
	for _, f := range s.PrimaryFields {
		_, said := f.TagSettings["AUTOINCREMENT"]
		if f.Creatable && !leftToOthers(f) && !counted(f) && !(said && k.integers) && !foreign(s, f) {
			return false
		}
	}
	return len(s.PrimaryFields) > 0
}

// OwnKey returns the field of the primary key of s if it holds no number, such as the name of a
// setting or a UUID, and the model does not say who fills it: only the program can. Otherwise it
// returns nil. [Plugin.Verify] accepts such a model, and schemacheck.Check lists it, because a key
// of text that the plugin should fill needs the tag snowflake.
func OwnKey(s *schema.Schema) *schema.Field {
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	if (policy{}).meant(s) {
		return nil
	}
	return ownKey(s)
}

// ownKey is OwnKey for a model that is not meant. It requires that Relationships.Mux of s is held for
// reading.
func ownKey(s *schema.Schema) *schema.Field {
	f := s.PrioritizedPrimaryField
	if f == nil || f.HasDefaultValue || tagged(f) {
		return nil
	}
	switch f.IndirectFieldType.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Struct:
		return f
	default:
		return nil
	}
}

// installedOn returns an error if p does not work on db.
func (p *Plugin) installedOn(db *gorm.DB) error {
	switch on := db.Plugins[pluginName]; {
	case on == nil:
		return ErrNotInstalled
	case on != gorm.Plugin(p):
		return fmt.Errorf("%w: another Plugin is", ErrNotInstalled)
	}
	return inPlace(db)
}

// inPlace returns an error unless the callbacks of the plugin are those on db, and run where
// they should.
func inPlace(db *gorm.DB) error {
	var in *installation
	create, order := db.Callback().Create(), []uintptr(nil)
	// Only the code is compared, because each installation has a func of its own.
	code := func(f func(*gorm.DB)) uintptr { return reflect.ValueOf(f).Pointer() }
	for _, c := range []struct {
		name string
		own  func(*gorm.DB)
	}{{assignName, in.assign}, {anchorBefore, nil}, {ensureName, in.ensure}, {anchorCreate, nil}, {reconcileName, in.reconcile}, {anchorAfter, nil}} {
		switch on := create.Get(c.name); {
		case c.own == nil && on == nil:
			return fmt.Errorf("%w: %s", ErrNoAnchor, c.name)
		case c.own != nil && code(on) != code(c.own):
			return fmt.Errorf("%w any more: the callback %s was removed or replaced", ErrNotInstalled, c.name)
		default:
			order = append(order, code(on))
		}
	}
	if p, _ := db.Plugins[pluginName].(*Plugin); p != nil && p.supply.Sharded() && db.Callback().Update().Get(placeName) == nil {
		return fmt.Errorf("%w any more: the callback %s was removed", ErrNotInstalled, placeName)
	}
	// GORM has no method that tells the order, in which the names of other plugins'
	// callbacks have a say. If it keeps them elsewhere one day, the names have to do.
	run := reflect.ValueOf(create).Elem().FieldByName("fns")
	if run.Kind() != reflect.Slice {
		return nil
	}
	for i := range run.Len() {
		if len(order) > 0 && run.Index(i).Pointer() == order[0] {
			order = order[1:]
		}
	}
	if len(order) > 0 {
		return fmt.Errorf("%w any more: its callbacks run in another order than they were registered in", ErrNotInstalled)
	}
	return nil
}
