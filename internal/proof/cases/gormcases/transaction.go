package gormcases

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
)

var transactionCases = []testCase{
	{"ConcurrentUpsertsMeetTheSameRows", func(e *env) {
		e.migrate(orderModels...)
		const workers, each = 4, 6
		lists := make([][]Order, workers)
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := range each {
					o := Order{Number: fmt.Sprintf("%d-%d", w, i), Customer: &Customer{Email: fmt.Sprint(i % 3)}, Labels: []Label{{Text: fmt.Sprint(i % 2)}}}
					// A deadlock is the database's way to order them: the same
					// structs once more. Which of them loses how often is luck. The
					// limit only ends what would go on for ever.
					err := e.db.Create(&o).Error
					for again := 0; again < 500 && err != nil && deadlock(err); again++ {
						err = e.db.Create(&o).Error
					}
					if err != nil {
						e.Errorf("Create = %v; want no error", err)
						return
					}
					lists[w] = append(lists[w], o)
				}
			})
		}
		group.Wait()
		e.count("customers", 3)
		e.count("labels", 2)
		for _, list := range lists {
			e.matches(&list)
		}
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
}

func deadlock(err error) bool {
	for _, text := range []string{"Deadlock found", "deadlock detected", "Record has changed since last read", "pessimistic lock retry limit reached"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
