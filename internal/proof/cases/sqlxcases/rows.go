package sqlxcases

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

var ctx = context.Background()

// Run runs all cases. They use the database one after the other.
func Run(t *testing.T, d Database) {
	d.run(t, "EveryKindOfFieldIsReadBackEqual", d.everyKindOfField)
	d.run(t, "RowsOfEveryChunkSizeAreAllInserted", d.everyChunkSize)
	d.run(t, "KeysThatAreSetAreKeptAndTheRestIsFilledAtOnce", d.keysKept)
	d.run(t, "FailureInALaterChunkLeavesNothingOnAPool", d.laterChunkOnPool)
	d.run(t, "FailureInALaterChunkLeavesTheTransactionUsable", d.laterChunkInTx)
	d.run(t, "FailureOfASingleStatementLeavesTheTransactionUsable", d.singleStatementInTx)
	d.run(t, "RowsThatAWrapperOfATransactionInsertsAreUndoneTogether", d.wrappedTx)
	d.run(t, "RowsGoThroughAPoolOfOneConnection", d.wrappedPool)
	d.run(t, "RetryAfterFailureWritesTheSameKeys", d.retry)
	d.run(t, "EndedContextLeavesNothing", d.endedContext)
	d.run(t, "CallsOnAPoolMayOverlap", d.concurrent)
	d.run(t, "NarrowAndWideRowsAreAllInserted", d.widths)
	d.run(t, "GraphOfThreeLevelsIsReadBack", d.graph)
	d.run(t, "GraphTakesOneStatementPerTable", d.graphStatements)
	d.run(t, "FailureInTheLastTableOfAGraphLeavesNothing", d.graphFailure)
	d.run(t, "RowsThatReferToEachOtherAreStoredInAnyOrder", d.rowsThatReferToEachOther)
	d.run(t, "TreeIsInsertedParentsFirst", d.tree)
	d.run(t, "TypedKeysAreFilledThroughAGraph", d.typedGraph)
	d.run(t, "TypedKeysAreFilledInEveryCallForRows", d.typedRows)
	d.run(t, "IntegerKeysAreFilledThroughAGraph", d.integerGraph)
	d.run(t, "IntegerKeysAreFilledInEveryCallForRows", d.integerRows)
	d.run(t, "KeysOfTheProgramMayBeBelowZero", d.integersBelowZero)
	d.run(t, "GraphIsOnTheShardOfTheTagOfItsRoot", d.shardedGraph)
	d.run(t, "RowsAreOnTheShardsOfTheirTagsInEveryCall", d.shardedRows)
	d.run(t, "IntegerKeysAreOnTheShardsOfTheirTags", d.shardedIntegers)
	d.run(t, "RetryWritesRowsOnTheSameShards", d.shardedRetry)
	d.run(t, "TablesInACircleAreInsertedLevelByLevel", d.circle)
	d.run(t, "RowsToWhichOthersBelongAreInsertedFirstAndOnce", d.belongsTo)
	d.run(t, "RowsToWhichOthersBelongTakeOneStatementPerTable", d.belongsToStatements)
	d.run(t, "TablesInACircleOfOwnersAreInsertedLevelByLevel", d.circleOfOwners)
	d.run(t, "KeyOfAnotherNameServesEveryCall", d.namedKey)
	d.run(t, "KeyIsOneColumnOfAPrimaryKeyOfSeveral", d.compositeKey)
	d.run(t, "EveryTypeOfColumnIsReadBackEqual", d.everyType)
	d.run(t, "ValueThatFailsIsAnErrorThatNamesIt", d.troubledValue)
	d.run(t, "NumberAboveTheColumnIsAnErrorThatNamesIt", d.unsignedValue)
	d.run(t, "GeneratedAndDefaultedColumnsAreLeftToTheDatabase", d.generatedColumns)
	d.run(t, "NamesAreThoseOfTheMapperOfTheHandle", d.customMapper)
	d.run(t, "ErrorNamesTheRowThatViolatesAConstraint", d.faultyRow)
	d.run(t, "ErrorNamesOneOfTwoRowsThatAreAlike", d.twins)
	d.run(t, "ErrorNamesTheChildByItsPlaceInTheGraph", d.faultyChild)
	d.run(t, "RowsLargerTogetherThanAStatementAreAllInserted", d.largeRows)
	d.run(t, "ContextThatEndsBetweenChunksLeavesNothing", d.endedBetween)
	d.upserts(t)
	d.run(t, "ColumnsThatAreLeftOutAreReadBack", d.omitAndReturn)
	d.run(t, "ReturningWithoutNamesReadsAllColumns", d.returnAll)
	d.run(t, "ReturningReadsTheStoredRowOfAnUpsert", d.returnUpserted)
	d.run(t, "NullForAPlainFieldUndoesTheCall", d.returnNull)
	d.run(t, "ProgressCountsUpToAllRows", d.progress)
	d.run(t, "SequenceIsStoredWholeOrNotAtAll", d.sequences)
	d.run(t, "RowsOfASequenceAreStoredAsTheyWereYielded", d.reusedMemory)
	d.run(t, "SequenceThatFailsLeavesTheTransactionUsable", d.sequencesInTx)
	d.run(t, "ConnectionIsAPoolOfOne", d.connection)
	d.run(t, "SequenceOfRowsOfItsTransactionHasAHint", d.sequenceOfItsTransaction)
	d.run(t, "ConnectionInsideOfATransactionIsRefused", d.connectionInTransaction)
	d.run(t, "InTxCommits", d.inTxCommits)
	d.run(t, "InTxRollsBackOnErrorAndOnPanic", d.inTxRollsBack)
	d.run(t, "CallbackThatDoesNotReturnLeavesNothing", d.departures)
	d.run(t, "InTxRunsAgainWithTheSameKeys", d.runsAgain)
	d.run(t, "WithinIsInTheTransactionOfItsHandle", d.within)
	if d.Dialect != sqlxhelper.SQLite { // where the savepoint begins a transaction that nobody ends
		d.run(t, "WithinOutsideOfATransactionIsAnError", d.withinNone)
	}
	if d.Dialect != sqlxhelper.SQLite { // which has one writer at a time
		d.run(t, "DeadlockIsRunAgain", d.deadlock)
	}
	if d.Dialect == sqlxhelper.PostgreSQL { // the others wait for locks instead
		d.run(t, "SerializationFailureIsRunAgain", d.serialization)
	}
	if d.Dialect != sqlxhelper.MySQL { // which has no constraint that is checked at the commit
		d.run(t, "CommitThatFailsIsAnErrorAndLeavesNothing", d.failedCommit)
	}
}

