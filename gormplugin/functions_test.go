package gormplugin_test

import (
	"testing"

	"github.com/snowkey/snowkey/internal/proof/functions"
)

func TestCreateOfAnOrderWithTwoItemsRunsThroughFewFunctions(t *testing.T) {
	functions.AtMost(t, 30, "gormplugin", "twoitems")
}
