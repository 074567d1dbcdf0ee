package gormcases

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var errRollback = errors.New("rolled back on purpose")

// random runs one operation. It returns what is wrong, not what the operation
// returned.
func (w *world) random() error {
	operations := []func() error{
		w.create, w.create, w.upsert, w.upsert, w.upsert, w.upsert, w.save,
		w.update, w.update, w.associate, w.associate, w.narrowed, w.deleteDoc, w.transaction, w.transaction,
	}
	w.shared = nil
	return operations[w.chance.IntN(len(operations))]()
}

// do runs operation with the nodes of g. It compares what that returns, memory and
// the database. A statement asks the source at most once.
func (w *world) do(name string, g *graph, operation func(db *gorm.DB) error) error {
	before, err := w.snapshot()
	if err != nil {
		return err
	}
	db, partial := w.session(&name)
	w.doing = name
	w.log.reset()
	fills := w.src.fills
	if w.inside > 0 { // an error of the statement alone would end the transaction, on PostgreSQL
		err = db.Transaction(operation)
	} else {
		err = operation(db)
	}
	if calls, inserts := w.src.fills-fills, w.log.statements("INSERT"); err == nil && calls > len(inserts) {
		return fmt.Errorf("%d calls of Fill; want at most one for each of %q", calls, inserts)
	}
	after, snapErr := w.snapshot()
	if snapErr != nil {
		return errors.Join(err, snapErr)
	}
	switch {
	case err == nil:
		w.accepted++
		return w.accept(g, before, after)
	case partial: // without a transaction, an error leaves what was done before it
		w.rejected++
		return w.reject(g, err, before, before)
	default:
		w.rejected++
		return w.reject(g, err, before, after)
	}
}

// session draws settings that must change nothing. It says whether they take the
// transaction away.
func (w *world) session(name *string) (db *gorm.DB, partial bool) {
	config := &gorm.Session{}
	switch w.chance.IntN(10) {
	case 0:
		config.PrepareStmt = true
		*name += " prepared"
	case 1:
		config.SkipHooks = true
		*name += " without hooks"
	case 2:
		config.CreateBatchSize = 2
		*name += " in batches of 2"
	case 3:
		if w.inside == 0 {
			config.SkipDefaultTransaction, partial = true, true
			*name += " without transaction"
		}
	}
	return w.db.Session(config), partial
}

// create creates rows of any root, some of them after Assign.
func (w *world) create() error {
	dest := w.form(w.some(w.root(), 2))
	name := fmt.Sprintf("Create of %T", dest)
	if w.often(3) {
		w.assign(dest)
		name += " after Assign"
	}
	return w.do(name, w.graph(everywhere, dest), func(db *gorm.DB) error { return db.Create(dest).Error })
}

func (w *world) root() root { return roots[w.chance.IntN(len(roots))] }

// An upsertKind is a clause with a name.
type upsertKind struct {
	name   string
	clause clause.Expression
}

// upserts returns clauses of every kind. update is the column to update, unique the
// unique one, and filter the condition of an update that has one.
func (e *env) upserts(update, unique string, filter clause.Expression) []upsertKind {
	filtered := doUpdate(update, unique)
	filtered.Where = clause.Where{Exprs: []clause.Expression{filter}}
	kinds := []upsertKind{
		{"DO NOTHING", doNothing()},
		{"DO NOTHING on " + unique, doNothing(unique)},
		{"DO UPDATE", doUpdate(update, unique)},
		{"DO UPDATE WHERE", filtered},
		{"UpdateAll on " + unique, upsertAll(unique)},
		{"UpdateAll", upsertAll()},
	}
	if modifier := map[string]string{"sqlite": "OR IGNORE", "mysql": "IGNORE"}[e.db.Name()]; modifier != "" {
		kinds = append(kinds, upsertKind{modifier, clause.Insert{Modifier: modifier}})
	}
	return kinds
}

// kind draws one of these for a root.
func (w *world) kind(of root) upsertKind {
	table := w.schemaOf(of.model).Table
	var filter clause.Expression = clause.Neq{Column: clause.Column{Table: table, Name: of.unique}, Value: of.unique + "1"}
	if w.often(5) {
		filter = clause.Expr{SQL: "1 = 0"}
	}
	kinds := w.upserts(of.update, of.unique, filter)
	kinds = append(kinds[:1:1], kinds...) // what GORM does most, twice
	return kinds[w.chance.IntN(len(kinds))]
}

func (w *world) upsert() error {
	of := w.root()
	list, kind := w.some(of, 2), w.kind(of)
	if of == docRoot && w.often(1) { // a key of the caller, from the source, so that none is met again by accident
		id, _ := w.src.Next(w.Context())
		list.Index(0).FieldByName("ID").SetInt(id.Int64())
	}
	dest := w.form(list)
	return w.do(fmt.Sprintf("%s of %T", kind.name, dest), w.graph(everywhere, dest), func(db *gorm.DB) error { return db.Clauses(kind.clause).Create(dest).Error })
}

