package main

import (
	"database/sql"

	"gorm.io/gorm"

	"example.com/chat/gen"
	"example.com/chat/lists"
	"example.com/chat/model"
)

func main() {
	db, err := gorm.Open("chat.db")
	if err != nil {
		panic(err)
	}
	if err := db.AutoMigrate(&model.User{}, model.Channel{}); err != nil {
		panic(err)
	}
	var channels []*model.Channel
	db.Find(&channels)
	db.Create(&model.Token{Text: "t"})
	_ = gorm.G[model.Room](db)
	use(db, model.Settings{ID: 1, Port: 80})
}

func use(db *gorm.DB, s model.Settings) {
	var user model.User
	db.First(&user, s.ID)
	narrow := int32(user.Id)
	_ = gen.Reply{ID: narrow}
	_ = int32(s.Port)
}

func token(db *sql.DB, t *model.Token) error {
	r, err := db.Exec("INSERT INTO tokens (text) VALUES (?)", t.Text)
	if err != nil {
		return err
	}
	t.Id, err = r.LastInsertId()
	return err
}

func migrate(db *gorm.DB) error {
	lists.Migrate(db)
	return db.AutoMigrate(lists.All...)
}
