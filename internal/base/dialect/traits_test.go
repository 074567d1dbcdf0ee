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
