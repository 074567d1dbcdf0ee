// Package model has models without a tag, which only calls of GORM show.
package model

import "time"

// User is given to AutoMigrate.
type User struct {
	Id       int
	Name     string
	Messages []Message
	Profile  *Profile
	Joined   time.Time
}

// Message is an association.
type Message struct {
	Id     int
	UserId int
	Stars  int
}

// Profile is one, too, and has a name for its owner that a tag gives.
type Profile struct {
	ID    uint32
	Owner *int
	User  *User `gorm:"foreignKey:Owner"`
}

// Channel is what Find reads.
type Channel struct {
	Number int `gorm:"column:id"`
	Size   int
}

type Base struct{ Id int64 }

// Token is created.
type Token struct {
	Base
	Text string
}

// Room is the type of gorm.G.
type Room struct {
	ID     int
	Places int
}

// Seat has the method TableName.
type Seat struct {
	ID  int
	Row int
}

func (*Seat) TableName() string { return "seats" }

// Settings is no model.
type Settings struct {
	ID   int
	Port int
}