func (d Database) upserts(t *testing.T) {
	d.run(t, "UpsertGivesEveryRowTheKeyOfTheStoredOne", d.upsertMix)
	d.run(t, "UpsertOfManyRowsGivesEachItsKey", d.upsertMany)
	d.run(t, "RowsOfOneCallMayBeTheSameRow", d.upsertTwice)
	d.run(t, "DatabaseDecidesWhatIsTheSame", d.upsertCollation)
	d.run(t, "RowWithNullInTheTargetIsInserted", d.upsertNull)
	d.run(t, "TargetMayBeThePrimaryKey", d.upsertByKey)
	d.run(t, "ChildrenOfAnUpsertFollowTheStoredParent", d.upsertGraph)
	d.run(t, "ChildrenOfAnUpsertAreOnTheShardOfTheStoredParent", d.shardedUpsert)
	d.run(t, "UpsertRefusesChildrenOnAnotherShardThanTheStoredParent", d.shardedUpsertRefused)
	d.run(t, "UpsertComesAfterWhatItsRowsBelongTo", d.upsertBelonging)
	d.run(t, "FailureAfterAnUpsertRestoresTheKeys", d.upsertFailure)
	d.run(t, "UpsertRefusesRowsThatAreStoredInAnotherIndex", d.upsertOtherIndex)
	if d.Dialect != sqlxhelper.SQLite { // which lets nobody else write meanwhile
		d.run(t, "UpsertFindsRowsThatAreYoungerThanTheTransaction", d.upsertAfterSnapshot)
	}
	d.run(t, "UpsertFindsTimesInThePrecisionOfTheColumn", d.upsertByTime)
	d.run(t, "UpsertFindsRowsByWhatTheColumnHasMadeOfTheirValues", d.upsertConverted)
	d.run(t, "UpsertsInATransactionSeeEachOther", d.upsertInTx)
	d.run(t, "UpsertFindsRowsByAColumnThatIgnoresCase", d.upsertIgnoringCase)
	if d.Dialect != sqlxhelper.MySQL { // which names no target, and has no index with a condition
		d.run(t, "IndexWithAConditionOrAnExpressionIsNoTarget", d.upsertOddIndex)
	}
}

