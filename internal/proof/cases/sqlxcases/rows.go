package sqlxcases

import (
	"context"
	"sync"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
)

var ctx = context.Background()

// Run runs all cases. They use the database one after the other.
func Run(t *testing.T, d Database) {
	d.run(t, "RandomRowsAreStoredTogetherAsOneByOne", func(t *testing.T) { d.Alike(t, 1, 10) })
	d.run(t, "CallThatFailsLeavesNothingAndTheTransactionUsable", d.faults)
	d.run(t, "GraphsAreStoredAsTheyAreLinked", d.graphs)
	d.run(t, "RandomUpsertsGiveEachRowTheKeyOfTheStoredOne", d.upserts)
	d.run(t, "RowsThatReferToEachOtherAreStoredInAnyOrder", d.rowsThatReferToEachOther)
	d.run(t, "RowsLargerTogetherThanAStatementAreAllInserted", d.largeRows)
	d.run(t, "CallsOnAPoolMayOverlap", d.concurrent)
	d.run(t, "UpsertFindsRowsByWhatTheColumnHasMadeOfTheirValues", d.upsertConverted)
	d.run(t, "UpsertGoesByAllColumnsOfTheTargetAndComesAfterWhatItsRowsBelongTo", d.upsertOfTenants)
	d.run(t, "UpsertRefusesChildrenOnAnotherShardThanTheStoredParent", d.shardedUpsert)
	d.run(t, "ColumnsThatAreLeftOutAreReadBack", d.omitAndReturn)
	d.run(t, "ReturningReadsTheStoredRowOfAnUpsert", d.returnUpserted)
	d.run(t, "NullForAPlainFieldUndoesTheCall", d.returnNull)
	d.run(t, "SequenceOfRowsOfItsTransactionHasAHint", d.sequenceOfItsTransaction)
	d.run(t, "ConnectionInsideOfATransactionIsRefused", d.connectionInTransaction)
	if d.Dialect != sqlxhelper.SQLite { // which has one writer at a time, and whose savepoint begins a transaction
		d.run(t, "UpsertFindsRowsThatAreYoungerThanTheTransaction", d.upsertAfterSnapshot)
		d.run(t, "WithinOutsideOfATransactionIsAnError", d.withinNone)
		d.run(t, "DeadlockIsRunAgain", d.deadlock)
	}
	if d.Dialect != sqlxhelper.MySQL { // which has no deferred constraint, names no target, and has no index with a condition
		d.run(t, "CommitThatFailsIsAnErrorAndLeavesNothing", d.failedCommit)
		d.run(t, "IndexWithAConditionOrAnExpressionIsNoTarget", d.upsertOddIndex)
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
