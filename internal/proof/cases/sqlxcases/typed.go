package sqlxcases

import (
	"fmt"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// client, account and holding are typed by themselves.
type client struct {
	ID       types.ID[client] `db:"id"`
	Name     string           `db:"name"`
	Accounts []account        `db:"-" snowkey:"typed_accounts,fk=client_id"`
}

type account struct {
	ID       types.ID[account]     `db:"id"`
	ClientID types.ID[client]      `db:"client_id"`
	ParentID types.NullID[account] `db:"parent_id"`
	Holdings []*holding            `db:"-" snowkey:"typed_holdings,fk=account_id"`
	Children []*account            `db:"-" snowkey:"typed_accounts,fk=parent_id"`
}

type holding struct {
	ID        types.ID[holding]  `db:"id"`
	AccountID *types.ID[account] `db:"account_id"`
}

var typedTables = []string{
	"CREATE TABLE typed_clients (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE)",
	"CREATE TABLE typed_accounts (id BIGINT PRIMARY KEY, client_id BIGINT NOT NULL REFERENCES typed_clients (id), parent_id BIGINT REFERENCES typed_accounts (id))",
	"CREATE TABLE typed_holdings (id BIGINT PRIMARY KEY, account_id BIGINT REFERENCES typed_accounts (id))",
}

func (d Database) typedGraph(t *testing.T) {
	d.tables(t, typedTables...)
	h := sqlxhelper.New(NewCounter(0))
	clients := make([]client, 30) // enough for a bulk statement
	for i := range clients {
		clients[i] = client{Name: fmt.Sprint(i), Accounts: []account{{Holdings: []*holding{{}, {}}}, {}}}
	}
	if err := h.InsertGraph(ctx, d.DB, "typed_clients", clients); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	for i := range clients {
		c := &clients[i]
		var stored []account
		if err := d.DB.Select(&stored, fmt.Sprintf("SELECT * FROM typed_accounts WHERE client_id = %d ORDER BY id", c.ID)); err != nil || len(stored) != 2 {
			t.Fatalf("accounts of client %d = %d, %v; want 2", c.ID, len(stored), err)
		}
		for k, a := range stored {
			if want := c.Accounts[k]; a.ID != want.ID || a.ClientID != c.ID || want.ClientID != c.ID || a.ParentID.Valid {
				t.Errorf("account = %+v; want key %d of client %d and no parent", a, want.ID, c.ID)
			}
		}
		for _, held := range c.Accounts[0].Holdings {
			if held.ID.IsZero() || held.AccountID == nil || *held.AccountID != c.Accounts[0].ID {
				t.Errorf("holding = %+v; want a key, and the account %d", held, c.Accounts[0].ID)
			}
		}
	}
	d.wantCount(t, "typed_holdings", 60)

	parent := clients[0].Accounts[0]
	child := account{ClientID: clients[1].ID, ParentID: types.NullID[account]{ID: parent.ID, Valid: true}}
	if err := h.Insert(ctx, d.DB, "typed_accounts", &child); err != nil || child.ID.IsZero() {
		t.Errorf("Insert(*account) = %v with key %d; want nil and a key", err, child.ID)
	}
	d.wantCount(t, "typed_accounts", 61)
}

func (d Database) typedRows(t *testing.T) {
	d.tables(t, typedTables[0])
	h := sqlxhelper.New(NewCounter(0))
	many := make([]client, 50)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	if err := h.InsertMany(ctx, d.DB, "typed_clients", many); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	seen := map[types.ID[client]]bool{}
	for _, c := range many {
		seen[c.ID] = true
	}
	if len(seen) != len(many) || seen[0] {
		t.Errorf("InsertMany(%d rows) set %d keys, or a zero; want one each", len(many), len(seen))
	}
	again := []client{{Name: "7"}, {Name: "new"}}
	up := sqlxhelper.New(NewCounter(5000), sqlxhelper.OnConflictDoNothing("name"))
	if err := up.InsertMany(ctx, d.DB, "typed_clients", again); err != nil {
		t.Fatalf("InsertMany(upsert) = %v; want nil", err)
	}
	if again[0].ID != many[7].ID || again[1].ID.IsZero() || seen[again[1].ID] {
		t.Errorf("keys after an upsert = %d, %d; want %d, which is stored, and a new one", again[0].ID, again[1].ID, many[7].ID)
	}
	n, err := sqlxhelper.InsertSeq(ctx, sqlxhelper.New(NewCounter(9000)), d.DB, "typed_clients", func(yield func(client, error) bool) {
		for i := range 300 {
			if !yield(client{Name: fmt.Sprint("seq", i)}, nil) {
				return
			}
		}
	})
	if n != 300 || err != nil {
		t.Errorf("InsertSeq(300 rows) = %d, %v; want 300, nil", n, err)
	}
	d.wantCount(t, "typed_clients", 351)
}