func (d Database) everyKindOfField(t *testing.T) {
	quote := `"`
	if d.Dialect == sqlxhelper.MySQL {
		quote = "`"
	}
	d.tables(t, fmt.Sprintf(everythingTable, quote, quote, quote, quote))
	at := time.Date(2024, 2, 29, 12, 30, 45, 123456000, time.UTC)
	other, text := types.Snowflake(9), "c"
	rows := []everything{
		{
			Model: types.Model{ID: 1 << 62}, Order: `why? :a $1 '12:30' "x" \ ::int`, Group: sql.NullString{String: "g?", Valid: true},
			Count: -7, Price: 1.25, Paid: true, Data: []byte{0, 255, '?'}, JSON: json.RawMessage(`{"a":["?"]}`), At: at, Maybe: &at,
			Comment: &text, Parent: types.NullSnowflake{Snowflake: 8, Valid: true}, Other: &other, Status: "new",
		},
		{Order: "", At: at, Data: []byte{}, JSON: json.RawMessage(`1`)},
	}
	h := sqlxhelper.New(NewCounter(100))
	if err := h.InsertMany(ctx, d.DB, "everything", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	one := rows[0]
	one.ID = 0
	if err := h.Insert(ctx, d.DB, "everything", &one); err != nil {
		t.Fatalf("Insert() = %v; want nil", err)
	}
	if rows[0].ID != 1<<62 || rows[1].ID != 101 || one.ID != 102 {
		t.Errorf("keys = %d, %d, %d; want 1<<62, 101, 102", rows[0].ID, rows[1].ID, one.ID)
	}
	for _, want := range append(rows, one) {
		var got everything
		if err := d.DB.Get(&got, fmt.Sprintf("SELECT * FROM everything WHERE id = %d", want.ID)); err != nil {
			t.Fatalf("Get(%d) = %v", want.ID, err)
		}
		wantEverything(t, got, want)
	}
}

// wantEverything fails the test unless two rows are equal, times as instants.
func wantEverything(t *testing.T, got, want everything) {
	t.Helper()
	if !got.At.Equal(want.At) || (got.Maybe == nil) != (want.Maybe == nil) || want.Maybe != nil && !got.Maybe.Equal(*want.Maybe) {
		t.Errorf("times of %d = %v, %v; want %v, %v", want.ID, got.At, got.Maybe, want.At, want.Maybe)
	}
	if !bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.JSON, want.JSON) {
		t.Errorf("bytes of %d = %x, %s; want %x, %s", want.ID, got.Data, got.JSON, want.Data, want.JSON)
	}
	got.At, got.Maybe, got.Data, got.JSON = want.At, want.Maybe, want.Data, want.JSON
	if !reflect.DeepEqual(got, want) {
		t.Errorf("row %d = %+v; want %+v", want.ID, got, want)
	}
}

// newRows returns n rows without keys that the table takes, numbered from 0.
func newRows(n int) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{N: i, A: fmt.Sprint("a", i), B: "b", C: "c", D: "d"}
	}
	return rows
}

