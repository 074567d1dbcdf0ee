package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
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

	"github.com/snowkey/snowkey/internal/sqlxbench/ent"
)

// The peers get the same pool, and use it as their documentation shows.

const (
	insertOrder = "INSERT INTO orders (id, number, total, created_at) VALUES (:id, :number, :total, :created_at)"
	insertItem  = "INSERT INTO order_items (id, order_id, sku, quantity, price, created_at) VALUES (:id, :order_id, :sku, :quantity, :price, :created_at)"
)

func namedLines(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return j.inTx(ctx, func(tx *sqlx.Tx) error {
			for chunk := range slices.Chunk(j.items, batch) {
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
	switch j.family {
	case sqlite:
		dialector = gormsqlite.New(gormsqlite.Config{Conn: j.db.DB})
	case postgres:
		dialector = gormpostgres.New(gormpostgres.Config{Conn: j.db.DB})
	default:
		dialector = gormmysql.New(gormmysql.Config{Conn: j.db.DB})
	}
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, CreateBatchSize: batch})
	if err != nil {
		return nil, err
	}
	statement := &gorm.Statement{DB: db}
	return db.WithContext(ctx), errors.Join(statement.Parse(&order{}), statement.Parse(&item{}))
}

func gormLines(ctx context.Context, j *job) (load, error) {
	db, err := openGORM(ctx, j)
	return load{run: func() error { return db.CreateInBatches(j.items, batch).Error }}, err
}

func gormGraph(ctx context.Context, j *job) (load, error) {
	db, err := openGORM(ctx, j)
	return load{run: func() error { return db.Create(j.orders).Error }}, err
}

// openBun gives bun the pool, and has it learn the models.
func openBun(j *job) *bun.DB {
	var d bunschema.Dialect
	switch j.family {
	case sqlite:
		d = sqlitedialect.New()
	case postgres:
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
	for chunk := range slices.Chunk(rows, batch) {
		if _, err := tx.NewInsert().Model(&chunk).ModelTableExpr(table).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openEnt gives ent the pool.
func openEnt(j *job) *ent.Client {
	name := map[family]string{sqlite: dialect.SQLite, postgres: dialect.Postgres, mariaDB: dialect.MySQL}[j.family]
	return ent.NewClient(ent.Driver(entsql.OpenDB(name, j.db.DB)))
}

// entTx is what ent's documentation calls WithTx.
func entTx(ctx context.Context, client *ent.Client, store func(*ent.Tx) error) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	if err := store(tx); err != nil {
		if rollback := tx.Rollback(); !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, rollback)
		}
		return err
	}
	return tx.Commit()
}

func entLines(ctx context.Context, j *job) (load, error) {
	client := openEnt(j)
	return load{run: func() error {
		return entTx(ctx, client, func(tx *ent.Tx) error { return entItems(ctx, tx, j.items) })
	}}, nil
}

func entGraph(ctx context.Context, j *job) (load, error) {
	client := openEnt(j)
	return load{run: func() error {
		return entTx(ctx, client, func(tx *ent.Tx) error {
			for chunk := range slices.Chunk(j.orders, batch) {
				builders := make([]*ent.OrderCreate, len(chunk))
				for i, o := range chunk {
					builders[i] = tx.Order.Create().SetID(o.ID).SetNumber(o.Number).SetTotal(o.Total).SetCreatedAt(o.CreatedAt)
				}
				if err := tx.Order.CreateBulk(builders...).Exec(ctx); err != nil {
					return err
				}
			}
			return entItems(ctx, tx, j.items)
		})
	}}, nil
}

func entItems(ctx context.Context, tx *ent.Tx, items []item) error {
	for chunk := range slices.Chunk(items, batch) {
		builders := make([]*ent.ItemCreate, len(chunk))
		for i, it := range chunk {
			builders[i] = tx.Item.Create().SetID(it.ID).SetOrderID(it.OrderID).SetSku(it.SKU).
				SetQuantity(it.Quantity).SetPrice(it.Price).SetCreatedAt(it.CreatedAt)
		}
		if err := tx.Item.CreateBulk(builders...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
