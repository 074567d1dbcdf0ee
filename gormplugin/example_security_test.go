//go:build cgo

package gormplugin_test

import (
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// A model that is decoded from a request takes the keys that the client sends. A type of its own,
// which has only what a client may set, refuses them.
func Example_keysFromRequests() {
	type Piece struct {
		types.Model
		CartID types.Snowflake
		SKU    string `json:"sku"`
	}
	type Cart struct {
		types.Model
		CustomerID types.Snowflake
		Pieces     []Piece `json:"pieces"`
	}
	type newCart struct {
		Pieces []struct {
			SKU string `json:"sku"`
		} `json:"pieces"`
	}
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	db := memory("requests")
	check(db.AutoMigrate(&Cart{}, &Piece{}))
	const aliceID, bobID = 1, 2
	alice := Cart{CustomerID: aliceID, Pieces: []Piece{{SKU: "cup"}}}
	check(db.Create(&alice).Error)
	cup := alice.Pieces[0].ID

	// Bob posts a cart with the key of Alice's cup.
	body := fmt.Sprintf(`{"pieces": [{"id": "%d", "sku": "cup"}]}`, cup)

	// A type of its own refuses the key.
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	fmt.Println(decoder.Decode(&newCart{}))

	// A key is looked up together with its owner: no row, so answer 404.
	mine := db.Model(&Cart{}).Select("id").Where("customer_id = ?", bobID)
	renamed := db.Model(&Piece{}).Where("id = ? AND cart_id IN (?)", cup, mine).Update("sku", "mine")
	check(renamed.Error)
	fmt.Println("Bob has renamed", renamed.RowsAffected, "of Alice's pieces")

	// The model takes the key. Do not do this.
	cart := Cart{CustomerID: bobID}
	check(json.Unmarshal([]byte(body), &cart))
	check(db.Create(&cart).Error)
	var piece Piece
	check(db.Take(&piece, cup).Error)
	fmt.Println("Alice still has her cup:", piece.CartID == alice.ID)
	// Output:
	// json: unknown field "id"
	// Bob has renamed 0 of Alice's pieces
	// Alice still has her cup: false
}
