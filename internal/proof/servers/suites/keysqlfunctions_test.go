package servers

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
)

func TestTheFunctionsOfKeySQLAreRight(t *testing.T) {
	eachServer(t, func(t *testing.T, w way) {
		db := w.place(t).open(t).DB
		if w.server == "MySQL" && isTiDB(t, db) {
			t.Skip("TiDB has no CREATE FUNCTION")
		}
		keysqlcases.RunFunctions(t, db, w.dialect())
	})
}
