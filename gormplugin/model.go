package gormplugin

import (
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

// A Model takes the place of gorm.Model. It has the same columns and the same soft
// delete. Its key is assigned before the insert. Embed it by value or by pointer.
// It has no hooks: the plugin must be installed, see [Installed].
type Model struct {
	ID        types.Snowflake `gorm:"primaryKey"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
}
