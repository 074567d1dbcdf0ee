package main

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

func TestLineTotalIsExactUpToTheLimits(t *testing.T) {
	check := func(cents, quantity, percent int64) {
		t.Helper()
		got := big.NewRat(int64(lineTotal(Money(cents)*cent, quantity, percent)), 10000)
		want := big.NewRat(cents, 100)
		want.Mul(want, big.NewRat(quantity, 1)).Mul(want, big.NewRat(100-percent, 100))
		if got.Cmp(want) != 0 {
			t.Errorf("lineTotal(%d cents, %d, %d%%) = %s; want %s", cents, quantity, percent, got, want)
		}
	}
	check(int64(csvload.MaxCents), csvload.MaxQuantity, 0)
	check(int64(csvload.MaxCents), csvload.MaxQuantity, 1)
	check(1, 1, 99)
	check(0, 1, 15)
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		check(random.Int64N(int64(csvload.MaxCents)+1), 1+random.Int64N(csvload.MaxQuantity), random.Int64N(101))
	}
}

func TestMoneyIsWrittenAsDecimalText(t *testing.T) {
	for amount, want := range map[Money]string{
		0: "0.00", 1: "0.0001", 100: "0.01", 140000: "14.00", 18634075: "1863.4075", 18634050: "1863.4050",
		5000: "0.50", -150: "-0.0150", math.MaxInt64: "922337203685477.5807", math.MinInt64: "-922337203685477.5808",
	} {
		if got := amount.String(); got != want {
			t.Errorf("Money(%d).String() = %s; want %s", amount, got, want)
		}
		got, err := json.Marshal(amount)
		if err != nil || string(got) != `"`+want+`"` {
			t.Errorf("json.Marshal(Money(%d)) = %s, %v; want %q", amount, got, err, want)
		}
	}
}

func TestNoModelHoldsAFloat(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Float32, reflect.Float64:
			t.Errorf("a model reaches %v; want integers only", typ)
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(typ.Field(i).Type)
			}
		}
	}
	for _, model := range []any{
		Import{}, Customer{}, Product{}, Order{}, OrderItem{}, totals{},
	} {
		walk(reflect.TypeOf(model))
	}
	if !seen[reflect.TypeFor[Money]()] {
		t.Error("the walk did not see Money; want it to")
	}
}
