package types_test

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// database/sql calls Scan with what the driver read; nil is SQL NULL.
func ExampleNullSnowflake_Scan() {
	var parent types.NullSnowflake
	for _, column := range []any{int64(175928847299117063), nil, int64(0)} {
		err := parent.Scan(column)
		fmt.Println(parent, parent.Valid, err)
	}

	// Output:
	// 175928847299117063 true <nil>
	// NULL false <nil>
	// 0 true <nil>
}

// A Snowflake has no way to say NULL. It is set to zero, so that a program that
// drops the error does not take the key of the row before for this row's.
func ExampleSnowflake_Scan_null() {
	id := types.Snowflake(42)
	err := id.Scan(nil)
	fmt.Println(id, errors.Is(err, types.ErrNull))
	fmt.Println(err)

	// Output:
	// 0 true
	// types: cannot scan NULL into Snowflake: want a value that is not NULL, or a NullSnowflake to scan into
}
