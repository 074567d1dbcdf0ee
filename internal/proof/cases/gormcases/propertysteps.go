package gormcases

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

var errRollback = errors.New("rolled back on purpose")

// random runs one operation. It returns what is wrong, not what the operation
// returned.
func (w *world) random() error {
	operations := []func() error{
		w.createDocs, w.upsertDocs, w.upsertDocs, w.upsertParties, w.upsertParties, w.createMaps, w.saveDocs,
		w.firstOrCreate, w.updateDoc, w.updateDoc, w.associate, w.associate, w.others, w.others,
		w.narrowed, w.retried, w.deleteDoc, w.transaction, w.transaction,
	}
	return operations[w.chance.IntN(len(operations))]()
}

// do runs operation with the nodes of g. It compares what that returns, memory and
// the database.
func (w *world) do(name string, g *graph, operation func(db *gorm.DB) error) error {
	before, err := w.snapshot()
	if err != nil {
		return err
	}
	db, partial := w.session(&name)
	w.doing = name
	if w.inside > 0 { // an error of the statement alone would end the transaction, on PostgreSQL
		err = db.Transaction(operation)
	} else {
		err = operation(db)
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
		if err = w.reject(g, err, before, before); err != nil {
			return err
		}
		return w.orphans(after)
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

// rows passes values to create in one of the forms that GORM takes. It returns
// pointers to the structs in it.
func rows[T any](w *world, values []T) (dest any, roots []any) {
	switch pointers := make([]*T, len(values)); {
	case len(values) == 1 && w.often(7):
		dest = &values[0]
	case w.often(3):
		for i := range values {
			pointers[i] = &values[i]
		}
		dest = pointers
	default:
		dest = &values
	}
	return dest, rootsOf(dest)
}

func some[T any](w *world, one func() T) []T {
	values := []T{one()}
	for w.often(4) && len(values) < 5 {
		values = append(values, one())
	}
	return values
}

func (w *world) createDocs() error {
	docs := some(w, w.doc)
	if p := docs[0].Party; p != nil {
		for i := range docs {
			if w.often(5) {
				docs[i].Party = p // one pointer, one row
			}
		}
	}
	dest, roots := rows(w, docs)
	after := w.assigned(dest)
	g := w.graph(everywhere, roots...)
	switch w.chance.IntN(3) {
	case 0:
		return w.do("CreateInBatches"+after, g, func(db *gorm.DB) error { return db.CreateInBatches(dest, 2).Error })
	case 1:
		if d, ok := dest.(*Doc); ok {
			return w.do("generic Create"+after, g, func(db *gorm.DB) error { return gorm.G[Doc](db).Create(context.Background(), d) })
		}
	}
	return w.do(fmt.Sprintf("Create of %T%s", dest, after), g, func(db *gorm.DB) error { return db.Create(dest).Error })
}

// assigned assigns the keys of some graphs before they are created, and says so.
func (w *world) assigned(dest any) string {
	if !w.often(3) {
		return ""
	}
	w.e.assign(dest)
	return " after Assign"
}

// An upsertKind is a clause, and the columns by which it recognizes a row.
type upsertKind struct {
	name   string
	clause clause.Expression
	target []string
}

// upserts returns clauses of every kind. update is the column to update, unique the
// unique one, and filter the condition of an update that has one.
func (e *env) upserts(update, unique string, filter clause.Expression) []upsertKind {
	filtered := doUpdate(update, unique)
	filtered.Where = clause.Where{Exprs: []clause.Expression{filter}}
	kinds := []upsertKind{
		{"DO NOTHING", doNothing(), nil},
		{"DO NOTHING on " + unique, doNothing(unique), []string{unique}},
		{"DO UPDATE", doUpdate(update, unique), []string{unique}},
		{"DO UPDATE WHERE", filtered, []string{unique}},
		{"UpdateAll on " + unique, clause.OnConflict{Columns: columns([]string{unique}), UpdateAll: true}, []string{unique}},
		{"UpdateAll", upsertAll(), nil},
	}
	if modifier := map[string]string{"sqlite": "OR IGNORE", "mysql": "IGNORE"}[e.db.Name()]; modifier != "" {
		kinds = append(kinds, upsertKind{modifier, clause.Insert{Modifier: modifier}, nil})
	}
	return kinds
}

// upsert draws one of these.
func (w *world) upsert(table, update, unique string) upsertKind {
	var filter clause.Expression = clause.Neq{Column: clause.Column{Table: w.e.prefix + table, Name: unique}, Value: w.some(unique[:1], 8)}
	if w.often(5) {
		filter = clause.Expr{SQL: "1 = 0"}
	}
	kinds := w.e.upserts(update, unique, filter)
	kinds = append(kinds[:1:1], kinds...) // what GORM does most, twice
	return kinds[w.chance.IntN(len(kinds))]
}

func upsert[T any](w *world, table, update, unique string, values []T) error {
	kind := w.upsert(table, update, unique)
	dest, roots := rows(w, values)
	g := w.graph(everywhere, roots...)
	for _, root := range roots {
		g.seen[root].target = kind.target
	}
	return w.do(fmt.Sprintf("%s of %T", kind.name, dest), g, func(db *gorm.DB) error { return db.Clauses(kind.clause).Create(dest).Error })
}

func (w *world) upsertDocs() error {
	docs := some(w, w.doc)
	if w.often(1) {
		docs[0].ID = w.anyKey()
	}
	return upsert(w, "docs", "note", "number", docs)
}

// anyKey returns a key of the caller. It is from the source, so none is met again
// by accident.
func (w *world) anyKey() (id types.Snowflake) {
	id, _ = w.e.src.Next(context.Background())
	return id
}

func (w *world) upsertParties() error {
	parties := some(w, w.party)
	var all []Party
	w.e.must(w.db.Where("phone IS NOT NULL").Order("email").Find(&all))
	if len(all) > 1 && w.often(5) { // like two stored rows
		at := w.chance.IntN(len(all) - 1)
		parties[0].Email, parties[0].Phone = all[at].Email, all[at+1].Phone
		if w.often(5) {
			parties[0].Remarks = nil
		}
	}
	return upsert(w, "parties", "name", "email", parties)
}

func (w *world) createMaps() error {
	var list []map[string]any
	for _, d := range some(w, w.doc) {
		m := map[string]any{"number": d.Number, "note": d.Note}
		if w.often(3) {
			m = map[string]any{"Number": d.Number, "Note": d.Note}
		}
		if w.often(1) {
			m["id"] = nil
		}
		list = append(list, m)
	}
	g := &graph{}
	for _, m := range list {
		g.nodes = append(g.nodes, &node{schema: w.schemaOf(reflect.TypeFor[Doc]()), values: m})
	}
	kind := upsertKind{"Create", nil, nil}
	if w.often(6) {
		kind = w.upsert("docs", "note", "number")
	}
	for _, n := range g.nodes {
		n.target = kind.target
	}
	var dest any = list
	if len(list) == 1 {
		dest = list[0]
	}
	return w.do(fmt.Sprintf("%s of %T", kind.name, dest), g, func(db *gorm.DB) error {
		db = db.Model(&Doc{})
		if kind.clause != nil {
			db = db.Clauses(kind.clause)
		}
		return db.Create(dest).Error
	})
}

// stored loads a doc that is not deleted, if there is one.
func (w *world) stored() (*Doc, bool) {
	var all []Doc
	w.e.must(w.db.Order("number").Find(&all))
	if len(all) == 0 {
		return nil, false
	}
	return &all[w.chance.IntN(len(all))], true
}

func (w *world) saveDocs() error {
	docs := some(w, w.doc)
	if d, ok := w.stored(); ok && w.often(5) {
		w.relate(d)
		docs = append(docs, *d)
	}
	var dest any = &docs
	if len(docs) == 1 {
		dest = &docs[0]
	}
	return w.do(fmt.Sprintf("Save of %T", dest), w.graph(everywhere, rootsOf(dest)...), func(db *gorm.DB) error { return db.Save(dest).Error })
}

func (w *world) firstOrCreate() error {
	d := &Doc{}
	number := w.some("n", 12)
	g := &graph{nodes: []*node{{schema: w.schemaOf(reflect.TypeFor[Doc]()), value: reflect.ValueOf(d).Elem()}}}
	return w.do("FirstOrCreate", g, func(db *gorm.DB) error {
		d.Number = number // so that a conflict with a deleted row is seen as one
		db = db.Where(Doc{Number: number}).Attrs(Doc{Note: "first"})
		if w.often(3) {
			db = db.Assign(Doc{Note: "again"})
		}
		*d = Doc{}
		err := db.FirstOrCreate(d).Error
		d.Number = number
		return err
	})
}

func (w *world) updateDoc() error {
	d, ok := w.stored()
	if !ok {
		return w.createDocs()
	}
	w.relate(d)
	if w.chance.IntN(30) > 0 {
		d.Note = w.new()
	}
	return w.do("Updates", w.graph(everywhere, d), func(db *gorm.DB) error {
		if w.often(3) {
			db = db.Session(&gorm.Session{FullSaveAssociations: true})
		}
		return db.Updates(d).Error
	})
}

func (w *world) associate() error {
	d, ok := w.stored()
	if !ok {
		return w.createDocs()
	}
	given := Doc{} // one level below, as GORM saves it here
	name := []string{"Lines", "Marks", "Teams", "Party"}[w.chance.IntN(4)]
	var values any
	switch name {
	case "Lines":
		given.Lines = some(w, func() Line { return Line{SKU: w.line().SKU} })
		values = &given.Lines
	case "Marks":
		given.Marks = some(w, w.mark)
		values = &given.Marks
	case "Teams":
		given.Teams = some(w, w.team)
		values = &given.Teams
	case "Party":
		p := w.party()
		p.Remarks = nil
		given.Party, values = &p, &p
	}
	// The values are collected below a doc that stands for the stored one. GORM
	// makes the slice of the stored one anew.
	given.Model, given.Number, given.Public = d.Model, d.Number, d.Public
	g := w.graph(everywhere, &given)
	verb := []string{"Append", "Replace"}[w.chance.IntN(2)]
	return w.do(verb+" to "+name, g, func(db *gorm.DB) error {
		var err error
		if a := db.Model(d).Association(name); verb == "Append" {
			err = a.Append(values)
		} else {
			err = a.Replace(values)
		}
		given.PartyID = d.PartyID
		return err
	})
}

func (w *world) others() error {
	switch w.chance.IntN(4) {
	case 0:
		return create(w, "places", "name", "name", some(w, w.place))
	case 1:
		return create(w, "tickets", "note", "code", some(w, w.ticket))
	case 2:
		return create(w, "tenanteds", "note", "name", some(w, w.tenanted))
	default:
		return create(w, "gadgets", "note", "name", some(w, w.gadget))
	}
}

// create creates or upserts values.
func create[T any](w *world, table, update, unique string, values []T) error {
	if w.often(5) {
		return upsert(w, table, update, unique, values)
	}
	dest, roots := rows(w, values)
	after := w.assigned(dest)
	return w.do(fmt.Sprintf("Create of %T%s", dest, after), w.graph(everywhere, roots...), func(db *gorm.DB) error { return db.Create(dest).Error })
}

// narrowed creates with Select and Omit.
func (w *world) narrowed() error {
	docs := some(w, w.doc)
	for _, d := range docs {
		for i := range d.Lines {
			d.Lines[i].Remarks = nil // GORM saves one level below what is selected
		}
	}
	dest, roots := rows(w, docs)
	choices := []struct {
		name   string
		follow func(string) bool
		narrow func(*gorm.DB) *gorm.DB
	}{
		{"Select(Number)", nowhere, func(db *gorm.DB) *gorm.DB { return db.Select("Number") }},
		{"Select(number, Lines)", func(name string) bool { return name == "Lines" }, func(db *gorm.DB) *gorm.DB { return db.Select("number", "Lines") }},
		{"Omit(Note)", everywhere, func(db *gorm.DB) *gorm.DB { return db.Omit("Note") }},
		{"Omit(Public, Lines)", func(name string) bool { return name != "Lines" }, func(db *gorm.DB) *gorm.DB { return db.Omit("Public", "Lines") }},
		{"Omit(Associations)", nowhere, func(db *gorm.DB) *gorm.DB { return db.Omit(clause.Associations) }},
	}
	choice := choices[w.chance.IntN(len(choices))]
	g := w.graph(choice.follow, roots...)
	for _, n := range g.nodes {
		n.partial = true
	}
	nothing := w.often(5)
	name := choice.name
	if nothing {
		name += " DO NOTHING"
	}
	return w.do(name, g, func(db *gorm.DB) error {
		db = choice.narrow(db)
		if nothing {
			db = db.Clauses(doNothing())
		}
		return db.Create(dest).Error
	})
}

// retried creates rows in a transaction that is rolled back. It then creates the
// same rows again, with the same keys.
func (w *world) retried() error {
	w.doing = "Create that is rolled back"
	docs := some(w, w.doc)
	for _, d := range docs {
		if d.Party != nil {
			// Two of them may turn out to be one row. They are one to GORM the
			// second time, and it saves the children of the first.
			d.Party.Remarks = nil
		}
	}
	dest, roots := rows(w, docs)
	g := w.graph(everywhere, roots...)
	before, err := w.snapshot()
	if err != nil {
		return err
	}
	var refused error
	if err = w.unchanged("a rollback", func() error {
		return undone(w.db, func(tx *gorm.DB) error {
			refused = tx.Create(dest).Error
			return nil
		})
	}); err != nil {
		return err
	}
	if refused != nil {
		return w.reject(g, refused, before, before)
	}
	var keys []string
	for _, n := range g.nodes {
		key, _ := n.key()
		keys = append(keys, key)
	}
	again := w.graph(everywhere, roots...)
	if err = w.do("Create after a rollback", again, func(db *gorm.DB) error { return db.Create(dest).Error }); err != nil {
		return err
	}
	for i, n := range g.nodes {
		if key, _ := n.key(); key != keys[i] {
			return fmt.Errorf("%v had the key %s before the rollback; now %s", n, keys[i], key)
		}
	}
	return nil
}

func (w *world) deleteDoc() error {
	w.doing = "Delete"
	if d, ok := w.stored(); ok {
		w.e.must(w.db.Delete(d))
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
			operation := w.random
			if w.often(1) {
				operation = w.savepoint
			}
			if err := operation(); err != nil {
				return err
			}
		}
		return nil
	}
	if w.often(4) {
		return w.unchanged("a transaction that was rolled back", func() error { return undone(outside, work) })
	}
	return outside.Transaction(work)
}

// savepoint goes back to a savepoint that it names.
func (w *world) savepoint() error {
	w.doing = "RollbackTo"
	return w.unchanged("what was rolled back", func() error {
		name := fmt.Sprintf("by_hand_%d", w.inside)
		w.e.must(w.db.SavePoint(name))
		if err := w.random(); err != nil {
			return err
		}
		w.e.must(w.db.RollbackTo(name))
		return nil
	})
}

// unchanged runs work, and returns an error if it leaves another database.
func (w *world) unchanged(by string, work func() error) error {
	before, err := w.snapshot()
	if err == nil {
		err = work()
	}
	if err != nil {
		return err
	}
	after, err := w.snapshot()
	if err == nil && !reflect.DeepEqual(before, after) {
		err = fmt.Errorf("the database has changed by %s", by)
	}
	return err
}
