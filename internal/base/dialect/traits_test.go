package dialect_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

func TestOnlyDatabasesThatAreWrittenToHaveTraits(t *testing.T) {
	for d := range dialect.BigQuery + 2 {
		if has := *dialect.TraitsOf(d) != (dialect.Traits{}); has != d.Valid() {
			t.Errorf("Traits of %v = %+v; want some: %v", d, dialect.TraitsOf(d), d.Valid())
		}
	}
}

func TestADatabaseIsFoundByTheNameOfItsDialector(t *testing.T) {
	for d := dialect.SQLite; d.Valid(); d++ {
		if name := dialect.TraitsOf(d).Dialector; dialect.OfDialector(name).Dialect != d {
			t.Errorf("OfDialector(%q) = %v; want %v", name, dialect.OfDialector(name).Dialect, d)
		}
	}
	for _, name := range []string{"", "sqlserver"} {
		if d := dialect.OfDialector(name).Dialect; d != 0 {
			t.Errorf("OfDialector(%q) = %v; want none", name, d)
		}
	}
}
