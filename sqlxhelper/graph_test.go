package sqlxhelper_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type parent struct {
	types.Model
	*inner
	Lines []line  `db:"-" snowkey:"lines,fk=parent_id"`
	Ptrs  []*line `db:"-" snowkey:"lines,fk=parent_id"`
	One   *line   `db:"-" snowkey:"lines,fk=parent_id"`
}

type inner struct{ Name string }

type line struct {
	types.Model
	ParentID types.Snowflake     `db:"parent_id"`
	AfterID  types.NullSnowflake `db:"after_id"`
	Tags     []*tagged           `db:"-" snowkey:"tagged,fk=line_id"`
	Next     []*line             `db:"-" snowkey:"lines,fk=after_id"`
}

type tagged struct {
	types.Model
	LineID *types.Snowflake `db:"line_id"`
}

func key(id types.Snowflake) types.Model { return types.Model{ID: id} }

func TestRowsThatCannotBeWrittenAreARowErrorAndStayAsTheyAre(t *testing.T) {
	id := func(n types.Snowflake) *types.Snowflake { return &n }
	same := &line{}
	shared := make([]line, 1)
	loop := &line{ParentID: 1}
	loop.Next = []*line{loop}
	in := &inner{}
	for name, c := range map[string]struct {
		rows any
		many bool // InsertMany instead of InsertGraph
		path string
		has  string
		is   error
	}{
		"NilElement":          {rows: []*parent{{inner: in}, nil}, many: true, path: "sqlxhelper_test.parent[1]", has: "nil"},
		"NilElementOfGraph":   {rows: []*parent{{inner: in}, nil}, path: "sqlxhelper_test.parent[1]", has: "nil"},
		"NilChild":            {rows: []parent{{inner: in}, {inner: in, Ptrs: []*line{{}, nil}}}, path: "sqlxhelper_test.parent[1].Ptrs[1]", has: "nil"},
		"NilGrandchild":       {rows: &parent{inner: in, One: &line{Tags: []*tagged{nil}}}, path: "sqlxhelper_test.parent.One.Tags[0]", has: "nil"},
		"NilEmbedded":         {rows: []parent{{inner: in}, {}}, many: true, path: "sqlxhelper_test.parent[1]", has: "inner is nil"},
		"NilEmbeddedOfOne":    {rows: &parent{}, path: "sqlxhelper_test.parent", has: "inner is nil"},
		"SamePointerTwice":    {rows: func() any { p := &pair{}; return []*pair{p, {}, p} }(), many: true, path: "sqlxhelper_test.pair[2]", has: "same struct as sqlxhelper_test.pair[0]"},
		"SameChild":           {rows: []parent{{inner: in, Ptrs: []*line{same}}, {inner: in, One: same}}, path: "sqlxhelper_test.parent[1].One", has: "same struct as sqlxhelper_test.parent[0].Ptrs[0]"},
		"SharedSlice":         {rows: []parent{{inner: in, Lines: shared}, {inner: in, Lines: shared}}, path: "sqlxhelper_test.parent[1].Lines[0]", has: "same struct"},
		"Loop":                {rows: loop, path: "sqlxhelper_test.line.Next[0]", has: "same struct as sqlxhelper_test.line,"},
		"OtherParent":         {rows: &parent{Model: key(7), inner: in, Lines: []line{{}, {ParentID: 8}}}, path: "sqlxhelper_test.parent.Lines[1]", has: "ParentID is 8, and the parent that holds it has key 7", is: sqlxhelper.ErrForeignKey},
		"ParentWithoutKey":    {rows: &parent{inner: in, Lines: []line{{ParentID: 8}}}, path: "sqlxhelper_test.parent.Lines[0]", has: "has no key yet", is: sqlxhelper.ErrForeignKey},
		"OtherParentPointer":  {rows: &line{Model: key(3), ParentID: 1, Tags: []*tagged{{LineID: id(4)}}}, path: "sqlxhelper_test.line.Tags[0]", has: "LineID is 4", is: sqlxhelper.ErrForeignKey},
		"OtherParentNull":     {rows: &line{Model: key(3), ParentID: 1, Next: []*line{{AfterID: types.NullSnowflake{Snowflake: 4, Valid: true}}}}, path: "sqlxhelper_test.line.Next[0]", has: "AfterID is 4", is: sqlxhelper.ErrForeignKey},
		"ZeroThatIsNotNull":   {rows: []line{{ParentID: 1, AfterID: types.NullSnowflake{Valid: true}}}, many: true, path: "sqlxhelper_test.line[0]", has: "AfterID is a foreign key and zero", is: sqlxhelper.ErrForeignKey},
		"ZeroOfOtherRelation": {rows: &parent{inner: in, One: &line{Next: []*line{{}}}}, path: "sqlxhelper_test.parent.One.Next[0]", has: "ParentID is a foreign key and zero", is: sqlxhelper.ErrForeignKey},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newMock(t)
			h := newHelper(sqlxhelper.SQLite)
			insert := h.InsertGraph
			if c.many {
				insert = h.InsertMany
			}
			before := keys(reflect.ValueOf(c.rows), map[any]bool{})
			err := insert(ctx, db, "t", c.rows)
			var row *sqlxhelper.RowError
			if !errors.As(err, &row) {
				t.Fatalf("insert() = %v; want a RowError", err)
			}
			if row.Path != c.path || !strings.Contains(row.Problem, c.has) || c.is != nil && !errors.Is(err, c.is) || strings.Count(err.Error(), "sqlxhelper: ") != 1 {
				t.Errorf("insert() = %q at %q; want %q at %q, matching %v", err, row.Path, c.has, c.path, c.is)
			}
			if after := keys(reflect.ValueOf(c.rows), map[any]bool{}); !reflect.DeepEqual(after, before) {
				t.Errorf("keys = %v; want %v as before", after, before)
			}
		})
	}
}

