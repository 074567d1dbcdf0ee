// Package keys has models whose keys are integers.
package keys

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

type FaceGroup struct {
	gorm.Model
	Faces []Face
}

type Face struct {
	Id          int64
	FaceGroupID *uint
	Page        int64
}

type Album struct {
	ID    int // read by Find
	Likes int
}

type Row struct {
	Key int64 `db:"id"`
}

// Hides is without the key that it embeds.
type Hides struct {
	gorm.Model
	ID int64
}

type Own struct {
	ID    int64 `gorm:"autoIncrement:false"`
	Count int
}

type Options struct {
	ID int // no model
}

func use(db *gorm.DB, g FaceGroup, f *Face, a []Album, r Row, h Hides, own Own, o Options) {
	db.Find(&a)
	_ = int32(g.ID)              // want `int32 is too small for g.ID, the key of a model`
	_ = uint32(f.Id)             // want `uint32 is too small for f.Id`
	_ = int32(*f.FaceGroupID)    // want `int32 is too small for \*f.FaceGroupID`
	_ = int16(a[0].ID)           // want `int16 is too small for a\[0\].ID`
	_ = int32(r.Key)             // want `int32 is too small for r.Key`
	_ = int32(h.ID)              // want `int32 is too small for h.ID`
	_ = int(f.Id)                // 64 bits, mostly
	_ = int32(f.Page)            // no key
	_ = int32(a[0].Likes)        // no key
	_ = int32(own.ID)            // the program's own
	_ = int32(o.ID)              // no model
	_ = int32(g.ID % 16)         // a part
	_ = float64(int64(g.ID) / 2) // a part
}

func steps(g FaceGroup, id types.Snowflake) (int32, int16) {
	n, wide := int(g.ID), int64(id)
	return int32(n), int16(wide) // want `int32 is too small for n, the key of a model` `int16 is too small for wide, a types.Snowflake`
}
