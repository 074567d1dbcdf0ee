// Package avro tests what Avro's binary and JSON encodings do to a key, and what its library for
// JavaScript reads.
package avro

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/linkedin/goavro/v2"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/internal/proof/servers/node"
	"github.com/snowkey/snowkey/types"
)

// codec returns one for the orders of testdata/order.avsc, whose key is a long.
func codec(t *testing.T) *goavro.Codec {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("testdata", "order.avsc"))
	must(t, err)
	c, err := goavro.NewCodec(string(schema))
	must(t, err)
	return c
}

// encoded returns an order for each key.
func encoded(t *testing.T, encode func(buf []byte, datum any) ([]byte, error)) (orders [][]byte) {
	t.Helper()
	for _, key := range large.Keys {
		order, err := encode(nil, map[string]any{"id": key.Int64()})
		must(t, err)
		orders = append(orders, order)
	}
	return orders
}

// same fails the test unless the order has the key.
func same(t *testing.T, decode func([]byte) (any, []byte, error), order []byte, key types.Snowflake) {
	t.Helper()
	var got types.Snowflake
	datum, _, err := decode(order)
	must(t, err)
	if err := got.Scan(datum.(map[string]any)["id"]); err != nil || got != key {
		t.Errorf("Scan of the order %q = %d, %v; want %d", order, got, err, key)
	}
}

func TestAvroKeepsAKeyThatIsALong(t *testing.T) {
	c := codec(t)
	for i, order := range encoded(t, c.BinaryFromNative) {
		same(t, c.NativeFromBinary, order, large.Keys[i])
	}
	for i, order := range encoded(t, c.TextualFromNative) {
		same(t, c.NativeFromTextual, order, large.Keys[i])
	}
}

// Nine bytes, as in Protobuf's sint64: both are zigzag varints.
func TestALongIsNineBytes(t *testing.T) {
	if order := encoded(t, codec(t).BinaryFromNative)[1]; len(order) != 9 {
		t.Errorf("order of the key %d = %x; want 9 bytes", large.Keys[1], order)
	}
}

// through returns what the program with avsc makes of each order.
func through(t *testing.T, longs string) []string {
	t.Helper()
	var orders []string
	for _, order := range encoded(t, codec(t).BinaryFromNative) {
		orders = append(orders, hex.EncodeToString(order))
	}
	return node.Lines(t, node.Project(t, "testdata"), "orders.mjs", orders, longs)
}

func TestAvscRefusesALongThatItWouldRound(t *testing.T) {
	for i, got := range through(t, "number") {
		if want := "potential precision loss"; got != want {
			t.Errorf("avsc reads the key %d as %s; want the error %q", large.Keys[i], got, want)
		}
	}
}

func TestAvscKeepsAKeyThatIsABigInt(t *testing.T) {
	c := codec(t)
	for i, got := range through(t, "bigint") {
		order, err := hex.DecodeString(got)
		if err != nil {
			t.Fatalf("avsc prints %s for the key %d: %v", got, large.Keys[i], err)
		}
		same(t, c.NativeFromBinary, order, large.Keys[i])
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
