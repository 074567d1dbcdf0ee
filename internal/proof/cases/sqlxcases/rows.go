package sqlxcases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

var ctx = context.Background()

// Run runs all cases. They use the database one after the other.
func Run(t *testing.T, d Database) {
	d.run(t, "RandomRowsAreStoredTogetherAsOneByOne", func(t *testing.T) { d.Alike(t, 1, 10) })
	d.run(t, "KeysOfEveryTypeAreFilledInEveryCallForRows", d.keyTypes)
	d.run(t, "FailureInALaterChunkLeavesNothingOnAPool", d.laterChunkOnPool)
	d.run(t, "FailureInALaterChunkLeavesTheTransactionUsable", d.laterChunkInTx)
	d.run(t, "FailureOfASingleStatementLeavesTheTransactionUsable", d.singleStatementInTx)
	d.run(t, "RowsThatAWrapperOfATransactionInsertsAreUndoneTogether", d.wrappedTx)
	d.run(t, "RowsGoThroughAPoolOfOneConnection", d.wrappedPool)
	d.run(t, "RetryAfterFailureWritesTheSameKeys", d.retry)
	d.run(t, "EndedContextLeavesNothing", d.endedContext)
	d.run(t, "CallsOnAPoolMayOverlap", d.concurrent)
	d.run(t, "GraphOfThreeLevelsIsReadBack", d.graph)
	d.run(t, "GraphTakesOneStatementPerTable", d.graphStatements)
	d.run(t, "FailureInTheLastTableOfAGraphLeavesNothing", d.graphFailure)
	d.run(t, "RowsThatReferToEachOtherAreStoredInAnyOrder", d.rowsThatReferToEachOther)
	d.run(t, "TreeIsInsertedParentsFirst", d.tree)
	d.run(t, "TypedKeysAreFilledThroughAGraph", d.typedGraph)
	d.run(t, "IntegerKeysAreFilledThroughAGraph", d.integerGraph)
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
	d.run(t, "ValueThatFailsIsAnErrorThatNamesIt", d.troubledValue)
	d.run(t, "NumberAboveTheColumnIsAnErrorThatNamesIt", d.unsignedValue)
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

// newRows returns n rows without keys that the table takes, numbered from 0.
func newRows(n int) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{N: i, A: fmt.Sprint("a", i), B: "b", C: "c", D: "d"}
	}
	return rows
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