// keys collects all Snowflakes below v, in the order of the fields.
func keys(v reflect.Value, seen map[any]bool) []types.Snowflake {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.UnsafePointer()] {
			return nil
		}
		seen[v.UnsafePointer()] = true
		return keys(v.Elem(), seen)
	case reflect.Slice:
		var all []types.Snowflake
		for i := range v.Len() {
			all = append(all, keys(v.Index(i), seen)...)
		}
		return all
	case reflect.Struct:
		var all []types.Snowflake
		for i := range v.NumField() {
			all = append(all, keys(v.Field(i), seen)...)
		}
		return all
	case reflect.Int64:
		return []types.Snowflake{types.Snowflake(v.Int())}
	}
	return nil
}

func TestArgumentsOfAnotherFormAreAnError(t *testing.T) {
	db, _ := newMock(t)
	h := newHelper(sqlxhelper.SQLite)
	var nilRow *pair
	var nilSlice *[]pair
	p := &pair{}
	for _, arg := range []any{nil, 7, "x", pair{}, nilRow, &p, []pair{}, &[]pair{}, map[string]any{}} {
		if err := h.Insert(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("Insert(%T) = %v; want ErrArgument", arg, err)
		}
	}
	for _, arg := range []any{nil, 7, "x", pair{}, &p, p, nilRow, nilSlice, []any{p}, []**pair{&p}, [1]pair{}, &[1]pair{}, [][]pair{}, map[int]pair{}, []int{1}, []map[string]any{}} {
		if err := h.InsertMany(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("InsertMany(%T) = %v; want ErrArgument", arg, err)
		}
		if arg == any(p) {
			continue // which InsertGraph takes
		}
		if err := h.InsertGraph(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("InsertGraph(%T) = %v; want ErrArgument", arg, err)
		}
	}
	if err := h.InsertMany(ctx, db, "t", nilSlice); err == nil || !strings.Contains(err.Error(), "nil *[]") {
		t.Errorf("InsertMany(nil *[]pair) = %v; want it to say nil", err)
	}
	if p.ID != 0 {
		t.Errorf("key = %d; want none", p.ID)
	}
}

func TestNoRowsAreNoSQL(t *testing.T) {
	db, _ := newMock(t)
	h := newHelper(sqlxhelper.SQLite)
	var none []pair
	for _, arg := range []any{none, &none, []pair{}, []*pair{}, &[]*pair{}} {
		if err := h.InsertMany(ctx, db, "t", arg); err != nil {
			t.Errorf("InsertMany(%T{}) = %v; want nil", arg, err)
		}
		if err := h.InsertGraph(ctx, db, "t", arg); err != nil {
			t.Errorf("InsertGraph(%T{}) = %v; want nil", arg, err)
		}
	}
}

func TestChildrenAreOnlyInsertedByInsertGraph(t *testing.T) {
	db, mock := newMock(t)
	one := parent{inner: &inner{"n"}, Lines: make([]line, 2)}
	mock.ExpectExec(`INSERT INTO "t" ("id", "name") VALUES ($1, $2)`).WillReturnResult(done(1))
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "t", &one); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
	if one.Lines[0].ID != 0 {
		t.Errorf("key of the child = %d; want none", one.Lines[0].ID)
	}
}

