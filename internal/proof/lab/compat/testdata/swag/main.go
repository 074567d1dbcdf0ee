// Command swag is the API that TestSwagNeedsItsTagForKeys describes.
package main

import "github.com/snowkey/snowkey/types"

type Untyped struct {
	ID           types.Snowflake     `json:"id"`
	Parent       types.NullSnowflake `json:"parent"`
	Tagged       types.Snowflake     `json:"tagged" swaggertype:"string"`
	TaggedParent types.NullSnowflake `json:"tagged_parent" swaggertype:"string"`
}

type Typed struct {
	ID           types.ID[Typed]     `json:"id"`
	Parent       types.NullID[Typed] `json:"parent"`
	Tagged       types.ID[Typed]     `json:"tagged" swaggertype:"string"`
	TaggedParent types.NullID[Typed] `json:"tagged_parent" swaggertype:"string"`
}

// untyped shows an order.
//
// @Success 200 {object} Untyped
// @Router /untyped [get]
func untyped() {}

// typed shows an order.
//
// @Success 200 {object} Typed
// @Router /typed [get]
func typed() {}

func main() {
	untyped()
	typed()
}
