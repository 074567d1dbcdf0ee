module github.com/snowkey/snowkey

go 1.25.0

require (
	github.com/DATA-DOG/go-sqlmock v1.5.2
	github.com/jmoiron/sqlx v1.3.0
	github.com/mattn/go-sqlite3 v1.14.22
	gorm.io/driver/sqlite v1.6.0
	gorm.io/gorm v1.30.2
)

require (
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/text v0.20.0 // indirect
)
