package types_test

import (
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// A key as a UUID of version 8, and the key of a UUID.
func ExampleSnowflake_UUID() {
	const id = types.Snowflake(1541815603606036487)
	u := id.UUID() // uuid.UUID(u) is google/uuid's
	fmt.Printf("%x-%x-%x-%x-%x\n", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	fmt.Println(types.FromUUID(u))
	_, err := types.FromUUID([16]byte{})
	fmt.Println(err)
	// Output:
	// 1565a11f-6217-8a00-9773-6e6f776b6579
	// 1541815603606036487 <nil>
	// types: cannot read UUID 00000000000000000000000000000000 into Snowflake: want 00000000-0000-8000-9073-6e6f776b6579..7fffffff-ffff-8fff-9f73-6e6f776b6579, of a key
}
