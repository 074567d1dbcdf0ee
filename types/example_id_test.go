package types_test

import (
	"encoding/json"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

type Customer struct {
	ID types.ID[Customer] `json:"id"`
}

type Invoice struct {
	ID         types.ID[Invoice]     `json:"id"`
	CustomerID types.ID[Customer]    `json:"customer_id"`
	Corrects   types.NullID[Invoice] `json:"corrects"`
}

// open takes the key of an invoice. With the key of a customer it would not compile.
func open(id types.ID[Invoice]) string { return "invoice " + id.String() }

func ExampleID() {
	invoice := Invoice{ID: 250134256414617600, CustomerID: 7}
	text, err := json.Marshal(invoice)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	fmt.Println(open(invoice.ID))

	// A key from a generator or a request gets its mark by a conversion.
	id, err := types.Parse("250134256414617601")
	fmt.Println(open(types.ID[Invoice](id)), err)
	// Output:
	// {"id":"250134256414617600","customer_id":"7","corrects":null}
	// invoice 250134256414617600
	// invoice 250134256414617601 <nil>
}
