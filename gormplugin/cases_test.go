package gormplugin_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
)

func TestPluginOnSQLite(t *testing.T) { gormcases.Run(t, gormcases.SQLite()) }

func TestUpsertsOnSQLite(t *testing.T) { gormcases.RunUpserts(t, gormcases.SQLite()) }
