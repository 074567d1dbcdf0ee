package types_test

import (
	"encoding/json"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// Embedding Model gives a struct its primary key, under the column and JSON name
// id.
func ExampleModel() {
	type product struct {
		types.Model
		Name string `db:"name" json:"name"`
	}
	p := product{Name: "tea"}
	fmt.Println(p.ID.IsZero()) // not assigned yet

	p.ID = 175928847299117063 // gormplugin or sqlxhelper does this before the insert
	out, err := json.Marshal(p)
	fmt.Println(string(out), err)

	// Output:
	// true
	// {"id":"175928847299117063","name":"tea"} <nil>
}
