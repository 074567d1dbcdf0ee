package main

import (
	"context"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	bunschema "github.com/uptrace/bun/schema"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// The peers get the same pool, and use it as their documentation shows.

// peerBatch is how many rows the peers get at once. At the limit of bound values all of them
// are slower, on every database here.
const peerBatch = 1000

const (
	insertOrder = "INSERT INTO orders (id, number, total, created_at) VALUES (:id, :number, :total, :created_at)"
	insertItem  = "INSERT INTO order_items (id, order_id, sku, quantity, price, created_at) VALUES (:id, :order_id, :sku, :quantity, :price, :created_at)"
)

func namedLines(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return j.inTx(ctx, func(tx *sqlx.Tx) error {
			for chunk := range slices.Chunk(j.items, peerBatch) {
				if _, err := tx.NamedExecContext(ctx, insertItem, chunk); err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

func namedGraph(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return j.inTx(ctx, func(tx *sqlx.Tx) error {
			for i := range j.orders {
				if _, err := tx.NamedExecContext(ctx, insertOrder, &j.orders[i]); err != nil {
					return err
				}
				if _, err := tx.NamedExecContext(ctx, insertItem, j.orders[i].Items); err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

// openGORM gives GORM the pool, and has it learn the models.
func openGORM(ctx context.Context, j *job) (*gorm.DB, error) {
	var dialector gorm.Dialector
	switch j.dialect {
	case "sqlite":
		dialector = gormsqlite.New(gormsqlite.Config{Conn: j.db.DB})
	case "postgres":
		dialector = gormpostgres.New(gormpostgres.Config{Conn: j.db.DB})
	default:
		dialector = gormmysql.New(gormmysql.Config{Conn: j.db.DB})
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, CreateBatchSize: peerBatch})
	if err != nil {
		return nil, err
	}
	statement := &gorm.Statement{DB: db}
	return db.WithContext(ctx), errors.Join(statement.Parse(&order{}), statement.Parse(&item{}))
}

func gormLines(ctx context.Context, j *job) (load, error) {
	db, err := openGORM(ctx, j)
	return load{run: func() error { return db.CreateInBatches(j.items, peerBatch).Error }}, err
}

func gormGraph(ctx context.Context, j *job) (load, error) {
	db, err := openGORM(ctx, j)
	return load{run: func() error { return db.Create(j.orders).Error }}, err
}

// openBun gives bun the pool, and has it learn the models.
func openBun(j *job) *bun.DB {
	var d bunschema.Dialect
	switch j.dialect {
	case "sqlite":
		d = sqlitedialect.New()
	case "postgres":
		d = pgdialect.New()
	default:
		d = mysqldialect.New()
	}
	db := bun.NewDB(j.db.DB, d)
	db.RegisterModel((*order)(nil), (*item)(nil))
	return db
}

func bunLines(ctx context.Context, j *job) (load, error) {
	db := openBun(j)
	return load{run: func() error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			return bunInsert(ctx, tx, "order_items", j.items)
		})
	}}, nil
}

func bunGraph(ctx context.Context, j *job) (load, error) {
	db := openBun(j)
	return load{run: func() error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := bunInsert(ctx, tx, "orders", j.orders); err != nil {
				return err
			}
			return bunInsert(ctx, tx, "order_items", j.items)
		})
	}}, nil
}

func bunInsert[T any](ctx context.Context, tx bun.Tx, table string, rows []T) error {
	for chunk := range slices.Chunk(rows, peerBatch) {
		if _, err := tx.NewInsert().Model(&chunk).ModelTableExpr(table).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
