package gormcases

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// The models of the random case: between them every kind of relation, key and
// unique column. Each has a unique column of its own, by which its row is found
// again.
type (
	// Doc has a relation of every kind, a soft delete, and a second column with a
	// key.
	Doc struct {
		gormplugin.Model
		Number  string          `gorm:"size:40;uniqueIndex"`
		Note    string          `gorm:"size:40"`
		Public  types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
		PartyID types.NullID[Party]
		Party   *Party
		Lines   []Line
		Stamp   *Stamp
		Detail  *Detail
		Marks   []Mark  `gorm:"many2many:doc_marks"`
		Teams   []*Team `gorm:"many2many:doc_teams"`
	}
	// Party has two unique columns, so a row can be like two others, and a typed key.
	Party struct {
		ID      types.ID[Party]
		Email   string   `gorm:"size:40;uniqueIndex"`
		Phone   *string  `gorm:"size:40;uniqueIndex"`
		Name    string   `gorm:"size:40"`
		Remarks []Remark `gorm:"polymorphic:Owner"`
		Teams   []*Team  `gorm:"many2many:party_teams"`
	}
	// Line is one of many.
	Line struct {
		ID      types.ID[Line]
		DocID   types.Snowflake
		SKU     string   `gorm:"size:40;uniqueIndex"`
		Remarks []Remark `gorm:"polymorphic:Owner"`
	}
	// Stamp is the only one, and has a key that a program without the plugin would let the database count.
	Stamp struct {
		ID    int64 `gorm:"primaryKey;autoIncrement"`
		DocID types.Snowflake
		Text  string `gorm:"size:40;uniqueIndex"`
	}
	// Detail has the key of its Doc.
	Detail struct {
		DocID types.Snowflake `gorm:"primaryKey"`
		Text  string          `gorm:"size:40"`
	}
	// Mark is shared.
	Mark struct {
		ID   myID
		Text string `gorm:"size:40;uniqueIndex"`
	}
	// Team is shared through a table with a key of its own.
	Team struct {
		ID   types.Snowflake
		Name string `gorm:"size:40;uniqueIndex"`
	}
	// DocTeam is the row of that table.
	DocTeam struct {
		ID     types.Snowflake
		DocID  types.Snowflake `gorm:"uniqueIndex:,composite:doc_team"`
		TeamID types.Snowflake `gorm:"uniqueIndex:,composite:doc_team"`
	}
	// Remark is owned by a model of any kind.
	Remark struct {
		ID        types.Snowflake
		Text      string `gorm:"size:40;uniqueIndex"`
		OwnerID   types.Snowflake
		OwnerType string `gorm:"size:40"`
	}
	// Place is one of a tree.
	Place struct {
		ID       uint
		ParentID *uint
		Name     string  `gorm:"size:40;uniqueIndex"`
		Places   []Place `gorm:"foreignKey:ParentID"`
	}
	// Ticket has a key of text.
	Ticket struct {
		ID    string `gorm:"primaryKey;size:40;snowflake"`
		Code  string `gorm:"size:40;uniqueIndex"`
		Note  string `gorm:"size:40"`
		Steps []TicketStep
	}
	// TicketStep refers to a key of text, and has one without sign.
	TicketStep struct {
		ID       uint64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
		TicketID string `gorm:"size:40"`
		Text     string `gorm:"size:40;uniqueIndex"`
	}
	// Tenanted has a key of two columns.
	Tenanted struct {
		TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
		ID       types.Snowflake `gorm:"primaryKey"`
		Name     string          `gorm:"size:40;uniqueIndex"`
		Note     string          `gorm:"size:40"`
		Parts    []TenantedPart  `gorm:"foreignKey:TenantID,TenantedID;references:TenantID,ID"`
	}
	// TenantedPart refers to it.
	TenantedPart struct {
		TenantID   int64           `gorm:"primaryKey;autoIncrement:false"`
		ID         types.Snowflake `gorm:"primaryKey"`
		TenantedID types.Snowflake
		Text       string `gorm:"size:40;uniqueIndex"`
	}
	// Gadget has its key behind an embedded pointer.
	Gadget struct {
		*Base
		Name string `gorm:"size:40;uniqueIndex"`
		Note string `gorm:"size:40"`
	}
)

// Parents come first.
var randomModels = []any{
	&Party{}, &Mark{}, &Team{}, &Doc{}, &Line{}, &Stamp{}, &Detail{}, &DocTeam{}, &Remark{},
	&Place{}, &Ticket{}, &TicketStep{}, &Tenanted{}, &TenantedPart{}, &Gadget{},
}

