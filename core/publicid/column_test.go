//go:build cgo

package publicid_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/publicid"
)

// asColumn is a mistake: a view with an ID as a row.
type asColumn struct {
	ID     publicid.ID[Order] `db:"id" gorm:"primaryKey"`
	Number string             `db:"number"`
}

func (asColumn) TableName() string { return "orders" }

// Whatever the type of the column: a text would be stored by String, and a number by its kind.
func TestAnIDIsNeverAColumn(t *testing.T) {
	for _, column := range []string{"INTEGER", "BIGINT", "TEXT", "BLOB", "VARCHAR(64)"} {
		g, err := gorm.Open(sqlite.Open("file::memory:"), &gorm.Config{Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		db, err := g.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		x := sqlx.NewDb(db, "sqlite3")
		x.MustExec("CREATE TABLE orders (id " + column + ", number TEXT)")
		row := asColumn{ID: of(5), Number: "A-1"}
		count := func() (n int) {
			if err := x.Get(&n, "SELECT count(*) FROM orders"); err != nil {
				t.Fatal(err)
			}
			return n
		}

		_, exec := db.Exec("INSERT INTO orders (id) VALUES (?)", of(5))
		_, pointer := db.Exec("INSERT INTO orders (id) VALUES (?)", &row.ID)
		_, named := x.NamedExec("INSERT INTO orders (id, number) VALUES (:id, :number)", row)
		errs := map[string]error{
			"Exec": exec, "Exec of a pointer": pointer, "NamedExec": named, "Create": g.Create(&row).Error, "Create several": g.Create([]asColumn{row}).Error,
			"Save": g.Save(&row).Error,
		}
		if n := count(); n != 0 {
			t.Fatalf("%d rows are stored in a column of type %s; want none", n, column)
		}

		x.MustExec("INSERT INTO orders VALUES (5, 'A-1')")
		var id publicid.ID[Order]
		errs["Scan"] = db.QueryRow("SELECT id FROM orders").Scan(&id)
		errs["Get"] = x.Get(&row, "SELECT * FROM orders")
		errs["Select"] = x.Select(&[]asColumn{}, "SELECT * FROM orders")
		errs["First"] = g.First(&asColumn{}).Error
		errs["Find"] = g.Find(&[]asColumn{}).Error
		errs["Where"] = g.Where("id = ?", of(5)).Find(&[]asColumn{}).Error
		errs["Where a map"] = g.Where(map[string]any{"id": of(5)}).Find(&[]asColumn{}).Error
		errs["Where a struct"] = g.Where(asColumn{ID: of(5)}).Find(&[]asColumn{}).Error
		errs["Not"] = g.Not(map[string]any{"id": of(5)}).Delete(&asColumn{}).Error
		errs["Update"] = g.Model(&asColumn{ID: of(5)}).Update("number", "A-2").Error
		errs["First by key"] = g.First(&asColumn{}, of(5)).Error
		if n := count(); n != 1 {
			t.Fatalf("%d rows of a table with a column of type %s are left; want 1", n, column)
		}
		errs["Pluck"] = g.Model(&asColumn{}).Pluck("id", &[]publicid.ID[Order]{}).Error
		errs["Query"] = x.Get(new(string), "SELECT number FROM orders WHERE id = ?", of(5))
		x.MustExec("UPDATE orders SET id = NULL")
		errs["Scan NULL"] = db.QueryRow("SELECT id FROM orders").Scan(&id)
		for call, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "publicid: ID[Order] is never a column: want a types.ID[Order], which ID.Key returns") {
				t.Errorf("%s with a column of type %s = %v; want the error that an ID is never a column", call, column, err)
			}
		}
		if !id.IsZero() {
			t.Errorf("Scan left %d; want the zero ID", id.Key())
		}

		var number string
		if err := x.Get(&number, "SELECT 'A-1' WHERE ? = 5", of(5).Key()); err != nil || number != "A-1" {
			t.Errorf("a query by the key = %q, %v; want A-1, nil", number, err)
		}
	}
}