func (d Database) everyChunkSize(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	for _, n := range []int{0, 1, 2, 32, 33, 49, 50, 51, 99, 100, 101, 150, 499, 500, 501, 1000, 1203} {
		rows := newRows(n)
		pointers := make([]*row, n)
		for i := range rows {
			pointers[i] = &rows[i]
		}
		for _, arg := range []any{rows, &rows, pointers, &pointers} {
			for i := range rows {
				rows[i].ID = 0
			}
			if err := h.InsertMany(ctx, d.DB, "many_rows", arg); err != nil {
				t.Fatalf("InsertMany(%T of %d) = %v; want nil", arg, n, err)
			}
			var got []row
			if err := d.DB.Select(&got, "SELECT * FROM many_rows ORDER BY n"); err != nil {
				t.Fatal(err)
			}
			if len(got) != n || n > 0 && !reflect.DeepEqual(got, rows) {
				t.Errorf("InsertMany(%T of %d): %d rows, equal to those given: %v; want all", arg, n, len(got), reflect.DeepEqual(got, rows))
			}
			d.exec(t, "DELETE FROM many_rows")
		}
	}
}

func (d Database) keysKept(t *testing.T) {
	d.tables(t, rowsTable)
	src := NewCounter(1000)
	rows := newRows(130)
	for i := range rows {
		if i%3 == 0 {
			rows[i].ID = types.Snowflake(i + 1)
		}
	}
	if err := sqlxhelper.New(src).InsertMany(ctx, d.DB, "many_rows", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	next := types.Snowflake(1001)
	for i := range rows {
		want := types.Snowflake(i + 1)
		if i%3 != 0 {
			want, next = next, next+1
		}
		if rows[i].ID != want {
			t.Fatalf("key of row %d = %d; want %d", i, rows[i].ID, want)
		}
	}
	if !reflect.DeepEqual(src.fills, []int{86}) {
		t.Errorf("Fill was called with %v keys; want once with 86", src.fills)
	}
	d.wantCount(t, "many_rows", 130)
}

// The places of a row in badRows that the database refuses. On every dialect they
// are in later statements: a prepared one, and the last.
const (
	badInPrepared = 700
	badInLast     = 1202
)

func badRows(at int) []row {
	rows := newRows(1203)
	rows[at].N = -1
	return rows
}

func (d Database) laterChunkOnPool(t *testing.T) {
	d.tables(t, rowsTable)
	for _, at := range []int{badInPrepared, badInLast} {
		if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "many_rows", badRows(at)); err == nil {
			t.Errorf("InsertMany(rows with a bad one at %d) = nil; want an error", at)
		}
		d.wantCount(t, "many_rows", 0)
	}
}

// usableAfter fails InsertMany of rows in a transaction that gets a row before and
// one after. It expects to find these two.
func (d Database) usableAfter(t *testing.T, wrap func(*sqlx.Tx) sqlxhelper.DB, rows any) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	tx := d.begin(t)
	db := wrap(tx)
	if err := h.Insert(ctx, db, "many_rows", &row{}); err != nil {
		t.Fatalf("Insert before = %v; want nil", err)
	}
	err := h.InsertMany(ctx, db, "many_rows", rows)
	if err == nil || errors.Is(err, sqlxhelper.ErrTxBroken) {
		t.Fatalf("InsertMany(rows with a bad one) = %v; want the database's error", err)
	}
	if err := h.Insert(ctx, db, "many_rows", &row{}); err != nil {
		t.Fatalf("Insert after = %v; want nil", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatalf("Commit() = %v; want nil", err)
	}
	d.wantCount(t, "many_rows", 2)
}

func plain(tx *sqlx.Tx) sqlxhelper.DB { return tx }

func (d Database) laterChunkInTx(t *testing.T) {
	t.Run("Prepared", func(t *testing.T) { d.usableAfter(t, plain, badRows(badInPrepared)) })
	t.Run("Last", func(t *testing.T) { d.usableAfter(t, plain, badRows(badInLast)) })
}