// newWorld makes the tables of the random models.
func newWorld(e *env) *world {
	e.Helper()
	e.ok("SetupJoinTable", e.db.SetupJoinTable(&Doc{}, "Teams", &DocTeam{}))
	e.migrate(randomModels...)
	w := &world{env: e, db: e.db, joins: []string{e.prefix + "doc_marks", e.prefix + "party_teams"}}
	var cache sync.Map // not the one of db: see ParseIndexes in the plugin
	for _, model := range randomModels {
		s, err := schema.Parse(model, &cache, e.db.NamingStrategy)
		e.ok("schema.Parse", err)
		w.schemas = append(w.schemas, s)
	}
	return w
}

// clear empties the tables, children first.
func (w *world) clear() {
	w.Helper()
	tables := slices.Clone(w.joins)
	for _, s := range slices.Backward(w.schemas) {
		tables = append(tables, s.Table)
	}
	w.must(w.db.Exec("UPDATE " + w.prefix + "places SET parent_id = NULL"))
	for _, table := range tables {
		w.must(w.db.Exec("DELETE FROM " + table))
	}
	w.log.reset()
}

// A root is a model whose graphs are created, with a unique column and one to update.
type root struct {
	model          reflect.Type
	unique, update string
}

var (
	docRoot   = root{reflect.TypeFor[Doc](), "number", "note"}
	partyRoot = root{reflect.TypeFor[Party](), "email", "name"}
	roots     = []root{
		docRoot, docRoot, docRoot, partyRoot, partyRoot,
		{reflect.TypeFor[Place](), "name", "name"}, {reflect.TypeFor[Ticket](), "code", "note"},
		{reflect.TypeFor[Tenanted](), "name", "note"}, {reflect.TypeFor[Gadget](), "name", "note"},
	}
)

// some returns one to five rows of a root as a slice, with so many levels of associations.
func (w *world) some(of root, levels int) reflect.Value {
	list := reflect.New(reflect.SliceOf(of.model)).Elem()
	for more := true; more && list.Len() < 5; more = w.often(4) {
		row := reflect.New(list.Type().Elem()).Elem()
		w.fill(row, false, levels)
		list.Set(reflect.Append(list, row))
	}
	return list
}

// fill gives a struct texts, and associations. A row that others may refer to has few unique
// texts, so that it meets other rows, and an owned row nearly always a new one.
func (w *world) fill(row reflect.Value, owned bool, levels int) {
	w.Helper()
	s := w.schemaOf(row.Type())
	unique := slices.Concat(uniques(s)...)
	for _, f := range s.Fields {
		if f.DataType != schema.String || strings.HasSuffix(f.Name, "ID") || f.Name == "OwnerType" || f.FieldType.Kind() == reflect.Pointer && w.often(6) {
			continue
		}
		text := w.new()
		if few := slices.Contains(unique, f.DBName) && w.often(5); few && (!owned || w.chance.IntN(40) == 0) {
			text = f.DBName + strconv.Itoa(w.chance.IntN(8))
		}
		w.must(&gorm.DB{Error: f.Set(w.Context(), row, text)})
	}
	// The tenant follows from the name. An upsert that met a row of another tenant would leave the
	// one in memory, as the plugin documents.
	if t, ok := reflect.TypeAssert[*Tenanted](row.Addr()); ok {
		t.TenantID = 1 + int64(t.Name[len(t.Name)-1])%3
	}
	w.relate(row, levels)
}

// relate gives a struct new associations.
func (w *world) relate(row reflect.Value, levels int) {
	w.Helper()
	if levels == 0 {
		return
	}
	for _, rel := range relations(w.schemaOf(row.Type())) {
		field, typ := row.FieldByName(rel.Name), rel.FieldSchema.ModelType
		one := func() reflect.Value {
			row := reflect.New(typ)
			w.fill(row.Elem(), rel.Type == schema.HasOne || rel.Type == schema.HasMany, levels-1)
			return row
		}
		switch {
		case field.Kind() == reflect.Slice:
			for range w.chance.IntN(3) {
				element := one()
				if field.Type().Elem().Kind() != reflect.Pointer {
					element = element.Elem()
				}
				field.Set(reflect.Append(field, element))
			}
		case w.often(4):
			if field.Set(one()); rel.Type == schema.BelongsTo {
				w.shared = append(w.shared, field)
			}
		case rel.Type == schema.BelongsTo && len(w.shared) > 0 && w.shared[0].Type() == field.Type():
			field.Set(w.shared[0]) // one pointer, one row
		}
	}
}

// form passes rows to create in one of the forms that GORM takes.
func (w *world) form(list reflect.Value) any {
	switch {
	case list.Len() == 1 && w.often(7):
		return list.Index(0).Addr().Interface()
	case w.often(3):
		pointers := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(list.Type().Elem())), 0, list.Len())
		for i := range list.Len() {
			pointers = reflect.Append(pointers, list.Index(i).Addr())
		}
		return pointers.Interface()
	}
	return list.Addr().Interface()
}
