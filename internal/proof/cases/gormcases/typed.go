package gormcases

import (
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// A Client has accounts. The keys of both are typed by the models, and have no tag.
type Client struct {
	ID       types.ID[Client]
	Name     string `gorm:"size:40;uniqueIndex"`
	Accounts []Account
	Logins   []Login        `gorm:"polymorphic:Owner"`
	Groups   []*ClientGroup `gorm:"many2many:client_members"`
}

// An Account belongs to a [Client], and to another account or to none.
type Account struct {
	ID       types.ID[Account]
	ClientID types.ID[Client]
	Client   *Client
	ParentID types.NullID[Account]
	Parent   *Account
	Children []Account `gorm:"foreignKey:ParentID"`
	Name     string    `gorm:"size:40"`
}

// A Login belongs to a row of any table, so its OwnerID is no typed key.
type Login struct {
	ID        types.ID[Login]
	OwnerID   types.Snowflake
	OwnerType string `gorm:"size:40"`
}

// A ClientGroup has clients, many to many.
type ClientGroup struct {
	ID   types.ID[ClientGroup]
	Name string `gorm:"size:40"`
}

// A Share has a key of two columns.
type Share struct {
	TenantID types.ID[Client] `gorm:"primaryKey"`
	ID       types.ID[Share]  `gorm:"primaryKey"`
	Name     string           `gorm:"size:40"`
}

var clientModels = []any{&Client{}, &Account{}, &Login{}, &ClientGroup{}, &Share{}}

var typedCases = []testCase{
	{"TypedKeysReachTheWholeGraph", func(e *env) {
		e.migrate(clientModels...)
		c := Client{
			Name: "A", Logins: []Login{{}, {}}, Groups: []*ClientGroup{{Name: "G"}},
			Accounts: []Account{{Name: "1", Children: []Account{{Name: "1.1", Client: &Client{Name: "B"}}}}, {Name: "2"}},
		}
		e.must(e.db.Create(&c))
		e.matches(&c)
		first := &c.Accounts[0]
		equal(e, "ParentID of a root", first.ParentID, types.NullID[Account]{})
		var back Client
		e.must(e.db.Preload("Accounts.Children.Client").Preload("Accounts.Parent").Preload("Logins").Preload("Groups").First(&back, c.ID))
		equal(e, "preloaded", fmt.Sprint(len(back.Accounts), back.Accounts[0].Children[0].Client.ID, len(back.Logins), back.Groups[0].ID), fmt.Sprint(2, first.Children[0].ClientID, 2, c.Groups[0].ID))
		var joined Account
		e.must(e.db.Joins("Client").Joins("Parent").Where(&Account{Name: "1.1"}).First(&joined))
		equal(e, "joined", fmt.Sprint(joined.Client.Name, joined.Parent.ID), fmt.Sprint("B", first.ID))
		if err := e.db.Model(&first.Children[0]).Association("Parent").Append(&Account{ClientID: c.ID, Name: "P"}); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		e.stored("accounts", "name", "P", first.Children[0].ParentID.ID.Snowflake())
		e.fails(e.db.Create(&Client{ID: -5}), types.ErrRange)
	}},
}
