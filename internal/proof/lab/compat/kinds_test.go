package compat

import (
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// A kind is a type of keys, with a type for one that may be missing. What a library does to keys is tested
// on each kind.
type kind[K, N comparable] struct {
	key  func(types.Snowflake) K
	null func(types.Snowflake) N // that is there
	text func(types.Snowflake) string
}

var (
	untyped = kind[types.Snowflake, types.NullSnowflake]{
		key:  func(id types.Snowflake) types.Snowflake { return id },
		null: func(id types.Snowflake) types.NullSnowflake { return types.NullSnowflake{Snowflake: id, Valid: true} },
		text: types.Snowflake.String,
	}
	typed = kind[types.ID[buyer], types.NullID[seller]]{
		key: func(id types.Snowflake) types.ID[buyer] { return types.ID[buyer](id) },
		null: func(id types.Snowflake) types.NullID[seller] {
			return types.NullID[seller]{ID: types.ID[seller](id), Valid: true}
		},
		text: types.Snowflake.String,
	}
	// public is bound and described as the others are, and has no type for one that is missing.
	public = kind[publicid.ID[buyer], publicid.ID[buyer]]{
		key:  func(id types.Snowflake) publicid.ID[buyer] { return publicid.Of(types.ID[buyer](id)) },
		null: func(id types.Snowflake) publicid.ID[buyer] { return publicid.Of(types.ID[buyer](id)) },
		text: func(id types.Snowflake) string { return publicid.Of(types.ID[buyer](id)).String() },
	}
)

// buyer and seller are marks of their own keys.
type (
	buyer  struct{}
	seller struct{}
)

var buyers, _ = publicid.New(publicid.Config{Prefix: "buyer", Keys: [][]byte{[]byte("a test's 16 byte")}})

func (buyer) PublicIDs() *publicid.Codec { return buyers }

const (
	id      = types.Snowflake(175928847299117063) // above 2^53
	largest = types.Snowflake(1<<63 - 1)
)

// each runs a test on the kinds of package types.
func each(t *testing.T, ofUntyped, ofTyped func(*testing.T)) {
	t.Helper()
	t.Run("Snowflake", ofUntyped)
	t.Run("ID", ofTyped)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
