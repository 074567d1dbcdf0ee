package gormcases

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

var transactionCases = []testCase{
	{"RetriedTransactionWritesTheSameKeys", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Customer: &Customer{Email: "a@x"}, Items: []Item{{SKU: "1"}}, Labels: []Label{{Text: "l"}}}
		var keys []types.Snowflake
		attempts := 0
		// As after a deadlock: the same closure again, with the same structs.
		for attempts < 3 {
			err := e.db.Transaction(func(tx *gorm.DB) error {
				attempts++
				if err := tx.Create(&o).Error; err != nil {
					return err
				}
				keys = append(keys, o.ID, o.Customer.ID, o.Items[0].ID, o.Labels[0].ID)
				if attempts < 3 {
					return errRollback
				}
				return nil
			})
			if attempts < 3 && !errors.Is(err, errRollback) || attempts == 3 && err != nil {
				e.Fatalf("attempt %d = %v", attempts, err)
			}
		}
		for i, key := range keys {
			equal(e, fmt.Sprintf("key %d of attempt %d", i%4, i/4+1), key, keys[i%4])
		}
		e.stored("orders", "number", "A", o.ID)
		e.stored("customers", "email", "a@x", *o.CustomerID)
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
		e.count("labels", 1)
		equal(e, "keys asked for", e.src.given, 4)
	}},
	{"SavepointsLeaveMemoryRight", func(e *env) {
		e.migrate(orderModels...)
		kept, undone := Order{Number: "kept"}, Order{Number: "undone", Items: []Item{{SKU: "1"}}}
		err := e.db.Transaction(func(tx *gorm.DB) error {
			e.must(tx.Create(&kept))
			e.must(tx.SavePoint("here"))
			e.must(tx.Create(&undone))
			id := undone.ID
			e.must(tx.RollbackTo("here"))
			e.must(tx.Create(&undone))
			equal(e, "ID after RollbackTo", undone.ID, id)
			return tx.Transaction(func(tx *gorm.DB) error { // a savepoint of GORM's
				again := Order{Number: "kept", Items: []Item{{SKU: "2"}}}
				e.must(tx.Clauses(doNothing()).Create(&again))
				equal(e, "ID of what the same transaction has stored", again.ID, kept.ID)
				return nil
			})
		})
		if err != nil {
			e.Fatalf("Transaction = %v; want no error", err)
		}
		e.stored("orders", "number", "kept", kept.ID)
		e.stored("orders", "number", "undone", undone.ID)
		e.count("items", 2)
	}},
	{"KeyOfARowThatWasRolledBackIsGoodForTheNextTry", func(e *env) {
		e.migrate(orderModels...)
		first, met := Order{Number: "A"}, Order{Number: "A", Items: []Item{{SKU: "1"}}}
		err := e.db.Transaction(func(tx *gorm.DB) error {
			e.must(tx.Create(&first))
			e.must(tx.Clauses(doNothing()).Create(&met))
			return errRollback
		})
		if !errors.Is(err, errRollback) {
			e.Fatalf("Transaction = %v; want the error of its closure", err)
		}
		e.count("orders", 0)
		e.must(e.db.Clauses(doNothing()).Create(&met))
		e.stored("orders", "number", "A", met.ID)
		e.stored("items", "order_id", met.ID, met.Items[0].ID)
	}},
	{"DisabledNestedTransactionsChangeNothing", func(e *env) {
		db := e.withPlugin(&gorm.Config{DisableNestedTransaction: true})
		e.migrate(orderModels...)
		o, part := Order{Number: "A"}, Order{Number: "B", Items: []Item{{SKU: "1"}}}
		err := db.Transaction(func(tx *gorm.DB) error {
			e.must(tx.Create(&o))
			// Without a savepoint, what the closure has done stays.
			inner := tx.Transaction(func(tx *gorm.DB) error {
				e.must(tx.Create(&part))
				return errRollback
			})
			if !errors.Is(inner, errRollback) {
				e.Errorf("inner Transaction = %v; want the error of its closure", inner)
			}
			return nil
		})
		if err != nil {
			e.Fatalf("Transaction = %v; want no error", err)
		}
		e.stored("orders", "number", "A", o.ID)
		e.stored("orders", "number", "B", part.ID)
		e.stored("items", "order_id", part.ID, part.Items[0].ID)
	}},
	{"SourceErrorLeavesTheTransactionUsable", func(e *env) {
		e.migrate(orderModels...)
		o, next := Order{Number: "A"}, Order{Number: "B"}
		err := e.db.Transaction(func(tx *gorm.DB) error {
			e.src.failAt, e.src.err = 1, errSource
			e.fails(tx.Create(&o), errSource)
			e.src.failAt = 0
			return tx.Create(&next).Error
		})
		if err != nil {
			e.Fatalf("Transaction = %v; want no error, since the failed create has run no SQL", err)
		}
		e.stored("orders", "number", "B", next.ID)
		e.count("orders", 1)
	}},
	{"ToSQLShowsTheKeyThatACreateThenWrites", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		text := e.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&o) })
		e.fresh("ID", o.ID)
		if !strings.Contains(text, o.ID.String()) {
			e.Errorf("ToSQL = %s; want it to hold %d", text, o.ID)
		}
		e.count("orders", 0)
		id := o.ID
		e.must(e.db.Create(&o))
		equal(e, "ID", o.ID, id)
		e.stored("orders", "number", "A", id)
	}},
	{"ConcurrentUpsertsMeetTheSameRows", func(e *env) {
		e.migrate(orderModels...)
		const workers, each = 4, 6
		lists, errs := make([][]Order, workers), make(chan error, workers)
		for w := range workers {
			go func() {
				var err error
				for i := range each {
					o := Order{Number: fmt.Sprintf("%d-%d", w, i), Customer: &Customer{Email: fmt.Sprint(i % 3)}, Labels: []Label{{Text: fmt.Sprint(i % 2)}}}
					// A deadlock is the database's way to order them: the same
					// structs once more. Which of them loses how often is luck. The
					// limit only ends what would go on for ever.
					for range 500 {
						if err = e.db.Create(&o).Error; err == nil || !deadlock(err) {
							break
						}
					}
					if err != nil {
						break
					}
					lists[w] = append(lists[w], o)
				}
				errs <- err
			}()
		}
		for range workers {
			if err := <-errs; err != nil {
				e.Fatalf("Create = %v; want no error", err)
			}
		}
		e.count("customers", 3)
		e.count("labels", 2)
		for _, list := range lists {
			for _, o := range list {
				e.stored("orders", "number", o.Number, o.ID)
				e.stored("customers", "email", o.Customer.Email, *o.CustomerID)
				e.stored("labels", "text", o.Labels[0].Text, o.Labels[0].ID)
				equal(e, "stored CustomerID", e.keys("orders", "customer_id", "number", o.Number)[0], o.Customer.ID.Int64())
			}
		}
	}},
	{"InTxRunsAgainAfterADeadlock", func(e *env) {
		if e.db.Name() == "sqlite" {
			return // one transaction writes at a time
		}
		e.migrate(orderModels...)
		e.must(e.db.Create([]*Order{{Number: "1"}, {Number: "2"}}))
		var both, end sync.WaitGroup // have their first row in the first run
		both.Add(2)
		var runs atomic.Int64
		for i := range 2 {
			made := Order{Number: fmt.Sprint("made", i)}
			end.Go(func() {
				here := sync.OnceFunc(both.Done)
				defer here() // lets the other one go on if this one fails
				err := gormplugin.InTx(e.Context(), e.db, nil, func(tx *gorm.DB) error {
					runs.Add(1)
					for _, number := range []int{1 + i, 2 - i} {
						if err := tx.Model(&Order{}).Where("number = ?", fmt.Sprint(number)).Update("note", "met").Error; err != nil {
							return err
						}
						here()
						both.Wait()
					}
					return tx.Create(&made).Error
				})
				if err != nil {
					e.Errorf("InTx = %v; want no error", err)
				}
			})
		}
		end.Wait()
		// There may be more: a quick loser may lock its first row again before the winner has
		// noticed that it may.
		if runs.Load() < 3 {
			e.Errorf("%d runs; want 3 or more, one of them for the one that lost", runs.Load())
		}
		e.count("orders", 4)
	}},
	{"InTxRunsAgainAfterASerializationFailure", func(e *env) {
		if e.db.Name() != "postgres" {
			return // readers and writers wait for each other
		}
		e.migrate(orderModels...)
		serializable := &sql.TxOptions{Isolation: sql.LevelSerializable}
		e.must(e.db.Create(&Order{Number: "1"}))
		made, runs := Order{Number: "made"}, 0
		err := gormplugin.InTx(e.Context(), e.db, serializable, func(tx *gorm.DB) error {
			runs++
			var read Order
			if err := tx.Take(&read, "number = ?", "1").Error; err != nil {
				return err
			}
			if runs == 1 {
				other := gormplugin.InTx(e.Context(), e.db, serializable, func(tx *gorm.DB) error {
					return tx.Model(&Order{}).Where("number = ?", "1").Update("note", "met").Error
				})
				if other != nil {
					return errors.Join(errors.New("the other transaction"), other)
				}
			}
			made.Note = read.Note
			if err := tx.Create(&made).Error; err != nil {
				return err
			}
			return tx.Model(&read).Update("note", "read").Error
		})
		if err != nil || runs != 2 {
			e.Fatalf("InTx = %v after %d runs; want no error after 2", err, runs)
		}
		var read Order
		e.must(e.db.Take(&read, "number = ?", "made"))
		equal(e, "note that the last run has read", read.Note, "met")
		equal(e, "key", read.ID, made.ID)
	}},
	// PostgreSQL rolls back at COMMIT. On the other databases the failed create is undone alone.
	{"InTxIsNoSuccessWhereAnErrorThatWasIgnoredHasUndoneIt", func(e *env) {
		e.migrate(orderModels...)
		kept, runs := Order{Number: "kept"}, 0
		err := gormplugin.InTx(e.Context(), e.db, nil, func(tx *gorm.DB) error {
			runs++
			e.must(tx.Create(&kept))
			_ = tx.Create(&Order{Number: "kept"})
			return nil
		})
		equal(e, "runs", runs, 1)
		if e.db.Name() == "postgres" {
			if err == nil || errors.Is(err, gormplugin.ErrCommitUnknown) {
				e.Errorf("InTx = %v; want an error that is not ErrCommitUnknown", err)
			}
			e.count("orders", 0)
			return
		}
		if err != nil {
			e.Errorf("InTx = %v; want no error", err)
		}
		e.stored("orders", "number", "kept", kept.ID)
	}},
	// MySQL's second BEGIN would commit the first, and PostgreSQL's COMMIT end it. SQLite refuses it.
	{"InTxOnAConnectionInsideATransactionIsRefused", func(e *env) {
		e.migrate(orderModels...)
		err := e.db.Connection(func(one *gorm.DB) error {
			one = one.Session(&gorm.Session{NewDB: true, SkipDefaultTransaction: true})
			e.must(one.Exec("BEGIN"))
			e.must(one.Create(&Order{Number: "undone"}))
			err := gormplugin.InTx(e.Context(), one, nil, func(tx *gorm.DB) error { return tx.Create(&Order{Number: "A"}).Error })
			e.must(one.Exec("ROLLBACK"))
			return err
		})
		if !errors.Is(err, gormplugin.ErrInTransaction) {
			e.Errorf("InTx on a connection after BEGIN = %v; want ErrInTransaction", err)
		}
		e.count("orders", 0)
	}},
	{"InTxKeepsKeysInEveryRun", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Customer: &Customer{Email: "a@x"}, Items: []Item{{SKU: "1"}}, Labels: []Label{{Text: "l"}}}
		var keys [][4]types.Snowflake
		err := gormplugin.InTx(e.Context(), e.db, nil, func(tx *gorm.DB) error {
			if err := tx.Create(&o).Error; err != nil {
				return err
			}
			keys = append(keys, [4]types.Snowflake{o.ID, o.Customer.ID, o.Items[0].ID, o.Labels[0].ID})
			if len(keys) < 3 {
				return fmt.Errorf("mine: %w", conflict{})
			}
			return nil
		})
		if err != nil || len(keys) != 3 || keys[0] != keys[1] || keys[0] != keys[2] {
			e.Fatalf("InTx = %v with the keys %d; want no error and the same keys in three runs", err, keys)
		}
		e.stored("orders", "number", "A", o.ID)
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
		equal(e, "keys asked for", e.src.given, 4)
	}},
}

// conflict is an error that makes InTx run again on any database.
type conflict struct{}

func (conflict) Error() string    { return "could not serialize access" }
func (conflict) SQLState() string { return "40001" }

func deadlock(err error) bool {
	for _, text := range []string{"Deadlock found", "deadlock detected", "Record has changed since last read", "pessimistic lock retry limit reached"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
