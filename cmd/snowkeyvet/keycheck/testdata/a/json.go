package a

import (
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"

	"github.com/snowkey/snowkey/types"
)

type Order struct {
	types.Model
	Customer types.ID[Order]
}

type reply struct {
	ID     int64 `json:"id"`
	Number int64 `json:"number,string"`
	Hidden int64 `json:"-"`
	Stored int64
}

type own struct {
	ID int64 `json:"id"`
}

func (own) MarshalJSON() ([]byte, error) { return nil, nil }

type message struct {
	Id int64 `protobuf:"varint,1" json:"id,omitempty"`
}

func fields(o Order) (reply, own, message) {
	n := int64(o.Customer) // want `a types.ID\[.*Order\] reaches JSON as a number, in field reply.ID \("id"\)`
	_ = reply{ID: n}
	return reply{
		ID:     o.ID.Int64(), // want `a types.Snowflake reaches JSON as a number, in field reply.ID \("id"\)`
		Number: o.ID.Int64(),
		Hidden: o.ID.Int64(),
		Stored: o.ID.Int64(),
	}, own{ID: o.ID.Int64()}, message{Id: o.ID.Int64()}
}

func maps(c *gin.Context, o Order) map[string]any {
	c.JSON(200, gin.H{"id": int64(o.ID)}) // want `in gin.H`
	c.JSON(200, gin.H{"id": o.ID, "text": Quoted(o.ID), "number": Quoted(int64(o.ID))})
	c.JSON(200, map[string]any{
		"id":   uint64(o.ID), // want `in the argument of JSON`
		"year": int64(o.ID >> 22),
	})
	_, _ = json.Marshal(o.ID.Int64())        // want `in the argument of Marshal`
	return map[string]any{"id": int64(o.ID)} // for GORM, as far as is known
}

func formats(o Order) {
	fmt.Printf(`{"id": %d}`, o.ID)                 // want `%d writes a types.Snowflake into JSON`
	fmt.Printf(`{"name": %q, "id":%d}`, "x", o.ID) // want `%d writes a types.Snowflake into JSON`
	fmt.Printf(`{"id": "%d", "count": %d}`, o.ID, 5)
	fmt.Printf("order %d", o.ID)
}

type OrderID types.Snowflake // want `type OrderID does not have the methods of types.Snowflake`

type Alias = types.Snowflake

type Text types.Snowflake

func (t Text) MarshalText() ([]byte, error) { return types.Snowflake(t).MarshalText() }

type Quoted int64

func (q Quoted) MarshalText() ([]byte, error) { return nil, nil }
