package gormcases

import (
	"database/sql"
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
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

var typedCases = []testCase{
	{"TypedKeysAreFilledWithoutATag", func(e *env) {
		e.migrate(&Client{}, &Account{}, &Login{}, &ClientGroup{}, &Share{})
		c := Client{
			Name: "A", Logins: []Login{{}, {}}, Groups: []*ClientGroup{{Name: "G"}},
			Accounts: []Account{{Name: "1", Children: []Account{{Name: "1.1", Client: &Client{Name: "B"}}}}, {Name: "2"}},
		}
		e.must(e.db.Create(&c))
		e.stored("clients", "name", "A", c.ID.Snowflake())
		first := &c.Accounts[0]
		e.stored("accounts", "name", "1", first.ID.Snowflake())
		equal(e, "ClientID", first.ClientID, c.ID)
		equal(e, "ParentID of a root", first.ParentID, types.NullID[Account]{})
		child := first.Children[0]
		e.stored("accounts", "name", "1.1", child.ID.Snowflake())
		equal(e, "ParentID of a child", child.ParentID, types.NullID[Account]{ID: first.ID, Valid: true})
		e.stored("clients", "name", "B", child.ClientID.Snowflake())
		equal(e, "OwnerID", c.Logins[1].OwnerID, c.ID.Snowflake())
		e.count("client_members", 1)

		var back Client
		e.must(e.db.Preload("Accounts.Children.Client").Preload("Accounts.Parent").Preload("Logins").Preload("Groups").First(&back, c.ID))
		equal(e, "preloaded accounts", len(back.Accounts), 2)
		equal(e, "preloaded child", back.Accounts[0].Children[0].ID, child.ID)
		equal(e, "preloaded client of the child", back.Accounts[0].Children[0].Client.ID, child.ClientID)
		equal(e, "preloaded logins", len(back.Logins), 2)
		equal(e, "preloaded group", back.Groups[0].ID, c.Groups[0].ID)
		var joined Account
		e.must(e.db.Joins("Client").Joins("Parent").Where(&Account{Name: "1.1"}).First(&joined))
		equal(e, "joined client", joined.Client.Name, "B")
		equal(e, "joined parent", joined.Parent.ID, first.ID)
	}},
	{"TypedKeysAreFilledInMapsUpsertsAndCompositeKeys", func(e *env) {
		e.migrate(&Client{}, &Account{}, &Login{}, &ClientGroup{}, &Share{})
		values := map[string]any{"Name": "M"}
		e.must(e.db.Model(&Client{}).Create(values))
		id, ok := values["id"].(types.ID[Client])
		if !ok {
			e.Fatalf("the key in the map is a %T; want a types.ID[Client]", values["id"])
		}
		e.stored("clients", "name", "M", id.Snowflake())

		again := []Client{{Name: "M"}, {Name: "N"}}
		e.must(e.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&again))
		equal(e, "key of the row that was met", again[0].ID, id)
		e.stored("clients", "name", "N", again[1].ID.Snowflake())

		share := Share{TenantID: id, Name: "S"}
		e.must(e.db.Create(&share))
		equal(e, "TenantID", share.TenantID, id)
		e.stored("shares", "name", "S", share.ID.Snowflake())

		owned := Account{ClientID: id, Name: "O"}
		e.must(e.db.Create(&owned))
		if err := e.db.Model(&owned).Association("Parent").Append(&Account{ClientID: id, Name: "P"}); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		e.stored("accounts", "name", "P", owned.ParentID.ID.Snowflake())
	}},
	{"TypedKeysAreCheckedAsOthersAre", func(e *env) {
		type Counted struct {
			ID types.ID[Client] `gorm:"autoIncrement"`
		}
		type narrow struct {
			ID       types.ID[Client]
			ParentID int32
			Parent   *narrow
		}
		type Optional struct {
			ID  types.ID[Client]
			Ref sql.Null[types.ID[Account]] `gorm:"snowflake"`
		}
		for what, model := range map[string]any{"autoIncrement": &Counted{}, "int32": &narrow{}} {
			var wrong *gormplugin.ModelError
			if tx := e.db.Create(model); !errors.As(tx.Error, &wrong) || !strings.Contains(wrong.Error(), what) {
				e.Errorf("Create = %v; want a ModelError about %s", tx.Error, what)
			}
		}
		e.migrate(&Optional{})
		o := Optional{}
		e.must(e.db.Create(&o))
		equal(e, "the key in a sql.Null is filled", o.Ref.Valid && o.Ref.V != 0, true)
		if tx := e.db.Create(&Optional{ID: -5}); !errors.Is(tx.Error, types.ErrRange) {
			e.Errorf("Create with a negative key = %v; want types.ErrRange", tx.Error)
		}

		e.migrate(&Client{}, &Account{}, &Login{}, &ClientGroup{}, &Share{})
		e.finds([]any{&Client{}, &Account{}, &Login{}, &ClientGroup{}, &Share{}})
		type Pointing struct {
			ID     types.ID[Client]
			HostID *types.ID[Client]
			Host   *Client
		}
		e.migrate(&Pointing{})
		found := slices.DeleteFunc(e.allFindings(&Pointing{}), func(f schemacheck.Finding) bool { return f.Problem != schemacheck.PointerReference })
		if len(found) != 1 || found[0].Want != "types.NullID" {
			e.Errorf("Check found %v; want a pointer that should be a types.NullID", found)
		}
	}},
}
