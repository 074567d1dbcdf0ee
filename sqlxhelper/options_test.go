package sqlxhelper_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

func TestProgressIsReportedAfterEveryStatement(t *testing.T) {
	type kid struct {
		types.Model
		Of types.Snowflake `db:"t_id"`
	}
	type parent struct {
		pair
		Kids []kid `db:"-" snowkey:"kids,fk=t_id"`
	}
	db := openSQLite(t)
	execAll(t, db, pairTable, "CREATE TABLE kids (id INTEGER PRIMARY KEY, t_id INTEGER)")
	var got [][2]int
	h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnProgress(func(done, total int) { got = append(got, [2]int{done, total}) }))
	rows := make([]parent, 200)
	rows[7].Kids = make([]kid, 3)
	if err := h.InsertGraph(ctx, db, "t", rows); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int{{150, 203}, {200, 203}, {203, 203}}; !slices.Equal(got, want) {
		t.Errorf("reports = %v; want %v", got, want)
	}
	got = nil
	if err := h.InsertMany(ctx, db, "t", []pair{}); err != nil || got != nil {
		t.Errorf("InsertMany(no rows) = %v, reports %v; want nil, none", err, got)
	}
	if err := h.Insert(ctx, db, "t", &pair{ID: 1}); err == nil || got != nil {
		t.Errorf("Insert(duplicate) = %v, reports %v; want an error, none", err, got)
	}
	if err := h.With(sqlxhelper.OnProgress(nil)).Insert(ctx, db, "t", &pair{}); err != nil || got != nil {
		t.Errorf("Insert(nil report) = %v, reports %v; want nil, none", err, got)
	}
}

// Options are data of the Helper alone. They share nothing with a caller's slice,
// or with the Helper that With was called on.
func TestOptionsAreKeptApart(t *testing.T) {
	db, mock := newMock(t)
	names := []string{"n"}
	base := newHelper(sqlxhelper.PostgreSQL)
	h := base.With(sqlxhelper.Omit(names...))
	names[0] = "other"
	mock.ExpectExec(`INSERT INTO "t" ("id") VALUES ($1)`).WithArgs(1).WillReturnResult(done(1))
	mock.ExpectExec(pairText).WithArgs(2, 4).WillReturnResult(done(1))
	mock.ExpectExec(pairText).WithArgs(3, 4).WillReturnResult(done(1))
	for _, h := range []*sqlxhelper.Helper{h, base, h.With(sqlxhelper.Omit())} {
		if err := h.Insert(ctx, db, "t", &pair{N: 4}); err != nil {
			t.Errorf("Insert() = %v; want nil", err)
		}
	}
}

func TestColumnsAndOmitGoTogether(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "t" ("id", "k") VALUES ($1, $2)`).WithArgs(1, "a").WillReturnResult(done(1))
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Columns("n", "k", "t.k"), sqlxhelper.Omit("n"))
	if err := h.Insert(ctx, db, "t", &triple{K: "a", N: 3}); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
}

// A column may be left out that has the name of a foreign key of another type.
func TestOmitKnowsAForeignKeyByItsType(t *testing.T) {
	type child struct {
		types.Model
		OwnerID types.Snowflake `db:"owner_id"`
	}
	type owner struct {
		types.Model
		OwnerID  *types.Snowflake `db:"owner_id"`
		Children []child          `db:"-" snowkey:"children,fk=owner_id"`
	}
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "owners" ("id") VALUES ($1)`).WithArgs(1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "children" ("id", "owner_id") VALUES ($1, $2)`).WithArgs(2, 1).WillReturnResult(done(1))
	mock.ExpectCommit()
	h := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Omit("owner_id"))
	if err := h.InsertGraph(ctx, db, "owners", &owner{Children: make([]child, 1)}); err != nil {
		t.Errorf("InsertGraph(Omit(owner_id)) = %v; want nil", err)
	}
	if err := h.With(sqlxhelper.Omit("children.owner_id")).InsertGraph(ctx, db, "owners", &owner{}); !errors.Is(err, sqlxhelper.ErrArgument) {
		t.Errorf("InsertGraph(Omit(children.owner_id)) = %v; want ErrArgument", err)
	}
}