func (d Database) singleStatementInTx(t *testing.T) {
	d.usableAfter(t, plain, []row{{N: 1}, {N: -1}, {N: 2}})
}

func (d Database) wrappedTx(t *testing.T) {
	for name, wrap := range map[string]func(*sqlx.Tx) sqlxhelper.DB{
		"Pointer": func(tx *sqlx.Tx) sqlxhelper.DB { return struct{ *sqlx.Tx }{tx} },
		"DB":      func(tx *sqlx.Tx) sqlxhelper.DB { return &around{tx} },
	} {
		t.Run(name, func(t *testing.T) { d.usableAfter(t, wrap, badRows(badInPrepared)) })
	}
}

func (d Database) wrappedPool(t *testing.T) {
	d.tables(t, rowsTable)
	// A call that took a second connection would wait for it for ever.
	d.DB.SetMaxOpenConns(1)
	defer d.DB.SetMaxOpenConns(0)
	h := sqlxhelper.New(NewCounter(0))
	for i, db := range []sqlxhelper.DB{d.DB, struct{ *sqlx.DB }{d.DB}, around{d.DB}} {
		if err := h.InsertMany(ctx, db, "many_rows", badRows(badInLast)); err == nil {
			t.Errorf("InsertMany(%T, rows with a bad one) = nil; want an error", db)
		}
		d.wantCount(t, "many_rows", i*1203)
		if err := h.InsertMany(ctx, db, "many_rows", newRows(1203)); err != nil {
			t.Errorf("InsertMany(%T) = %v; want nil", db, err)
		}
		d.wantCount(t, "many_rows", (i+1)*1203)
	}
}

func (d Database) retry(t *testing.T) {
	d.tables(t, rowsTable)
	src := NewCounter(0)
	h := sqlxhelper.New(src)
	rows := badRows(badInLast)
	if err := h.InsertMany(ctx, d.DB, "many_rows", rows); err == nil {
		t.Fatal("InsertMany(rows with a bad one) = nil; want an error")
	}
	keys := make([]types.Snowflake, len(rows))
	for i := range rows {
		if keys[i] = rows[i].ID; keys[i] == 0 {
			t.Fatalf("key of row %d after the failure = 0; want it set", i)
		}
	}
	rows[badInLast].N = badInLast
	if err := h.InsertMany(ctx, d.DB, "many_rows", rows); err != nil {
		t.Fatalf("InsertMany(again) = %v; want nil", err)
	}
	for i := range rows {
		if rows[i].ID != keys[i] {
			t.Fatalf("key of row %d = %d, then %d; want the same", i, keys[i], rows[i].ID)
		}
	}
	// As if the answer to the commit had been lost.
	if err := h.InsertMany(ctx, d.DB, "many_rows", rows); err == nil {
		t.Error("InsertMany(rows that are stored) = nil; want a duplicate key")
	}
	d.wantCount(t, "many_rows", len(rows))
	if len(src.fills) != 1 {
		t.Errorf("keys were taken %d times; want 1", len(src.fills))
	}
}

func (d Database) endedContext(t *testing.T) {
	d.tables(t, rowsTable)
	for _, n := range []int{1, 10, 1203} {
		ctx, cancel := context.WithCancel(ctx)
		src := NewCounter(0)
		src.after = cancel
		rows := newRows(n)
		tx := d.begin(t)
		for _, db := range []sqlxhelper.DB{d.DB, tx} {
			if err := sqlxhelper.New(src).InsertMany(ctx, db, "many_rows", rows); !errors.Is(err, context.Canceled) {
				t.Errorf("InsertMany(%T, %d rows, ended context) = %v; want context.Canceled", db, n, err)
			}
		}
		if rows[n-1].ID == 0 {
			t.Error("the keys that were taken are lost")
		}
		cancel()
		// The context was not that of the transaction, which goes on.
		if err := sqlxhelper.New(NewCounter(0)).Insert(context.Background(), tx, "many_rows", &row{}); err != nil {
			t.Errorf("Insert after = %v; want nil", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Errorf("Rollback() = %v; want nil", err)
		}
		d.wantCount(t, "many_rows", 0)
	}
}

func (d Database) concurrent(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := h.InsertMany(ctx, d.DB, "many_rows", newRows(120)); err != nil {
				t.Errorf("InsertMany() = %v; want nil", err)
			}
		})
	}
	wg.Wait()
	d.wantCount(t, "many_rows", 480)
}

