package sqlxcases

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// reader, post and label have integer keys, as programs have that let the database count.
type reader struct {
	ID    uint   `db:"id"`
	Name  string `db:"name"`
	Posts []post `db:"-" snowkey:"int_posts,fk=reader_id"`
}

type post struct {
	ID         int64         `db:"id"`
	ReaderID   uint          `db:"reader_id"`
	ReviewerID *uint         `db:"reviewer_id"`
	ParentID   sql.NullInt64 `db:"parent_id"`
	Words      int64         `db:"words"` // no key, and therefore negative if it likes
	Reviewer   *reader       `db:"-" snowkey:"int_readers,belongs_to=reviewer_id"`
	Replies    []*post       `db:"-" snowkey:"int_posts,fk=parent_id"`
	Labels     []label       `db:"-" snowkey:"int_labels,fk=post_id"`
}

type label struct {
	ID     labelID         `db:"id"`
	PostID sql.Null[int64] `db:"post_id"`
}

type labelID uint64

// chat and message are as those of Telegram, whose groups have keys below zero.
type chat struct {
	ID       int64     `db:"id"`
	Title    string    `db:"title"`
	Messages []message `db:"-" snowkey:"int_messages,fk=chat_id"`
}

type message struct {
	ID      int64  `db:"id"`
	ChatID  int64  `db:"chat_id"`
	Answers *int64 `db:"answers"`

	Replies []message `db:"-" snowkey:"int_messages,fk=answers"`
}

// integerTables returns the tables, whose first key the database counts where it is not given.
func (d Database) integerTables() []string {
	key, counts := "BIGINT", "INTEGER PRIMARY KEY AUTOINCREMENT"
	switch d.Dialect {
	case sqlxhelper.PostgreSQL:
		counts = "BIGSERIAL PRIMARY KEY"
	case sqlxhelper.MySQL:
		key, counts = "BIGINT UNSIGNED", "BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY"
	}
	return []string{
		"CREATE TABLE int_readers (id " + counts + ", name VARCHAR(20) NOT NULL UNIQUE)",
		"CREATE TABLE int_posts (id BIGINT PRIMARY KEY, words BIGINT NOT NULL, reader_id " + key + " NOT NULL REFERENCES int_readers (id), " +
			"reviewer_id " + key + " REFERENCES int_readers (id), parent_id BIGINT REFERENCES int_posts (id))",
		"CREATE TABLE int_labels (id " + key + " PRIMARY KEY, post_id BIGINT REFERENCES int_posts (id))",
	}
}

// stored returns the rows of a table in the order of their keys.
func stored[T any](t *testing.T, d Database, table string) (rows []T) {
	t.Helper()
	if err := d.DB.Select(&rows, "SELECT * FROM "+table+" ORDER BY id"); err != nil {
		t.Fatalf("Select(%s) = %v", table, err)
	}
	return rows
}

func (d Database) integerGraph(t *testing.T) {
	d.tables(t, d.integerTables()...)
	reviewer := &reader{Name: "reviewer"}
	readers := make([]reader, 30) // enough for a bulk statement
	for i := range readers {
		readers[i] = reader{Name: fmt.Sprint(i), Posts: []post{{Words: int64(i), Labels: make([]label, 2)}, {}}}
	}
	h := sqlxhelper.New(NewCounter(1<<52), sqlxhelper.WithIntegerKeys())
	if err := h.InsertGraph(ctx, d.DB, "int_readers", readers); err != nil {
		t.Fatalf("InsertGraph(readers) = %v; want nil", err)
	}
	replies := make([]post, 0, len(readers))
	for i := range readers {
		first := &readers[i].Posts[0]
		replies = append(replies, post{ReaderID: readers[i].ID, ParentID: sql.NullInt64{Int64: first.ID, Valid: true}, Words: -1, Reviewer: reviewer,
			Replies: []*post{{ReaderID: readers[i].ID}}})
	}
	if err := h.InsertGraph(ctx, d.DB, "int_posts", replies); err != nil {
		t.Fatalf("InsertGraph(replies) = %v; want nil", err)
	}

	var posts []post
	var labels []label
	people := []reader{*reviewer}
	for i := range readers {
		people = append(people, reader{ID: readers[i].ID, Name: readers[i].Name})
		for _, p := range readers[i].Posts {
			if p.ReaderID != readers[i].ID || p.ReaderID <= 1<<52 {
				t.Errorf("post = %+v; want that of reader %d", p, readers[i].ID)
			}
			for _, l := range p.Labels {
				if l.PostID.V != p.ID || !l.PostID.Valid || l.ID == 0 {
					t.Errorf("label = %+v; want a key, and the post %d", l, p.ID)
				}
				labels = append(labels, l)
			}
			posts = append(posts, p)
		}
		reply := replies[i]
		below := *reply.Replies[0]
		if reply.ReviewerID == nil || *reply.ReviewerID != reviewer.ID || below.ParentID.Int64 != reply.ID || !below.ParentID.Valid {
			t.Errorf("reply = %+v with %+v below; want the reviewer %d, and %d below", reply, below, reviewer.ID, reply.ID)
		}
		posts = append(posts, reply, below)
	}
	for i := range posts {
		posts[i].Reviewer, posts[i].Replies, posts[i].Labels = nil, nil, nil
	}
	wantSame(t, stored[reader](t, d, "int_readers"), people, func(m reader) any { return m.ID })
	wantSame(t, stored[post](t, d, "int_posts"), posts, func(p post) any { return p.ID })
	wantSame(t, stored[label](t, d, "int_labels"), labels, func(l label) any { return l.ID })
}

