//go:build linux

package fire

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/snowkey/snowkey/core/feed"
)

// Rows of the other nodes come without the trigger, and from transactions that this node does not know.
func TestAFeedHasNoHorizonOnGalera(t *testing.T) {
	Need(t, "mariadbd", "mariadb-install-db", "rsync")
	g := newGalera(t, NewNetwork(t))
	var nodes []*sql.DB
	for _, n := range g.nodes {
		nodes = append(nodes, n.db)
	}
	noHorizon(t, nodes)
}

// noHorizon wants an error from each member of a cluster in which all take writes.
func noHorizon(t *testing.T, members []*sql.DB) {
	t.Helper()
	if _, err := members[0].ExecContext(t.Context(), "CREATE TABLE fire.feed_orders (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	for i, db := range members {
		f, err := feed.New(feed.Config{DB: db, Dialect: feed.MySQL, Table: "fire.feed_orders", Reader: "mail"})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := f.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			if h, err := f.Horizon(t.Context(), 0); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) {
				t.Fatalf("Horizon() of member %d = %d, %v; want ErrUnknownHorizon", i, h, err)
			}
		}
	}
}
