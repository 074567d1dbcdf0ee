package types_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"

	"github.com/snowkey/snowkey/types"
)

// A key in a path is whatever somebody typed. What is not a key is a bad request.
func Example_httpPath() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := types.Parse(r.PathValue("id"))
		if err != nil {
			http.Error(w, "not an order number", http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintln(w, "order", id)
	})
	for _, path := range []string{"/orders/175928847299117063", "/orders/-1"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 order 175928847299117063
	// 400 not an order number
}

// IDs are keys of a map and of a JSON object, and flags of a command.
func Example_text() {
	stock := map[types.Snowflake]int{175928847299117063: 4}
	out, err := json.Marshal(stock)
	fmt.Println(string(out), err)

	var id types.Snowflake
	flags := flag.NewFlagSet("refund", flag.ContinueOnError)
	flags.TextVar(&id, "order", types.Snowflake(0), "the order's `key`")
	err = flags.Parse([]string{"-order", "175928847299117063"})
	fmt.Println(id, err)
	// Output:
	// {"175928847299117063":4} <nil>
	// 175928847299117063 <nil>
}

// IDs are integers: == and < compare them, and cmp and slices sort them by time.
func ExampleSnowflake_Compare() {
	ids := []types.Snowflake{30, 4, 175928847299117063}
	slices.SortFunc(ids, types.Snowflake.Compare)
	fmt.Println(ids)
	// Output: [4 30 175928847299117063]
}

// The bytes of IDs sort as the IDs do, for stores that sort bytes.
func ExampleSnowflake_MarshalBinary() {
	b, err := types.Snowflake(175928847299117063).MarshalBinary()
	fmt.Printf("%x %v\n", b, err)

	var id types.Snowflake
	err = id.UnmarshalBinary(b)
	fmt.Println(id, err)
	// Output:
	// 0271065ac1020007 <nil>
	// 175928847299117063 <nil>
}
