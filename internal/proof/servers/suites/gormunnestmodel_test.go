package servers

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A paper has a field of every sort that GORM treats in a way of its own, and columns
// of many types.
type (
	paper struct {
		ID        types.Snowflake
		CreatedAt time.Time
		UpdatedAt int64 `gorm:"autoUpdateTime:nano"`
		DeletedAt gorm.DeletedAt
		Number    string `gorm:"size:40;uniqueIndex"`
		Note      *string
		Kind      bulkText `gorm:"size:30"`
		Mood      bulkMood // has a method String
		Count     int32
		Small     uint8
		Big       uint64 `gorm:"type:numeric"`
		Ratio     float64
		Exact     float64 `gorm:"type:double precision"`
		Single    float32 `gorm:"type:real"`
		On        *bool
		Raw       []byte
		Day       time.Time            `gorm:"type:date"`
		At        *time.Time           `gorm:"type:timestamp(3)"`
		Price     bulkAmount           `gorm:"type:numeric(20,2)"`
		Cost      sql.Null[bulkAmount] `gorm:"type:numeric"`
		UUID      uuid.UUID            `gorm:"type:uuid"`
		Tags      map[string]int       `gorm:"serializer:json;type:jsonb"`
		List      []string             `gorm:"serializer:gob;type:bytea"`
		Stamp     int64                `gorm:"serializer:unixtime;type:timestamptz"`
		JSON      json.RawMessage      `gorm:"type:jsonb"`
		Place     paperPlace           `gorm:"embedded;embeddedPrefix:place_"`
		Deep      *paperPlace          `gorm:"embedded;embeddedPrefix:deep_"`
		Owner     sql.NullString
		Other     types.NullSnowflake
		Seven     int    `gorm:"default:7"`
		Shout     string `gorm:"default:upper('x')"`
		Twice     int64  `gorm:"->;type:bigint GENERATED ALWAYS AS (count::bigint * 2) STORED"`
		Words     paperWords
		Lines     []paperLine
	}
	paperLine struct {
		ID      types.Snowflake
		PaperID types.Snowflake
		Text    string `gorm:"size:20"`
	}
	paperPlace struct {
		City string `gorm:"size:20"`
		Nr   sql.NullInt32
	}
	// paperWords is sent as GORM is told: as a value, or as an expression.
	paperWords string
)

func (w paperWords) GormValue(context.Context, *gorm.DB) clause.Expr {
	if len(w)%7 == 6 {
		return gorm.Expr("upper(?)", string(w))
	}
	return gorm.Expr("?", string(w))
}

func (paperWords) GormDataType() string { return "text" }

// BeforeCreate changes some rows.
func (p *paper) BeforeCreate(*gorm.DB) error {
	if p.Count%5 == 0 {
		p.Kind = "from the hook"
	}
	return nil
}

// paperColumns are those with a field that hardly ever stops arrays, and those with one
// that often does.
var (
	paperColumns = []string{
		"Number", "Note", "Kind", "Count", "Small", "Big", "Ratio", "Exact", "Single", "On", "Raw", "Day", "Price", "UUID", "Tags",
		"Stamp", "Place.City", "place_nr", "deep_city", "Owner", "Other", "Seven", "DeletedAt", "List",
	}
	paperHard = []string{"Mood", "Cost", "JSON", "At", "Shout", "Words"}
)

func randomPaper(r *rand.Rand) paper {
	some := func() bool { return r.IntN(3) > 0 }
	p := paper{
		Number: fmt.Sprintf("%s %d", bulkString(r), r.IntN(1000)), Kind: bulkText(bulkString(r)), Mood: bulkMood(bulkString(r)),
		Count: r.Int32(), Small: uint8(r.Uint32()), Big: uint64(r.Int64()), Ratio: r.NormFloat64() * math.Pow10(r.IntN(20)-10),
		Exact: r.NormFloat64() * math.Pow10(r.IntN(300)), Single: float32(r.NormFloat64()), Raw: []byte(bulkString(r)),
		Day: bulkTime(r).UTC(), Price: bulkAmount(fmt.Sprintf("%d.%03d", r.Int32(), r.IntN(1000))), UUID: uuid.New(),
		Tags: map[string]int{bulkString(r): r.IntN(9)}, List: []string{bulkString(r)}, Stamp: int64(r.Int32()),
		JSON: json.RawMessage(`{"n": [1, null]}`), Place: paperPlace{City: bulkString(r)}, Words: paperWords(bulkString(r)),
		Owner: sql.NullString{String: bulkString(r), Valid: some()}, Other: types.NullSnowflake{Snowflake: types.Snowflake(r.Int64()), Valid: some()},
		Seven: r.IntN(3), Cost: sql.Null[bulkAmount]{V: bulkAmount(fmt.Sprintf("-%03d.%d", r.Int32N(200), r.IntN(99)*10)), Valid: some()},
	}
	for i := range p.UUID {
		p.UUID[i] = byte(r.Uint32())
	}
	if some() {
		p.Note, p.On, p.At = new(string), new(bool), new(time.Time)
		*p.Note, *p.On, *p.At = bulkString(r), r.IntN(2) == 0, bulkTime(r).Add(time.Duration(r.IntN(1000)))
		p.Deep, p.Shout = &paperPlace{City: "deep"}, "loud"
		p.DeletedAt = gorm.DeletedAt{Time: bulkTime(r).Add(time.Duration(r.IntN(1000))), Valid: true}
	}
	for range r.IntN(3) {
		p.Lines = append(p.Lines, paperLine{Text: bulkString(r)})
	}
	switch r.IntN(200) { // what the database or the driver refuses
	case 0:
		p.Kind = "nul\x00byte"
	case 1:
		p.Big = math.MaxUint64
	case 2:
		p.Place.City = "longer than twenty characters"
	case 3:
		p.Day = p.Day.In(time.FixedZone("", 3600))
	case 4:
		p.Cost = sql.Null[bulkAmount]{V: "1e2", Valid: true}
	}
	return p
}