func (d Database) widths(t *testing.T) {
	narrow := make([]types.Model, 3500)
	d.tables(t, "CREATE TABLE narrow (id BIGINT PRIMARY KEY)")
	h := sqlxhelper.New(NewCounter(0))
	if err := h.InsertMany(ctx, d.DB, "narrow", narrow); err != nil {
		t.Errorf("InsertMany(rows of one column) = %v; want nil", err)
	}
	d.wantCount(t, "narrow", len(narrow))

	// 400 columns: more than SQLite's chunk of 300 values, in one row.
	fields := []reflect.StructField{{Name: "ID", Type: reflect.TypeFor[types.Snowflake](), Tag: `db:"id"`}}
	ddl := "CREATE TABLE wide (id BIGINT PRIMARY KEY"
	for i := range 399 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[int](), Tag: reflect.StructTag(fmt.Sprintf(`db:"f%d"`, i))})
		ddl += fmt.Sprintf(", f%d INTEGER", i)
	}
	d.tables(t, ddl+")")
	wide := reflect.MakeSlice(reflect.SliceOf(reflect.StructOf(fields)), 20, 20)
	if err := h.InsertMany(ctx, d.DB, "wide", wide.Interface()); err != nil {
		t.Errorf("InsertMany(rows of 400 columns) = %v; want nil", err)
	}
	d.wantCount(t, "wide", 20)
}

func (d Database) inTxCommits(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	err := sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
		return errors.Join(
			h.InsertMany(ctx, tx, "many_rows", newRows(120)),
			h.Insert(ctx, tx, "many_rows", &row{}))
	})
	if err != nil {
		t.Errorf("InTx() = %v; want nil", err)
	}
	d.wantCount(t, "many_rows", 121)
}

func (d Database) inTxRollsBack(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	mine := errors.New("mine")
	err := sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
		return errors.Join(h.InsertMany(ctx, tx, "many_rows", newRows(120)), mine)
	})
	if !errors.Is(err, mine) {
		t.Errorf("InTx(fn that fails) = %v; want its error", err)
	}
	d.wantCount(t, "many_rows", 0)
	func() {
		defer func() {
			if got := recover(); got != mine {
				t.Errorf("InTx(fn that panics) panicked with %v; want %v", got, mine)
			}
		}()
		_ = sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
			if err := h.InsertMany(ctx, tx, "many_rows", newRows(120)); err != nil {
				t.Errorf("InsertMany() = %v; want nil", err)
			}
			panic(mine)
		})
	}()
	d.wantCount(t, "many_rows", 0)
}

func (d Database) failedCommit(t *testing.T) {
	d.tables(t, "CREATE TABLE late (id BIGINT PRIMARY KEY, other_id BIGINT REFERENCES late (id) DEFERRABLE INITIALLY DEFERRED)")
	type late struct {
		types.Model
		OtherID types.Snowflake `db:"other_id"`
	}
	rows := make([]late, 3600)
	for i := range rows {
		rows[i].OtherID = 1
	}
	if err := sqlxhelper.New(NewCounter(1)).InsertMany(ctx, d.DB, "late", rows); err == nil {
		t.Error("InsertMany(rows that the commit refuses) = nil; want an error")
	}
	d.wantCount(t, "late", 0)
	rows[0].ID = 1 // which all refer to
	if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "late", rows); err != nil {
		t.Errorf("InsertMany(again, mended) = %v; want nil", err)
	}
	d.wantCount(t, "late", len(rows))
}
