package gormplugin

import (
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

// A Model takes the place of gorm.Model: it has the same columns and the same soft delete,
// and a key that the plugin assigns before the insert. Embed it by value or by pointer. It
// cannot be types.Model, which has the key alone and must not import GORM. Model has no hooks,
// so the plugin must be installed, see [Installed].
type Model struct {
	ID        types.Snowflake `gorm:"primaryKey"`
	CreatedAt time.Time
	UpdatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
}