// stored loads a doc that is not deleted, if there is one.
func (w *world) stored() (d *Doc, ok bool) {
	var all []Doc
	w.must(w.db.Order("number").Find(&all))
	if len(all) == 0 {
		return nil, false
	}
	return &all[w.chance.IntN(len(all))], true
}

func (w *world) save() error {
	list := w.some(w.root(), 2)
	if docs, of := reflect.TypeAssert[*[]Doc](list.Addr()); of && w.often(5) {
		if d, ok := w.stored(); ok {
			w.relate(reflect.ValueOf(d).Elem(), 2)
			*docs = append(*docs, *d)
		}
	}
	dest := list.Addr().Interface()
	if list.Len() == 1 {
		dest = list.Index(0).Addr().Interface()
	}
	return w.do(fmt.Sprintf("Save of %T", dest), w.graph(everywhere, dest), func(db *gorm.DB) error { return db.Save(dest).Error })
}

func (w *world) update() error {
	d, ok := w.stored()
	if !ok {
		return w.create()
	}
	w.relate(reflect.ValueOf(d).Elem(), 2)
	if w.chance.IntN(30) > 0 {
		d.Note = w.new()
	}
	return w.do("Updates", w.graph(everywhere, d), func(db *gorm.DB) error {
		return db.Session(&gorm.Session{FullSaveAssociations: w.often(3)}).Updates(d).Error
	})
}

// associate appends rows to an association of a stored doc, or replaces its rows. They are
// collected below another doc, because GORM makes the slices of the stored one anew.
func (w *world) associate() error {
	d, ok := w.stored()
	if !ok {
		return w.create()
	}
	given := Doc{Model: d.Model, Number: d.Number, Public: d.Public}
	w.relate(reflect.ValueOf(&given).Elem(), 1) // one level below, as GORM saves it here
	name := []string{"Lines", "Marks", "Teams", "Party"}[w.chance.IntN(4)]
	field := reflect.ValueOf(&given).Elem().FieldByName(name)
	values := field.Addr().Interface()
	if field.Kind() == reflect.Pointer {
		values = field.Interface()
	}
	if field.IsZero() {
		return nil
	}
	verb := []string{"Append", "Replace"}[w.chance.IntN(2)]
	return w.do(verb+" to "+name, w.graph(only(name), &given), func(db *gorm.DB) (err error) {
		if a := db.Model(d).Association(name); verb == "Append" {
			err = a.Append(values)
		} else {
			err = a.Replace(values)
		}
		given.PartyID = d.PartyID
		return err
	})
}

// narrowed creates with Select and Omit. GORM saves one level below what is selected.
func (w *world) narrowed() error {
	dest := w.form(w.some(docRoot, 1))
	choices := []struct {
		name   string
		follow func(string) bool
		narrow func(*gorm.DB) *gorm.DB
	}{
		{"Select(Number)", only(), func(db *gorm.DB) *gorm.DB { return db.Select("Number") }},
		{"Select(number, Lines)", only("Lines"), func(db *gorm.DB) *gorm.DB { return db.Select("number", "Lines") }},
		{"Omit(Note)", everywhere, func(db *gorm.DB) *gorm.DB { return db.Omit("Note") }},
		{"Omit(Public, Lines)", func(name string) bool { return name != "Lines" }, func(db *gorm.DB) *gorm.DB { return db.Omit("Public", "Lines") }},
		{"Omit(Associations)", only(), func(db *gorm.DB) *gorm.DB { return db.Omit(clause.Associations) }},
	}
	choice := choices[w.chance.IntN(len(choices))]
	g := w.graph(choice.follow, dest)
	for _, n := range g.nodes {
		n.partial = true
	}
	name, with := choice.name, clause.Expression(clause.Insert{})
	if w.often(5) {
		name, with = name+" DO NOTHING", doNothing()
	}
	return w.do(name, g, func(db *gorm.DB) error { return choice.narrow(db).Clauses(with).Create(dest).Error })
}

func (w *world) deleteDoc() error {
	w.doing = "Delete"
	if d, ok := w.stored(); ok {
		w.must(w.db.Delete(d))
	}
	return nil
}

// transaction runs operations in a transaction, or in a savepoint of the open one.
// It rolls some of them back.
func (w *world) transaction() error {
	w.doing = "a transaction"
	if w.inside == 3 {
		return nil
	}
	outside := w.db
	work := func(tx *gorm.DB) error {
		w.db, w.inside = tx, w.inside+1
		defer func() { w.db, w.inside = outside, w.inside-1 }()
		for range 1 + w.chance.IntN(4) {
			if err := w.random(); err != nil {
				return err
			}
		}
		return nil
	}
	if w.often(6) {
		return outside.Transaction(work)
	}
	before, err := w.snapshot()
	if err == nil {
		err = undone(outside, work)
	}
	if err != nil {
		return err
	}
	after, err := w.snapshot()
	if err == nil && !reflect.DeepEqual(before, after) {
		err = errors.New("the database has changed by a transaction that was rolled back")
	}
	return err
}
