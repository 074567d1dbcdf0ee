package sqlxhelper_test

import (
	"fmt"

	"github.com/snowkey/snowkey/sqlxhelper"
)

// A driver that is wrapped for tracing has a name of the program's own choosing.
// After this, db in
//
//	db, err := sqlx.Open("pgx-traced", dsn)
//
// is known to speak PostgreSQL.
func ExampleRegisterDriver() {
	sqlxhelper.RegisterDriver("pgx-traced", sqlxhelper.PostgreSQL)
	fmt.Println(sqlxhelper.PostgreSQL)
	// Output: PostgreSQL
}
