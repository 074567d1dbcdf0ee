package sqlxhelper_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/functions"
)

func TestInsertManyOfTwoRowsRunsThroughFewFunctions(t *testing.T) {
	functions.AtMost(t, 50, "sqlxhelper", "twoflat")
}
