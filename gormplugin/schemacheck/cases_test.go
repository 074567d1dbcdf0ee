package schemacheck_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
)

func TestCheckOnSQLite(t *testing.T) { gormcases.RunChecks(t, gormcases.SQLite()) }
