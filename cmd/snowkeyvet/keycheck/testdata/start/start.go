// Package start hands a model without a tag to GORM.
package start

import (
	"gorm.io/gorm"

	"example.com/shop/model"
)

func start(db *gorm.DB) int32 {
	var f model.Face
	db.Find(&f)
	return int32(f.Id) // want `int32 is too small for f.Id, the key of a model`
}
