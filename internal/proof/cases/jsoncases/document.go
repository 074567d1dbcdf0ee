package jsoncases

import (
	"math/rand/v2"

	"github.com/snowkey/snowkey/types"
)

const (
	maxInt64 = types.Snowflake(1<<63 - 1)
	// before is what a destination holds before a call that may fail.
	before = types.Snowflake(42)
)

var (
	absent      = types.NullSnowflake{}
	presentZero = types.NullSnowflake{Valid: true}
	presentFive = types.NullSnowflake{Snowflake: 5, Valid: true}
	presentNeg  = types.NullSnowflake{Snowflake: -5, Valid: true}
	// stale is what a careless program makes; it is absent all the same.
	stale = types.NullSnowflake{Snowflake: 5}
)

type order struct {
	types.Model
	Number string `json:"number"`
}

// everywhere has an ID in each place that a document has.
type everywhere struct {
	ID     types.Snowflake                     `json:"id"`
	Ptr    *types.Snowflake                    `json:"ptr"`
	Nil    *types.Snowflake                    `json:"nil"`
	Parent types.NullSnowflake                 `json:"parent"`
	Absent types.NullSnowflake                 `json:"absent"`
	Slice  []types.Snowflake                   `json:"slice"`
	Array  [2]types.Snowflake                  `json:"array"`
	ByID   map[types.Snowflake]types.Snowflake `json:"by_id"`
	ByName map[string]*types.Snowflake         `json:"by_name"`
	Any    any                                 `json:"any"`
	Nulls  []types.NullSnowflake               `json:"nulls"`
	Order  order                               `json:"order"`

	NullPtr *types.NullSnowflake                    `json:"null_ptr"`
	Zero    types.Snowflake                         `json:"zero,omitzero"`
	Present types.NullSnowflake                     `json:"present,omitzero"`
	Missing types.NullSnowflake                     `json:"missing,omitzero"`
	Typed   types.ID[order]                         `json:"typed"`
	Maybe   types.NullID[order]                     `json:"maybe"`
	Never   types.NullID[order]                     `json:"never"`
	Ptrs    []*types.ID[order]                      `json:"ptrs"`
	ByTyped map[types.ID[order]]types.NullID[order] `json:"by_typed"`
	ByMaybe map[types.NullID[order]]order           `json:"by_maybe"`
	Orders  []*order                                `json:"orders"`
}

func everywhereValue() everywhere {
	zero, nine, typed, five := types.Snowflake(0), types.Snowflake(9), types.ID[order](11), presentFive
	return everywhere{
		ID: maxInt64, Ptr: &zero, Parent: presentFive,
		Slice: []types.Snowflake{0, 9007199254740993}, Array: [2]types.Snowflake{1, 2},
		ByID:   map[types.Snowflake]types.Snowflake{7: 8},
		ByName: map[string]*types.Snowflake{"a": &nine},
		Any:    types.Snowflake(10),
		Nulls:  []types.NullSnowflake{absent, presentZero},
		Order:  order{types.Model{ID: 175928847299117063}, "A-1"},

		NullPtr: &five, Present: presentZero,
		Typed: 9007199254740995, Maybe: types.NullID[order]{ID: 12, Valid: true},
		Ptrs:    []*types.ID[order]{&typed, nil},
		ByTyped: map[types.ID[order]]types.NullID[order]{13: {ID: 14, Valid: true}},
		ByMaybe: map[types.NullID[order]]order{{}: {types.Model{ID: 15}, "A-2"}},
		Orders:  []*order{{types.Model{ID: 16}, "A-3"}, nil},
	}
}

const (
	everywhereJSON = `{"id":"9223372036854775807","ptr":"0","nil":null,"parent":"5","absent":null,` +
		`"slice":["0","9007199254740993"],"array":["1","2"],"by_id":{"7":"8"},"by_name":{"a":"9"},"any":"10",` +
		`"nulls":[null,"0"],"order":{"id":"175928847299117063","number":"A-1"},` +
		`"null_ptr":"5","present":"0","typed":"9007199254740995","maybe":"12","never":null,"ptrs":["11",null],` +
		`"by_typed":{"13":"14"},"by_maybe":{"":{"id":"15","number":"A-2"}},"orders":[{"id":"16","number":"A-3"},null]}`

	// The keys of objects are always strings, and so is what goes to any.
	everywhereNumbers = `{"id":9223372036854775807,"ptr":0,"nil":null,"parent":5,"absent":null,` +
		`"slice":[0,9007199254740993],"array":[1,2],"by_id":{"7":8},"by_name":{"a":9},"any":"10",` +
		`"nulls":[null,0],"order":{"id":175928847299117063,"number":"A-1"},` +
		`"null_ptr":5,"present":0,"typed":9007199254740995,"maybe":12,"never":null,"ptrs":[11,null],` +
		`"by_typed":{"13":14},"by_maybe":{"":{"id":15,"number":"A-2"}},"orders":[{"id":16,"number":"A-3"},null]}`
)

// syntax are complete JSON values that are no ID.
var syntax = []string{
	`1.0`, `0.0`, `1.5`, `1e18`, `1E3`, `0e0`, `-0`, `1e400`, `true`,
	`false`, `{}`, `[]`, `[5]`, `["5"]`, `{"id":"5"}`, `{"Snowflake":5,"Valid":true}`, `""`, `" "`,
	`" 5"`, `"5 "`, `"+5"`, `"-0"`, `"007"`, `"1.0"`, `"1e3"`, `"0x10"`, `"1_000"`,
	`"null"`, `"\u0031"`, `"1\u0032"`, `"\"5\""`, `"5\n"`, `"5\u0000"`, `"\uff15"`, `"５"`,
}

// outOfRange are numbers that no ID has.
var outOfRange = []string{
	`-1`, `-9223372036854775808`, `9223372036854775808`, `18446744073709551616`,
	`18446744073709551621`, `"-1"`, `"9223372036854775808"`,
}

// ids returns telling and random IDs.
func ids() []types.Snowflake {
	ids := []types.Snowflake{0, maxInt64, maxInt64 - 1}
	for shift := range 63 {
		p := types.Snowflake(1) << shift
		ids = append(ids, p-1, p, p+1)
	}
	for p := types.Snowflake(10); p <= maxInt64/10; p *= 10 {
		ids = append(ids, p-1, p, p+1)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		ids = append(ids, types.Snowflake(r.Uint64()>>(1+r.IntN(63))))
	}
	return ids
}
