package types_test

import (
	"encoding/json"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// An ID is written as a string, so that JavaScript keeps every digit. It is read
// from a string or an integer number, since other systems write numbers.
func Example_json() {
	type invoice struct {
		ID     types.Snowflake     `json:"id"`
		Parent types.NullSnowflake `json:"parent"`
	}
	out, err := json.Marshal(invoice{ID: 9007199254740993})
	fmt.Println(string(out), err)

	var in invoice
	err = json.Unmarshal([]byte(`{"id": 9007199254740993, "parent": "7"}`), &in)
	fmt.Println(in.ID, in.Parent, err)

	err = json.Unmarshal([]byte(`{"id": 1e18}`), &in)
	fmt.Println(err)

	// Output:
	// {"id":"9007199254740993","parent":null} <nil>
	// 9007199254740993 7 <nil>
	// types: cannot unmarshal JSON 1e18 into Snowflake: want a JSON string or integer 0..9223372036854775807
}

// With omitzero, an ID that is not assigned yet and one that is absent disappear.
func Example_jsonOmitzero() {
	type invoice struct {
		ID     types.Snowflake     `json:"id,omitzero"`
		Parent types.NullSnowflake `json:"parent,omitzero"`
	}
	out, err := json.Marshal([]invoice{{}, {ID: 5, Parent: types.NullSnowflake{Snowflake: 7, Valid: true}}})
	fmt.Println(string(out), err)

	// Output:
	// [{},{"id":"5","parent":"7"}] <nil>
}
