package sqlxhelper

import (
	"context"
	"database/sql"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

// Handles of a program, around a transaction.
type (
	embedding    struct{ *sqlx.Tx }
	embeddingTwo struct{ *embedding }
	holding      struct{ DB }
)

func (h holding) Unwrap() DB { return h.DB }

func TestRecordIsFoundThroughTheLayersOfAHandle(t *testing.T) {
	tx, want := &sqlx.Tx{Tx: &sql.Tx{}}, &outcome.Record{}
	watched.Store(tx.Tx, want)
	defer watched.Delete(tx.Tx)
	for _, db := range []DB{tx, tx.Unsafe(), embedding{tx}, &embedding{tx}, embeddingTwo{&embedding{tx}}, holding{tx}, holding{holding{embedding{tx}}}, Within(tx), Within(holding{embedding{tx}})} {
		if got := recordOf(db); got != want {
			t.Errorf("recordOf(%T) = %p; want %p", db, got, want)
		}
	}
	for _, db := range []DB{&sqlx.DB{}, &sqlx.Tx{}, embedding{&sqlx.Tx{}}, holding{&sqlx.DB{}}, holding{}} {
		if got := recordOf(db); got != nil {
			t.Errorf("recordOf(%T) = %p; want nil", db, got)
		}
	}
}

// The keys of an upsert may be those of rows that were stored long before. Its
// children are inserted.
func TestHelperNotesWhatItHasInserted(t *testing.T) {
	type child struct {
		ID  types.Snowflake `db:"id"`
		Row types.Snowflake `db:"row_id"`
	}
	type parent struct {
		ID       types.Snowflake `db:"id"`
		Name     string          `db:"name"`
		Children []child         `db:"-" snowkey:"children,fk=row_id"`
	}
	db, _ := openTwice(t, "")
	exec(t, db, "CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
	exec(t, db, "CREATE TABLE children (id INTEGER PRIMARY KEY, row_id INTEGER)")
	exec(t, db, "INSERT INTO parents VALUES (1, 'stored')")
	parents, children := outcome.KeyColumn{Dialect: SQLite, Table: "parents", Column: "id"}, outcome.KeyColumn{Dialect: SQLite, Table: "children", Column: "id"}
	err := InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
		check := func(what string, err error, want ...outcome.Proof) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if got := recordOf(tx).Proofs(); !slices.Equal(got, want) {
				t.Errorf("after %s proofs() = %v; want %v", what, got, want)
			}
		}
		h := New(nil)
		upsert := h.With(OnConflictDoNothing("name"))
		check("upsert", upsert.Insert(t.Context(), tx, "parents", &parent{ID: 2, Name: "stored"}))
		check("upsert of a graph", upsert.InsertGraph(t.Context(), tx, "parents", &parent{ID: 3, Name: "stored", Children: []child{{ID: 4}}}), outcome.Proof{KeyColumn: children, Key: 4})
		check("upsert that inserts", New(SourceFunc(func(context.Context) (types.Snowflake, error) { return 8, nil })).With(OnConflictDoNothing("name")).Insert(t.Context(), tx, "parents", &parent{Name: "new"}), outcome.Proof{KeyColumn: parents, Key: 8}, outcome.Proof{KeyColumn: children, Key: 4})
		check("insert", h.Insert(t.Context(), tx, "parents", &parent{ID: 5}), outcome.Proof{KeyColumn: parents, Key: 5}, outcome.Proof{KeyColumn: children, Key: 4})
		if err := h.Insert(t.Context(), tx, "parents", &parent{ID: 5}); err == nil {
			t.Error("Insert(again) = nil; want an error")
		}
		if err := h.Insert(t.Context(), db, "rows", &types.Model{ID: 6}); err == nil {
			t.Error("Insert(pool) = nil; want the error of a locked database")
		}
		check("calls that failed", nil, outcome.Proof{KeyColumn: parents, Key: 5}, outcome.Proof{KeyColumn: children, Key: 4})
		return nil
	})
	if err != nil {
		t.Errorf("InTx() = %v; want nil", err)
	}
}
