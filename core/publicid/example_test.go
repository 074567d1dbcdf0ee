package publicid_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// keys are those that all prefixes share. A program reads them from where its passwords are:
// openssl rand -hex 16 makes one.
func keys() [][]byte {
	key, err := hex.DecodeString("2b7e151628aed2a6abf7158809cf4f3c")
	if err != nil {
		log.Fatal(err)
	}
	return [][]byte{key}
}

func ExampleNew() {
	orders, err := publicid.New(publicid.Config{Prefix: "order", Keys: keys()})
	if err != nil {
		log.Fatal(err)
	}
	for id := types.Snowflake(250134256414617600); id < 250134256414617603; id++ {
		fmt.Println(orders.Encode(id))
	}

	id, err := orders.Decode("order_o0EFNu4exJSs3Decs6IpXMo")
	fmt.Println(id, err)
	id, err = orders.Decode("order_o0EFNu4exJSs3Decs6lpXMo") // somebody took an I for an l
	fmt.Println(id, errors.Is(err, publicid.ErrInvalid))
	// Output:
	// order_o0EFNu4exJSs3Decs6IpXMo
	// order_o6NEJ8Q7GbEBjBWRLe7Sz58
	// order_o0EZtKlWyWXMlZ9LZix62KO
	// 250134256414617600 <nil>
	// 0 true
}

// An Order is in the database, and has the key that stays inside.
type Order struct {
	ID     types.ID[Order]
	Number string
}

// orderIDs is made in main, before the first request.
var orderIDs, _ = publicid.New(publicid.Config{Prefix: "order", Keys: keys()})

// PublicIDs gives the keys of orders a public form.
func (Order) PublicIDs() *publicid.Codec { return orderIDs }

// An OrderView is what the client gets.
type OrderView struct {
	ID     publicid.ID[Order] `json:"id"`
	Number string             `json:"number"`
}

func ExampleID() {
	stored := map[types.ID[Order]]Order{ // the table
		250134256414617600: {ID: 250134256414617600, Number: "A-1"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := publicid.Parse[Order](r.PathValue("id"))
		order, ok := stored[id.Key()]
		if err != nil || !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(OrderView{ID: publicid.Of(order.ID), Number: order.Number})
	})

	url := "/orders/" + publicid.Of(types.ID[Order](250134256414617600)).String()
	for _, url := range []string{url, url[:len(url)-1], "/orders/250134256414617600"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		fmt.Println(url, w.Code)
		fmt.Print(w.Body)
	}
	// Output:
	// /orders/order_o0EFNu4exJSs3Decs6IpXMo 200
	// {"id":"order_o0EFNu4exJSs3Decs6IpXMo","number":"A-1"}
	// /orders/order_o0EFNu4exJSs3Decs6IpXM 404
	// 404 page not found
	// /orders/250134256414617600 404
	// 404 page not found
}
