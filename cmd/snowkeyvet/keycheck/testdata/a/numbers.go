package a

import "github.com/snowkey/snowkey/types"

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
