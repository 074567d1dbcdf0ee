package types_test

import (
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/types"
)

func ExampleParse() {
	id, err := types.Parse("175928847299117063")
	fmt.Println(id, err)

	// A key from a URL is whatever somebody typed.
	for _, text := range []string{"007", "9223372036854775808"} {
		_, err = types.Parse(text)
		switch {
		case errors.Is(err, types.ErrRange):
			fmt.Println("too large:", text)
		case err != nil:
			fmt.Println(err)
		}
	}

	// Output:
	// 175928847299117063 <nil>
	// types: cannot parse "007" into Snowflake: want a decimal integer 0..9223372036854775807
	// too large: 9223372036854775808
}

func ExampleValueError() {
	_, err := types.Parse("12x")
	var ve *types.ValueError
	if errors.As(err, &ve) {
		fmt.Println("value:", ve.Value)
		fmt.Println("want:", ve.Want)
	}

	// Output:
	// value: "12x"
	// want: a decimal integer 0..9223372036854775807
}
