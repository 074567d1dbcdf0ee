package types

// Model gives a struct its primary key, for GORM, sqlx and JSON alike. Embed it:
//
//	type Order struct {
//		types.Model
//		Number string
//	}
//
// gormplugin.Model adds the timestamps of gorm.Model.
type Model struct {
	ID Snowflake `gorm:"primaryKey" db:"id" json:"id"`
}
