package sqlxhelper_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// fillSource has both methods; Fill does what its function says.
type fillSource struct {
	fill func(context.Context, []types.Snowflake) error
}

func (fillSource) Next(context.Context) (types.Snowflake, error) {
	return 0, errors.New("Next was called beside Fill")
}

func (f fillSource) Fill(ctx context.Context, ids []types.Snowflake) error { return f.fill(ctx, ids) }

// failAt is a source without Fill that fails at its nth call.
func failAt(n int, err error) sqlxhelper.SourceFunc {
	calls := types.Snowflake(0)
	return func(context.Context) (types.Snowflake, error) {
		if calls++; int(calls) == n {
			return 0, err
		}
		return calls, nil
	}
}

func TestSourceErrorLeavesAllKeysUnsetAndSendsNothing(t *testing.T) {
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		src  sqlxhelper.Source
		want error
		has  string
	}{
		"NextAtLastKey": {failAt(4, mine), mine, "sqlxhelper: take 4 keys: mine"},
		"Fill": {fillSource{func(_ context.Context, ids []types.Snowflake) error {
			ids[0], ids[1] = 1, 2
			return mine
		}}, mine, "sqlxhelper: take 4 keys: mine"},
		"FillLeavesZero": {fillSource{func(_ context.Context, ids []types.Snowflake) error {
			ids[0], ids[1], ids[3] = 1, 2, 4
			return nil
		}}, sqlxhelper.ErrSource, "key 3 of 4 is 0"},
		"NextZero":      {failAt(2, nil), sqlxhelper.ErrSource, "key 2 of 4 is 0"},
		"NextNegative":  {sqlxhelper.SourceFunc(func(context.Context) (types.Snowflake, error) { return -5, nil }), sqlxhelper.ErrSource, "is -5"},
		"Nil":           {nil, sqlxhelper.ErrSource, "4 keys to take"},
		"NilSourceFunc": {sqlxhelper.SourceFunc(nil), sqlxhelper.ErrSource, "4 keys to take"},
		"Context":       {failAt(1, context.DeadlineExceeded), context.DeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newMock(t)
			type parent struct {
				types.Model
				Pairs []child `db:"-" snowkey:"children,fk=order_id"`
			}
			rows := []parent{{Model: types.Model{ID: 77}, Pairs: make([]child, 2)}, {Pairs: make([]child, 1)}}
			err := sqlxhelper.New(c.src, sqlxhelper.WithDialect(sqlxhelper.SQLite)).InsertGraph(ctx, db, "t", rows)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.has) || strings.Count(err.Error(), "sqlxhelper: ") != 1 {
				t.Errorf("InsertGraph() = %v; want %v with %q", err, c.want, c.has)
			}
			for _, r := range append(rows[0].Pairs, rows[1].Pairs...) {
				if r.ID != 0 || r.OrderID != 0 {
					t.Errorf("child = %+v; want no keys", r)
				}
			}
			if rows[1].ID != 0 || rows[0].ID != 77 {
				t.Errorf("keys = %d, %d; want 77, 0", rows[0].ID, rows[1].ID)
			}
		})
	}
}

func TestSourceWithoutFillIsAskedForEachMissingKey(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "t" ("id", "n") VALUES ($1, $2), ($3, $4), ($5, $6)`).
		WithArgs(1, 0, 9, 0, 2, 0).WillReturnResult(done(3))
	h := sqlxhelper.New(failAt(3, errors.New("a third call")), sqlxhelper.WithDialect(sqlxhelper.PostgreSQL))
	if err := h.InsertMany(ctx, db, "t", []*pair{{}, {ID: 9}, {}}); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestSourceIsNotAskedWhenNoKeyIsMissing(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "t" ("id", "n") VALUES ($1, $2)`).WithArgs(9, 0).WillReturnResult(done(1))
	h := sqlxhelper.New(nil, sqlxhelper.WithDialect(sqlxhelper.PostgreSQL))
	if err := h.Insert(ctx, db, "t", &pair{ID: 9}); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
	if err := h.InsertMany(ctx, db, "t", []pair{}); err != nil {
		t.Errorf("InsertMany(no rows) = %v; want nil", err)
	}
}

func TestSourceIsGivenTheContextOfTheCall(t *testing.T) {
	type key struct{}
	db, _ := newMock(t)
	mine := errors.New("mine")
	src := sqlxhelper.SourceFunc(func(ctx context.Context) (types.Snowflake, error) {
		if ctx.Value(key{}) != "v" {
			t.Error("the source was given another context")
		}
		return 0, mine
	})
	h := sqlxhelper.New(src, sqlxhelper.WithDialect(sqlxhelper.SQLite))
	if err := h.Insert(context.WithValue(ctx, key{}, "v"), db, "t", &pair{}); !errors.Is(err, mine) {
		t.Errorf("Insert() = %v; want %v", err, mine)
	}
}
