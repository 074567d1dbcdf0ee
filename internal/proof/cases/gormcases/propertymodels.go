package gormcases

import (
	"slices"
	"sync"

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
		PartyID *types.Snowflake
		Party   *Party
		Lines   []Line
		Stamp   *Stamp
		Detail  *Detail
		Marks   []Mark  `gorm:"many2many:doc_marks"`
		Teams   []*Team `gorm:"many2many:doc_teams"`
	}
	// Party has two unique columns, so a row can be like two others.
	Party struct {
		ID      types.Snowflake
		Email   string   `gorm:"size:40;uniqueIndex"`
		Phone   *string  `gorm:"size:40;uniqueIndex"`
		Name    string   `gorm:"size:40"`
		Remarks []Remark `gorm:"polymorphic:Owner"`
	}
	// Line is one of many.
	Line struct {
		ID      types.Snowflake
		DocID   types.Snowflake
		SKU     string   `gorm:"size:40;uniqueIndex"`
		Remarks []Remark `gorm:"polymorphic:Owner"`
	}
	// Stamp is the only one.
	Stamp struct {
		ID    types.Snowflake
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
		ID   types.Snowflake
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
		ID       types.Snowflake
		ParentID *types.Snowflake
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
	if err := e.db.SetupJoinTable(&Doc{}, "Teams", &DocTeam{}); err != nil {
		e.Fatalf("SetupJoinTable = %v; want no error", err)
	}
	e.migrate(randomModels...)
	w := &world{e: e, db: e.db, joins: []string{e.prefix + "doc_marks"}}
	var cache sync.Map // not the one of db: see ParseIndexes in the plugin
	for _, model := range randomModels {
		s, err := schema.Parse(model, &cache, e.db.NamingStrategy)
		if err != nil {
			e.Fatalf("schema.Parse(%T) = %v; want no error", model, err)
		}
		w.schemas = append(w.schemas, s)
	}
	return w
}

// clear empties the tables, children first.
func (w *world) clear() {
	w.e.Helper()
	tables := slices.Clone(w.joins)
	for _, s := range slices.Backward(w.schemas) {
		tables = append(tables, s.Table)
	}
	w.e.must(w.e.db.Exec("UPDATE " + w.e.prefix + "places SET parent_id = NULL"))
	for _, table := range tables {
		w.e.must(w.e.db.Exec("DELETE FROM " + table))
	}
	w.e.log.reset()
}

func (w *world) doc() Doc {
	d := Doc{Number: w.some("n", 12), Note: w.new()}
	if w.often(6) {
		d.Number = w.new()
	}
	w.relate(&d)
	return d
}

// relate gives d new associations.
func (w *world) relate(d *Doc) {
	if w.often(5) {
		p := w.party()
		d.Party = &p
	}
	d.Lines = list(w, 3, w.line)
	if w.often(2) {
		d.Stamp = &Stamp{Text: w.new()}
	}
	if w.often(2) {
		d.Detail = &Detail{Text: w.new()}
	}
	d.Marks = list(w, 2, w.mark)
	d.Teams = list(w, 2, w.team)
}

func (w *world) party() Party {
	p := Party{Email: w.some("e", 6), Name: w.new(), Remarks: list(w, 1, w.remark)}
	if w.often(3) {
		p.Email = w.new()
	}
	if w.often(4) {
		phone := w.some("p", 6)
		p.Phone = &phone
	}
	return p
}

func (w *world) line() Line {
	l := Line{SKU: w.new()}
	if w.chance.IntN(40) == 0 {
		l.SKU = w.some("k", 4)
	}
	if w.often(1) {
		l.Remarks = list(w, 2, w.remark)
	}
	return l
}

func (w *world) mark() Mark     { return Mark{Text: w.some("m", 8)} }
func (w *world) team() *Team    { return &Team{Name: w.some("t", 8)} }
func (w *world) remark() Remark { return Remark{Text: w.new()} }

func (w *world) place() Place {
	p := Place{Name: w.some("a", 10)}
	for range w.chance.IntN(3) {
		child := Place{Name: w.new()}
		child.Places = list(w, 2, func() Place { return Place{Name: w.new()} })
		p.Places = append(p.Places, child)
	}
	return p
}

func (w *world) ticket() Ticket {
	return Ticket{Code: w.some("c", 10), Note: w.new(), Steps: list(w, 2, func() TicketStep { return TicketStep{Text: w.new()} })}
}

// The tenant follows from the name. An upsert that met a row of another tenant
// would leave the one in memory, as the plugin documents.
func (w *world) tenanted() Tenanted {
	tenant := w.chance.Int64N(3) + 1
	t := Tenanted{TenantID: tenant, Name: w.some(string(rune('w'+tenant)), 4), Note: w.new()}
	t.Parts = list(w, 2, func() TenantedPart { return TenantedPart{TenantID: tenant, Text: w.new()} })
	return t
}

func (w *world) gadget() Gadget {
	g := Gadget{Name: w.some("g", 8), Note: w.new()}
	if w.often(2) {
		g.Base = &Base{}
	}
	return g
}
