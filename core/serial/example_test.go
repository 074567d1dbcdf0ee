package serial_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/types"
)

func Example() {
	payments, err := serial.NewCodec(serial.CodecConfig{Prefix: "PAY-", Check: serial.Mod11_10})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := payments.Format(types.Snowflake(249995642880000042))
	fmt.Println(text, err)
	id, err := payments.Parse(text)
	fmt.Println(id, err)

	_, err = payments.Parse(text[:len(text)-1] + "0")
	fmt.Println(errors.Is(err, serial.ErrCheckDigit))
	// Output:
	// PAY-20261121203325957003200421 <nil>
	// 249995642880000042 <nil>
	// true
}

// All texts of a day, in a column that is compared by bytes.
func ExampleCodec_Min() {
	payments, err := serial.NewCodec(serial.CodecConfig{Prefix: "PAY-", Zone: time.FixedZone("", 3600)})
	if err != nil {
		fmt.Println(err)
		return
	}
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.FixedZone("", 3600))
	fmt.Println("WHERE serial >=", payments.Min(day))
	fmt.Println("  AND serial < ", payments.Min(day.AddDate(0, 0, 1)))
	// Output:
	// WHERE serial >= PAY-2026112200000000000000000
	//   AND serial <  PAY-2026112300000000000000000
}

// A number that somebody has mistyped is told from one that does not exist.
func ExampleSeries_Parse() {
	invoices := serial.Series{Name: "invoices", Prefix: "INV", Period: serial.Yearly, Digits: 6, Check: serial.Luhn}
	n, err := invoices.Number(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), 42)
	fmt.Println(n.Text, err)

	n, err = invoices.Parse(n.Text)
	fmt.Println(n.Period, n.N, err)

	_, err = invoices.Parse("INV20260000245")
	fmt.Println(errors.Is(err, serial.ErrCheckDigit))
	// Output:
	// INV20260000425 <nil>
	// 2026 42 <nil>
	// true
}
