package sqlxhelper_test

import "github.com/snowkey/snowkey/sqlxhelper"

// A driver that is wrapped for tracing has a name of the program's own choosing.
func ExampleRegisterDriver() {
	sqlxhelper.RegisterDriver("pgx-traced", sqlxhelper.PostgreSQL)
	// db, err := sqlx.Open("pgx-traced", dsn)
	// Output:
}
