package schemacheck_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/conformance/gormcases"
)

func TestCheckOnSQLite(t *testing.T) { gormcases.RunChecks(t, gormcases.SQLite()) }
