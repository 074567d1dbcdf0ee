package a

import (
	"strconv"

	"github.com/snowkey/snowkey/types"
)

func numbers(id types.Snowflake, body map[string]any) {
	_ = float64(id)                           // want `float64 holds 53 bits or fewer, and id is a types.Snowflake of 63`
	_ = int(id)                               // want `int has 32 bits on some platforms, and id is a types.Snowflake of 63`
	_ = uint32(id)                            // want `uint32 is too small for id`
	_ = int(id % 16)                          // a part
	_ = int64(id)                             // all of it
	_ = types.Snowflake(body["id"].(float64)) // want `a types.Snowflake made of a float64 has lost what is above 53 bits`
	shard := id & 15
	_ = int(shard)
}

func parse(text string) (types.Snowflake, error) {
	n, err := strconv.Atoi(text) // want `strconv.Atoi reads a types.Snowflake; types.Parse refuses`
	if err != nil {
		return 0, err
	}
	return types.Snowflake(n), nil
}

func parse64(text string) types.ID[Order] {
	n, _ := strconv.ParseInt(text, 10, 64) // want `strconv.ParseInt reads a types.ID`
	return types.ID[Order](n)
}

func page(text string) (int, error) { return strconv.Atoi(text) }
