package sqlxcases

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// keyTypes stores rows by every call, and again by an upsert.
func (d Database) keyTypes(t *testing.T) {
	t.Run("Typed", func(t *testing.T) { fillsKeys[types.ID[client]](t, d) })
	t.Run("Integer", func(t *testing.T) { fillsKeys[uint](t, d) })
}

func fillsKeys[K ~int64 | ~uint](t *testing.T, d Database) {
	type reader struct {
		ID   K      `db:"id"`
		Name string `db:"name"`
	}
	d.tables(t, d.integerTables()[0])
	h := sqlxhelper.New(NewCounter(1000), sqlxhelper.WithIntegerKeys())
	one, many := &reader{Name: "one"}, []reader{{Name: "a"}, {Name: "given", ID: 7}, {Name: "b"}}
	if err := errors.Join(h.InsertMany(ctx, d.DB, "int_readers", many), h.Insert(ctx, d.DB, "int_readers", one)); err != nil {
		t.Fatalf("InsertMany(), Insert() = %v; want nil", err)
	}
	again := []reader{{Name: "a"}, {Name: "c"}}
	if err := h.With(sqlxhelper.OnConflictDoNothing("name")).InsertMany(ctx, d.DB, "int_readers", again); err != nil {
		t.Fatalf("InsertMany(upsert) = %v; want nil", err)
	}
	if got, want := []K{many[0].ID, many[1].ID, many[2].ID, one.ID, again[0].ID, again[1].ID}, []K{1001, 7, 1002, 1003, 1001, 1005}; !slices.Equal(got, want) {
		t.Errorf("keys = %d; want %d, of which 7 was given, and 1001 stored before the upsert", got, want)
	}
	if err := h.InsertMany(ctx, d.DB, "int_readers", []reader{{Name: "d"}, {ID: 1001, Name: "e"}}); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
		t.Errorf("InsertMany(a stored key) = %v; want ErrDuplicateKey", err)
	}
	wide := K(1) // as a signed number it is below zero
	wide <<= 63
	if err := h.Insert(ctx, d.DB, "int_readers", &reader{ID: wide, Name: "f"}); !errors.Is(err, types.ErrRange) || !strings.Contains(err.Error(), fmt.Sprintf("ID is %d, want 0..9223372036854775807", wide)) {
		t.Errorf("Insert(%d) = %v; want types.ErrRange with the value", wide, err)
	}
	yielded := map[K]bool{}
	pointers, err := sqlxhelper.InsertSeq(ctx, h, d.DB, "int_readers", func(yield func(*reader, error) bool) {
		for i := range 300 {
			m := &reader{Name: fmt.Sprint(i)}
			if !yield(m, nil) {
				return
			}
			yielded[m.ID] = true
		}
	})
	if pointers != 300 || err != nil || len(yielded) != 300 || yielded[0] {
		t.Errorf("InsertSeq(300 pointers) = %d, %v with %d keys; want 300, nil, 300", pointers, err, len(yielded))
	}
	structs, err := sqlxhelper.InsertSeq(ctx, h, d.DB, "int_readers", func(yield func(reader, error) bool) {
		for i := range 300 {
			if !yield(reader{Name: fmt.Sprint("struct ", i)}, nil) {
				return
			}
		}
	})
	if structs != 300 || err != nil {
		t.Errorf("InsertSeq(300 structs) = %d, %v; want 300, nil", structs, err)
	}
	d.wantCount(t, "int_readers", 605)
}
