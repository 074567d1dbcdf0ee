package sqlxhelper_test

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A visit has a key in each of the forms that a column may have.
type visit struct {
	types.Model
	ShopID  types.Snowflake     `db:"shop_id"`
	GuideID *types.Snowflake    `db:"guide_id"`
	TripID  types.NullSnowflake `db:"trip_id"`
	Next    []visit             `db:"-" snowkey:"visits,fk=trip_id"`
}

// Such a row would fail every SELECT that reads it. The mock expects no statement.
func TestKeysThatCannotBeReadBackAreRefusedBeforeAnythingIsDone(t *testing.T) {
	minus := types.Snowflake(-5)
	none := types.NullSnowflake{Snowflake: -5}
	db, _ := newMock(t)
	never := sqlxhelper.SourceFunc(nil) // an error, if it is asked
	h := sqlxhelper.New(never, sqlxhelper.WithDialect(sqlxhelper.PostgreSQL))
	for field, bad := range map[string]visit{
		"Model.ID is -5": {Model: types.Model{ID: -5}, TripID: none},
		"ShopID is -5":   {ShopID: -5},
		"GuideID is -5":  {GuideID: &minus},
		"TripID is -5":   {TripID: types.NullSnowflake{Snowflake: -5, Valid: true}},
	} {
		many := []visit{{}, {}, bad}
		pointers := []*visit{{}, {}, &bad}
		for name, c := range map[string]struct {
			path string
			call func() error
		}{
			"Insert":               {"visit", func() error { return h.Insert(ctx, db, "visits", &many[2]) }},
			"InsertMany":           {"visit[2]", func() error { return h.InsertMany(ctx, db, "visits", many) }},
			"InsertMany(pointers)": {"visit[2]", func() error { return h.InsertMany(ctx, db, "visits", pointers) }},
			"InsertMany(upsert)": {"visit[2]", func() error {
				return h.With(sqlxhelper.OnConflictDoNothing("shop_id")).InsertMany(ctx, db, "visits", many)
			}},
			"InsertGraph": {"visit[1].Next[2]", func() error {
				return h.InsertGraph(ctx, db, "visits", []visit{{}, {Next: many}})
			}},
		} {
			err := c.call()
			var row *sqlxhelper.RowError
			if !errors.As(err, &row) || !errors.Is(err, types.ErrRange) || row.Path != "sqlxhelper_test."+c.path || !strings.Contains(row.Problem, field) {
				t.Errorf("%s of a row whose %s = %v; want a RowError of %s that matches types.ErrRange", name, field, err, c.path)
			}
			if isForeign := strings.HasPrefix(field, "TripID"); errors.Is(err, sqlxhelper.ErrForeignKey) != isForeign {
				t.Errorf("%s of a row whose %s: errors.Is(%v, ErrForeignKey) = %v; want %v", name, field, err, !isForeign, isForeign)
			}
			if many[0].ID != 0 || pointers[0].ID != 0 {
				t.Errorf("%s of a row whose %s has assigned keys", name, field)
			}
		}
	}
}

func TestKeysThatAreNotWrittenAreNotLookedAt(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "visits" ("id", "shop_id", "trip_id") VALUES ($1, $2, $3)`).WithArgs(1, 2, nil).WillReturnResult(done(1))
	minus := types.Snowflake(-5)
	row := visit{ShopID: 2, GuideID: &minus, TripID: types.NullSnowflake{Snowflake: -5}}
	if err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Omit("guide_id")).Insert(ctx, db, "visits", &row); err != nil {
		t.Errorf("Insert(%+v) without guide_id = %v; want nil", row, err)
	}
}

func TestNegativeKeyInASequenceIsCountedFromItsBegin(t *testing.T) {
	db := newPairs(t)
	rows := iter.Seq2[pair, error](func(yield func(pair, error) bool) {
		for i := range 6000 {
			p := pair{N: i}
			if i == 5500 {
				p.ID = -5
			}
			if !yield(p, nil) {
				return
			}
		}
	})
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", rows)
	var row *sqlxhelper.RowError
	if n != 0 || !errors.As(err, &row) || !errors.Is(err, types.ErrRange) || row.Path != "sqlxhelper_test.pair[5500]" {
		t.Errorf("InsertSeq() = %d, %v; want 0 and a RowError of row 5500", n, err)
	}
	if got := stored(t, db); got != 0 {
		t.Errorf("%d rows are left; want none", got)
	}
}

// A Value that holds a Snowflake is only known when it is written.
func TestNegativeKeyInAnyOtherValueIsAnErrorOfItsRow(t *testing.T) {
	type loose struct {
		types.Model
		Ref any `db:"ref"`
	}
	db, _ := newMock(t)
	err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", []loose{{Ref: 1}, {Ref: types.Snowflake(-5)}})
	var e *sqlxhelper.InsertError
	if !errors.As(err, &e) || !errors.Is(err, types.ErrRange) || e.Row != 1 || e.Field != "Ref" {
		t.Errorf("InsertMany() = %v; want an InsertError of Ref in row 1 that matches types.ErrRange", err)
	}
}
