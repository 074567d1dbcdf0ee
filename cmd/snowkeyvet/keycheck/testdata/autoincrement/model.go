package autoincrement

import "github.com/snowkey/snowkey/types"

type Order struct {
	ID types.Snowflake `gorm:"primaryKey;autoIncrement" json:"id"` // want `field ID is a types.Snowflake, which gormplugin assigns`
}

type Item struct {
	ID types.Snowflake `gorm:"autoIncrement:true;primaryKey"` // want `field ID is a types.Snowflake, which gormplugin assigns`
}

type Log struct {
	ID types.ID[Log] `gorm:"primaryKey;autoIncrement:false"`
	N  int64         `gorm:"autoIncrement"`
}
