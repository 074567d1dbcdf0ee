package graphql

import "github.com/snowkey/snowkey/types"

// What resolvers get for the scalars of the schema. gqlgen tells typed keys apart by the scalar
// alone.
type (
	OrderID    = types.ID[Order]
	CustomerID = types.ID[Customer]
)

// An Order has a field of each type.
type Order struct {
	ID          types.ID[Order]
	CustomerID  types.ID[Customer]
	ParentID    types.NullID[Order]
	WarehouseID types.NullSnowflake
	Lines       []types.Snowflake
}

// NewOrder is an Order without its key.
type NewOrder struct {
	CustomerID  types.ID[Customer]
	ParentID    types.NullID[Order]
	WarehouseID types.NullSnowflake
	Lines       []types.Snowflake
}

// Customer is a mark.
type Customer struct{}
