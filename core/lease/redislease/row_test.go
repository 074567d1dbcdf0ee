package redislease

import (
	"errors"
	"fmt"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func TestRowIsReadAsWritten(t *testing.T) {
	for _, test := range []struct {
		text string
		row  leasestore.Row
	}{
		{"0,,,0,0,0,", leasestore.Row{Worker: 7}},
		{"3,ab,cd,1732182000000,9,-5,web, 1", leasestore.Row{Worker: 7, Epoch: 3, Owner: "ab", Nonce: "cd", Until: 1732182000000, Renewals: 9, Holder: "web, 1"}},
		{"2251799813685248,,,-2251799813685248,0,2251799813685248,", leasestore.Row{Worker: 7, Epoch: most, Until: -most}},
	} {
		row, err := parseRow(7, test.text)
		if row != test.row || err != nil {
			t.Errorf("parseRow(7, %q) = %+v, %v; want %+v, nil", test.text, row, err, test.row)
		}
	}
}

// FuzzParseRow states the law of rows: what is read can be told from what it says.
func FuzzParseRow(f *testing.F) {
	for _, text := range []string{
		"0,,,0,0,0,", "3,ab,cd,1732182000000,9,-5,web", "", ",,,,,,", "1,2,3,4,5,6", "1,2,3,4,5,6,7,8", "-1,,,0,0,0,", "0,,,0,-1,0,",
		"+1,,,0,0,0,", "1e3,,,0,0,0,", "2251799813685249,,,0,0,0,", "99999999999999999999,,,0,0,0,", "1,\xff\n,é,0,0,0,",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := parseRow(1, text)
		if err != nil {
			if row != (leasestore.Row{}) || !errors.Is(err, ErrDamaged) {
				t.Errorf("parseRow(1, %q) = %+v, %v; want a zero row and an error that matches ErrDamaged", text, row, err)
			}
			return
		}
		again := fmt.Sprintf("%d,%s,%s,%d,%d,%d,%s", row.Epoch, row.Owner, row.Nonce, row.Until, row.Renewals, 0, row.Holder)
		same, err := parseRow(1, again)
		if same != row || err != nil {
			t.Errorf("parseRow(1, %q) = %+v; but parseRow(1, %q) = %+v, %v", text, row, again, same, err)
		}
	})
}