// createPapers creates random rows in a random way. It returns what is in memory then.
func createPapers(r *rand.Rand, db *gorm.DB) (list []paper, affected int64, err error) {
	list = make([]paper, []int{1, 10, 11, 12, 40}[r.IntN(5)])
	for i := range list {
		list[i] = randomPaper(r)
	}
	columns := []any{}
	for i, name := range r.Perm(len(paperColumns)) {
		if i < 12 {
			columns = append(columns, paperColumns[name])
		}
	}
	tx := db.Session(&gorm.Session{PrepareStmt: r.IntN(2) == 0, SkipDefaultTransaction: r.IntN(2) == 0})
	switch r.IntN(5) {
	case 0:
		tx = tx.Select("Number", columns...)
	case 1:
		tx = tx.Select("Number", append(columns, "Lines", paperHard[r.IntN(len(paperHard))])...)
	case 2:
		tx = tx.Omit(slices.Concat(paperHard, []string{"Lines", paperColumns[1+r.IntN(len(paperColumns)-1)]})...)
	default:
		tx = tx.Omit(paperHard...)
	}
	number := []clause.Column{{Name: "number"}}
	switch r.IntN(6) {
	case 0:
		tx = tx.Clauses(clause.OnConflict{DoNothing: true})
	case 1:
		tx = tx.Clauses(clause.OnConflict{Columns: number, UpdateAll: true})
	case 2:
		tx = tx.Clauses(clause.OnConflict{Columns: number, DoUpdates: clause.Assignments(map[string]any{"count": gorm.Expr("excluded.count + ?", 1)})}, clause.Returning{})
	case 3:
		tx = tx.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "seven"}}})
	}
	switch r.IntN(4) {
	case 0:
		tx = tx.CreateInBatches(&list, 15)
	case 1:
		maps := make([]map[string]any, len(list))
		for i, p := range list {
			maps[i] = map[string]any{"Number": p.Number, "count": p.Count, "Price": p.Price, "created_at": p.DeletedAt.Time, "note": p.Note}
			if r.IntN(300) == 0 {
				maps[i]["count"] = gorm.Expr("1 + 1")
			}
		}
		tx = tx.Model(&paper{}).Create(&maps)
	default:
		tx = tx.Create(&list)
	}
	return list, tx.RowsAffected, tx.Error
}

func TestGormStoresRandomModelsAsArraysAsItDoesByValues(t *testing.T) {
	for _, name := range []string{"pgx", "pgx simple protocol", "pq"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var dbs []*gorm.DB
			var arrays func() int
			for _, options := range [][]gormplugin.Option{nil, {gormplugin.WithUnnest()}} {
				d := sqlxPostgres(t, bulkModes[name].driver, bulkModes[name].parameters...)
				now := func() time.Time { return time.Date(2026, 11, 22, 1, 2, 3, 456_789_500, time.FixedZone("", 3600)) }
				db, n := unnestPool(t, d.DB.DB, &gorm.Config{NowFunc: now}, options...)
				must(t, db.AutoMigrate(&paper{}, &paperLine{}))
				dbs, arrays = append(dbs, db), n
			}
			for i := range 150 {
				comparePapers(t, dbs, *bulkSeed+uint64(i))
			}
			if n := arrays(); n < 100 {
				t.Errorf("inserts with arrays = %d; want more", n)
			}
		})
	}
}

// comparePapers creates the same rows in both databases, and compares these.
func comparePapers(t *testing.T, dbs []*gorm.DB, seed uint64) {
	t.Helper()
	type outcome struct {
		list     []paper
		affected int64
		state    string
		stored   [2][]string
	}
	var outcomes [2]outcome
	for i, db := range dbs {
		list, affected, err := createPapers(rand.New(rand.NewPCG(seed, 0)), db)
		o := outcome{list: list, affected: affected, state: sqlState(err)}
		for k, table := range []string{"papers", "paper_lines"} {
			must(t, db.Raw("SELECT t::text FROM "+table+" t ORDER BY id").Scan(&o.stored[k]).Error)
		}
		outcomes[i] = o
	}
	want, got := outcomes[0], outcomes[1]
	for k := range want.stored {
		if !slices.Equal(got.stored[k], want.stored[k]) {
			for i := range min(len(got.stored[k]), len(want.stored[k])) {
				if got.stored[k][i] != want.stored[k][i] {
					t.Errorf("row %d with the option: %s; want %s", i, got.stored[k][i], want.stored[k][i])
					break
				}
			}
			t.Fatalf("seed %d: %d rows are stored with the option, %d without", seed, len(got.stored[k]), len(want.stored[k]))
		}
	}
	if got.state != want.state || got.affected != want.affected {
		t.Fatalf("seed %d: with the option %d rows affected and error %q; want %d and %q", seed, got.affected, got.state, want.affected, want.state)
	}
	if !reflect.DeepEqual(got.list, want.list) {
		t.Fatalf("seed %d: in memory with the option: %+v; want %+v", seed, got.list, want.list)
	}
}