// wantSame fails the test if the stored rows are not those in memory, in any order.
func wantSame[T any](t *testing.T, got, want []T, key func(T) any) {
	t.Helper()
	at := map[any]T{}
	for _, row := range want {
		at[key(row)] = row
	}
	if len(got) != len(want) || len(at) != len(want) {
		t.Errorf("%T: %d rows are stored, %d keys in memory; want %d", got, len(got), len(at), len(want))
	}
	for _, row := range got {
		if want := at[key(row)]; !reflect.DeepEqual(row, want) {
			t.Errorf("stored %+v; want %+v", row, want)
		}
	}
}

func (d Database) integersBelowZero(t *testing.T) {
	d.tables(t, "CREATE TABLE int_chats (id BIGINT PRIMARY KEY, title VARCHAR(20) NOT NULL UNIQUE)",
		"CREATE TABLE int_messages (id BIGINT PRIMARY KEY, chat_id BIGINT NOT NULL REFERENCES int_chats (id), answers BIGINT REFERENCES int_messages (id))")
	h := sqlxhelper.New(NewCounter(1000), sqlxhelper.WithIntegerKeys())
	chats := []chat{{ID: -7, Title: "a", Messages: make([]message, 2)}, {Title: "b"}, {ID: -9, Title: "c"}}
	if err := h.InsertGraph(ctx, d.DB, "int_chats", chats); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	first := int64(-20)
	messages := []message{{ChatID: -9, Answers: &first}, {ID: first, ChatID: -9}} // the second has to be sent first
	if err := h.InsertMany(ctx, d.DB, "int_messages", messages); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	again := []chat{{Title: "c", Messages: make([]message, 1)}, {Title: "a", Messages: make([]message, 1)}, {Title: "d"}}
	if err := h.With(sqlxhelper.OnConflictDoNothing("title"), sqlxhelper.Returning("id")).InsertGraph(ctx, d.DB, "int_chats", again); err != nil {
		t.Fatalf("InsertGraph(upsert) = %v; want nil", err)
	}
	if again[0].ID != -9 || again[1].ID != -7 || again[2].ID <= 1000 {
		t.Errorf("keys after an upsert = %d, %d, %d; want -9 and -7, which are stored, and a new one", again[0].ID, again[1].ID, again[2].ID)
	}
	for id, want := range map[int64]int{-7: 3, -9: 3} {
		var got int
		if err := d.DB.Get(&got, fmt.Sprintf("SELECT count(*) FROM int_messages WHERE chat_id = %d", id)); err != nil || got != want {
			t.Errorf("messages of chat %d = %d, %v; want %d", id, got, err, want)
		}
	}
	type typed struct {
		types.Model
		Title string `db:"title"`
	}
	row := &typed{Title: "a"}
	if err := h.With(sqlxhelper.OnConflictDoNothing("title")).Insert(ctx, d.DB, "int_chats", row); !errors.Is(err, types.ErrRange) {
		t.Errorf("Insert(upsert) of a types.Snowflake that meets the key -7 = %v; want types.ErrRange", err)
	}
}
