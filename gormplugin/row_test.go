package gormplugin

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// A code is a key of the program, as a UUID is.
type code [4]byte

func (c code) Value() (driver.Value, error) { return hex.EncodeToString(c[:]), nil }

func (c *code) Scan(v any) error {
	n, err := hex.Decode(c[:], fmt.Append(nil, v))
	if err == nil && n < len(c) {
		err = fmt.Errorf("code of %d bytes", n)
	}
	return err
}

func (code) GormDataType() string { return "text" }

type (
	coded struct {
		ID    code
		Parts []codedPart `gorm:"foreignKey:CodedID"`
	}
	codedPart struct {
		ID      Model `gorm:"embedded"`
		CodedID code
	}
)

func TestAssignCopiesAKeyOfTheProgramOnlyOnceItIsSet(t *testing.T) {
	db := openModels(t).Session(&gorm.Session{Logger: logger.Discard})
	was, is := code{1}, code{2}
	rows := []coded{{Parts: []codedPart{{CodedID: was}}}, {ID: is, Parts: []codedPart{{CodedID: was}}}}
	if err := New(&slab{}).Assign(t.Context(), db, rows); err != nil {
		t.Fatalf("Assign = %v; want no error", err)
	}
	if none, set := rows[0].Parts[0], rows[1].Parts[0]; none.CodedID != was || set.CodedID != is || none.ID.ID == 0 {
		t.Errorf("foreign keys to no key and to %v = %v, %v; want %v as before, and that key", is, none.CodedID, set.CodedID, was)
	}
}

func TestOfWhatWasReadOnlyANumberThatDoesNotFitIsAnError(t *testing.T) {
	s, err := schema.Parse(&benchItem{}, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		t.Fatalf("Parse = %v; want no error", err)
	}
	key := newColumn(s.PrioritizedPrimaryField)
	for stored, want := range map[any]cell{int64(7): {number: 7, present: true}, "7": {number: 7, present: true}, "01010": {number: 1010, present: true}, "x": {}, 7.5: {}, nil: {}} {
		if got, err := key.scan(stored); got != want || err != nil {
			t.Errorf("scan(%T %v) = %+v, %v; want %+v", stored, stored, got, err, want)
		}
	}
	for _, stored := range []any{int64(-7), "-7", "9223372036854775808"} {
		if got, err := key.scan(stored); got.present || !errors.Is(err, types.ErrRange) {
			t.Errorf("scan(%T %v) = %+v, %v; want types.ErrRange", stored, stored, got, err)
		}
	}
}
