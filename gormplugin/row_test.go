package gormplugin

import (
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
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
