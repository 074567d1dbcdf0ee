// Package model declares models that other packages use.
package model

type Face struct {
	Id int // a key, as only package start shows
}

type Album struct {
	ID int `gorm:"primaryKey"`
}
