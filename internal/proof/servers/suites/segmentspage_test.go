package servers

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
)

// ordersRow returns a store with a row for the orders.
func (g leaseTarget) ordersRow(t *testing.T, db *sql.DB, row segment.Row) *sqlsegment.Store {
	t.Helper()
	s := g.segments(t, db, "")
	must(t, s.CreateTables(t.Context()))
	row.Tag, row.Step = "orders", 10
	must(t, s.Create(t.Context(), row))
	return s
}

func TestThePageAboutSegmentsHasTheStatementsOfLeaf(t *testing.T) {
	g := wayTo("MariaDB").target(t)
	_, blocks := onPage(t, "segments.md")
	if want := strings.Join(leaseTarget{place: place{way: g.way}}.segments(t, g.open(t), "leaf_alloc").AlterLeaf(), ";\n") + ";\n"; blocks[0] != want {
		t.Errorf("the page shows %s; want %s", blocks[0], want)
	}
}

// ordersOf are two programs on the table orders. The old one inserts with numbers of the
// database, and the new one with those of an allocator.
type ordersOf struct {
	t    *testing.T
	old  *sql.Conn
	more string // the statement of the old one
	new  *segment.Allocator
	with string // that of the new one
}

// run lets both insert in turns. No key may be there already.
func (o ordersOf) run() {
	o.t.Helper()
	for i := range 60 {
		if i%3 > 0 {
			_, err := o.old.ExecContext(o.t.Context(), o.more)
			must(o.t, err)
		}
		id, err := o.new.Next(o.t.Context())
		must(o.t, err)
		_, err = o.old.ExecContext(o.t.Context(), o.with, int64(id))
		must(o.t, err)
	}
}

func newOrders(t *testing.T, g leaseTarget, db *sql.DB, s *sqlsegment.Store, more, with string) ordersOf {
	t.Helper()
	conn, err := db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	a, err := segment.New(s, segment.Config{
		Tag: "orders", Hold: -1, Logger: slog.New(slog.DiscardHandler),
		Floor: s.Floor(sqlsegment.Column{Table: "orders", Name: "id"}),
	})
	must(t, err)
	t.Cleanup(func() { _ = a.Close(t.Context()) })
	return ordersOf{t, conn, more, a, with}
}

func TestASequenceWithAnEndRunsBesideSegments(t *testing.T) {
	_, blocks := onPage(t, "segments.md")
	endSequence, noSerial := blocks[0], blocks[1]
	g := wayTo("pgx").target(t)
	db := g.open(t)
	g.exec(t, "CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, number TEXT)")
	const more = "INSERT INTO orders (number) VALUES ('old')"
	g.exec(t, more)
	s := g.ordersRow(t, db, segment.Row{Next: 1, Stride: 1})
	g.exec(t, endSequence)
	_, err := s.Raise(t.Context(), "orders", 2000001)
	must(t, err)
	orders := newOrders(t, g, db, s, more, "INSERT INTO orders VALUES ($1, 'new')")
	orders.run()

	g.exec(t, "SELECT setval('orders_id_seq', 1999999)")
	g.exec(t, more)
	if _, err := g.admin.Exec(more); err == nil || !strings.Contains(err.Error(), "reached maximum value") {
		t.Errorf("an insert by the old program after the end = %v; want that the sequence is at its end", err)
	}
	g.exec(t, noSerial)
	if _, err := g.admin.Exec(more); err == nil || !strings.Contains(err.Error(), "null value") {
		t.Errorf("an insert by the old program without a default = %v; want that there is no value", err)
	}
}

func TestACounterOfOddNumbersRunsBesideSegments(t *testing.T) {
	_, blocks := onPage(t, "segments.md")
	onMariaDBAndMySQL(t, func(t *testing.T, w way) { oddBesideSegments(t, blocks[0], blocks[1], w.target(t)) })
}

func oddBesideSegments(t *testing.T, odd, noCounter string, g leaseTarget) {
	db := g.open(t)
	g.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, number TEXT)")
	const more = "INSERT INTO orders (number) VALUES ('old')"
	for range 8 {
		g.exec(t, more)
	}
	s := g.ordersRow(t, db, segment.Row{Next: 1, Stride: 2})
	if row, err := s.RaiseAboveMax(t.Context(), "orders", sqlsegment.Column{Table: "orders", Name: "id"}); err != nil || row.Next != 5 {
		t.Errorf("RaiseAboveMax above 8 with stride 2 = %+v, %v; want next = 5", row, err)
	}
	orders := newOrders(t, g, db, s, more, "INSERT INTO orders VALUES (?, 'new')")
	// The server has other users.
	_, err := orders.old.ExecContext(t.Context(), strings.ReplaceAll(odd, "GLOBAL", "SESSION"))
	must(t, err)
	orders.run()

	g.exec(t, noCounter)
	if _, err := orders.old.ExecContext(t.Context(), more); err == nil {
		t.Error("an insert by the old program without AUTO_INCREMENT = nil; want an error")
	}
	must(t, segment.Restride(t.Context(), "orders", 1, s))
	orders.more = "SELECT 1"
	orders.run()
}
