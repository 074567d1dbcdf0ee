package sqlxhelper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

func ExampleHelper_InsertGraph() {
	db := newDatabase()
	h := sqlxhelper.New(newSource())

	// Two statements in one transaction, however many orders there are.
	orders := []Order{
		{Number: "A-1", Items: []Item{{SKU: "apple"}, {SKU: "pear"}}},
		{Number: "A-2", Items: []Item{{SKU: "plum"}}},
	}
	if err := h.InsertGraph(context.Background(), db, "orders", orders); err != nil {
		log.Fatal(err)
	}
	for _, o := range orders {
		for _, i := range o.Items {
			fmt.Println(o.Number, o.ID, i.SKU, i.OrderID == o.ID)
		}
	}
	// Output:
	// A-1 1001 apple true
	// A-1 1001 pear true
	// A-2 1002 plum true
}

type Author struct {
	types.Model
	Name string `db:"name"`
}

type Post struct {
	types.Model
	Title    string          `db:"title"`
	AuthorID types.Snowflake `db:"author_id"`
	Author   *Author         `db:"-" snowkey:"authors,belongs_to=author_id"`
}

func ExampleHelper_InsertGraph_belongsTo() {
	db := newDatabase()
	db.MustExec(`
		CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
		CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL, author_id INTEGER NOT NULL REFERENCES authors (id))`)
	h := sqlxhelper.New(newSource())
	ctx := context.Background()

	ada := &Author{Name: "Ada"}
	posts := []Post{{Title: "Loops", Author: ada}, {Title: "Notes", Author: ada}}
	if err := h.InsertGraph(ctx, db, "posts", posts); err != nil {
		log.Fatal(err)
	}
	// Ada is stored now: refer to her by the key, for the pointer would insert her
	// again.
	later := Post{Title: "Letters", AuthorID: ada.ID}
	if err := h.InsertGraph(ctx, db, "posts", &later); err != nil {
		log.Fatal(err)
	}
	var titles []string
	if err := db.Select(&titles, "SELECT title || ' by ' || name FROM posts JOIN authors ON authors.id = author_id ORDER BY posts.id"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(titles, posts[0].AuthorID == ada.ID)
	// Output: [Loops by Ada Notes by Ada Letters by Ada] true
}
