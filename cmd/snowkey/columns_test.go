package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
)

// docs/migrating.md shows the queries of doctor -all to those who do not have the command.
func TestTheFilesOfMigratingHaveTheQueriesOfTheDoctor(t *testing.T) {
	for dialect, name := range map[keysql.Dialect]string{keysql.PostgreSQL: "postgresql", keysql.MySQL: "mysql", keysql.SQLite: "sqlite"} {
		path := filepath.Join("..", "..", "docs", "migrating", "columns-"+name+".sql")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		query := strings.ReplaceAll(string(text), "\r\n", "\n")
		for strings.HasPrefix(query, "--") {
			_, query, _ = strings.Cut(query, "\n")
		}
		if want := everyKeyQueries[dialect] + ";\n"; query != want {
			t.Errorf("%s has, after its comment,\n%s\nwant what doctor -all asks\n%s", path, query, want)
		}
	}
}
