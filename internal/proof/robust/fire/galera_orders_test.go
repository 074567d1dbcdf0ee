//go:build linux

package fire

import (
	"database/sql"
	"os"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/sqlxhelper"
)

func init() {
	shops["Galera"] = shop{
		Dialect: sqlxhelper.MySQL,
		Open: func(addresses string) (*sql.DB, error) {
			settings := waits // of the test, to look at the orders
			if _, writer := os.LookupEnv(writes); writer {
				settings = nil
			}
			db := openGalera(addresses, "fire", settings)
			db.SetMaxOpenConns(4)
			return db, nil
		},
		GORM: func(db *sql.DB) gorm.Dialector {
			return gormmysql.New(gormmysql.Config{Conn: db, SkipInitializeWithVersion: true})
		},
	}
}
