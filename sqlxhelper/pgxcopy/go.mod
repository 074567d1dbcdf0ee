module github.com/snowkey/snowkey/sqlxhelper/pgxcopy

go 1.25.0

replace github.com/snowkey/snowkey => ../..

require (
	github.com/jackc/pgx/v5 v5.10.0
	github.com/jmoiron/sqlx v1.3.0
	github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.2 // indirect
	golang.org/x/sync v0.17.0 // indirect
	golang.org/x/text v0.29.0 // indirect
)