func TestGraphIsWrittenTableByTableParentsFirst(t *testing.T) {
	db, mock := newMock(t)
	zero := types.Snowflake(0)
	root := parent{inner: &inner{"n"}}
	root.Lines = []line{{Tags: []*tagged{{LineID: &zero}, {}}}, {ParentID: 500, Tags: []*tagged{{LineID: &zero}}}}
	root.ID = 500
	root.One = &line{AfterID: types.NullSnowflake{Snowflake: 9}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "parents" ("id", "name") VALUES ($1, $2)`).WithArgs(500, "n").WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "lines" ("id", "parent_id", "after_id") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9)`).
		WithArgs(1, 500, nil, 2, 500, nil, 3, 500, nil).WillReturnResult(done(3))
	mock.ExpectExec(`INSERT INTO "tagged" ("id", "line_id") VALUES ($1, $2), ($3, $4), ($5, $6)`).
		WithArgs(4, 1, 5, 1, 6, 2).WillReturnResult(done(3))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "parents", &root); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
	if zero != 0 {
		t.Errorf("a shared foreign key was written through its pointer: %d", zero)
	}
}

// A table that is reached on two ways of different length is written after both.
func TestTableIsWrittenAfterAllThatReferToIt(t *testing.T) {
	type leaf struct {
		types.Model
		Top types.NullSnowflake `db:"top_id"`
		Mid types.NullSnowflake `db:"mid_id"`
	}
	type mid struct {
		types.Model
		Top    types.Snowflake `db:"top_id"`
		Leaves []leaf          `db:"-" snowkey:"leaves,fk=mid_id"`
	}
	type top struct {
		types.Model
		Leaves []leaf `db:"-" snowkey:"leaves,fk=top_id"`
		Mids   []mid  `db:"-" snowkey:"mids,fk=top_id"`
		Others []mid  `db:"-" snowkey:"others,fk=top_id"`
	}
	db, mock := newMock(t)
	tops := []top{{Leaves: make([]leaf, 1), Mids: []mid{{Leaves: make([]leaf, 1)}}, Others: []mid{{Leaves: make([]leaf, 1)}}}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "tops" ("id") VALUES ($1)`).WithArgs(1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "mids" ("id", "top_id") VALUES ($1, $2)`).WithArgs(3, 1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "others" ("id", "top_id") VALUES ($1, $2)`).WithArgs(4, 1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "leaves" ("id", "top_id", "mid_id") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9)`).
		WithArgs(2, 1, nil, 5, nil, 3, 6, nil, 4).WillReturnResult(done(3))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "tops", &tops); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

type branch struct {
	types.Model
	ParentID types.NullSnowflake `db:"parent_id"`
	Branches []branch            `db:"-" snowkey:"branches,fk=parent_id"`
}

// The order of the rows is what MySQL needs, which checks row by row.
func TestTreeIsOneStatementInLevelOrder(t *testing.T) {
	db, mock := newMock(t)
	tree := []branch{{Branches: []branch{{Branches: make([]branch, 1)}}}, {Branches: make([]branch, 1)}}
	mock.ExpectExec("INSERT INTO `branches` (`id`, `parent_id`) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)").
		WithArgs(1, nil, 2, nil, 3, 1, 4, 2, 5, 3).WillReturnResult(done(5))
	if err := newHelper(sqlxhelper.MySQL).InsertGraph(ctx, db, "branches", tree); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

type folder struct {
	types.Model
	FileID types.NullSnowflake `db:"file_id"`
	Files  []file              `db:"-" snowkey:"files,fk=folder_id"`
}

type file struct {
	types.Model
	FolderID types.Snowflake `db:"folder_id"`
	Folders  []folder        `db:"-" snowkey:"folders,fk=file_id"`
}

func TestCircleIsOneStatementPerTableAndLevel(t *testing.T) {
	db, mock := newMock(t)
	folders := []folder{{Files: []file{{Folders: []folder{{Files: make([]file, 2)}}}}}, {Files: make([]file, 1)}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "folders" ("id", "file_id") VALUES ($1, $2), ($3, $4)`).WithArgs(1, nil, 2, nil).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "files" ("id", "folder_id") VALUES ($1, $2), ($3, $4)`).WithArgs(3, 1, 4, 2).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "folders" ("id", "file_id") VALUES ($1, $2)`).WithArgs(5, 3).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "files" ("id", "folder_id") VALUES ($1, $2), ($3, $4)`).WithArgs(6, 5, 7, 5).WillReturnResult(done(2))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "folders", folders); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestInsertGraphOfAValueSaysToPassAPointer(t *testing.T) {
	h := sqlxhelper.New(newSource())
	db, _ := newMock(t)
	for want, arg := range map[string]any{
		"InsertGraph takes a *struct, a []struct or a []*struct; got sqlxhelper_test.Order: pass &row": Order{},
		"InsertGraph takes a *struct, a []struct or a []*struct; got []int":                            []int{1},
	} {
		if err := h.InsertGraph(ctx, db, "orders", arg); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("InsertGraph(%T) = %v; want it to end in %q", arg, err, want)
		}
	}
}
