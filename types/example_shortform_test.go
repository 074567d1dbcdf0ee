package types_test

import (
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// The short forms have a fixed width and one spelling each. Compared byte by byte,
// they sort as the IDs do.
func Example_shortForms() {
	const id = types.Snowflake(175928847299117063)
	fmt.Println(id.Base62())
	fmt.Println(id.Base58()) // without 0, O, I and l
	fmt.Println(id.Base32()) // upper case and digits only

	back, err := types.ParseBase62("0Czks0tP37X")
	fmt.Println(back, err)

	_, err = types.ParseBase32("04w86bb0g4007")
	fmt.Println(err)

	// Output:
	// 0Czks0tP37X
	// 1QgmVVkniES
	// 04W86BB0G4007
	// 175928847299117063 <nil>
	// types: cannot parse base32 "04w86bb0g4007" into Snowflake: want 0000000000000..7ZZZZZZZZZZZZ, only the characters 0123456789ABCDEFGHJKMNPQRSTVWXYZ
}
