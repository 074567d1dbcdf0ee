package sqlxcases

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
)

// sequence returns n rows. The one at, counted from 0, comes with an error or is refused
// by the CHECK.
func sequence(n, at int, failed error) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		for i := range n {
			r, err := row{N: i, A: "a"}, error(nil)
			if i == at {
				r.N, err = -1, failed
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

var errSequence = errors.New("the sequence has failed")

func (d Database) sequences(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	const rows = 11_000 // three parts
	n, err := sqlxhelper.InsertSeq(ctx, h, d.DB, "many_rows", sequence(rows, -1, nil))
	if err != nil || n != rows {
		t.Errorf("InsertSeq(%d rows) = %d, %v", rows, n, err)
	}
	d.wantCount(t, "many_rows", rows)

	n, err = sqlxhelper.InsertSeq(ctx, h, d.DB, "many_rows", sequence(rows, 10_500, errSequence))
	if !errors.Is(err, errSequence) || n != 0 {
		t.Errorf("InsertSeq(that fails) = %d, %v; want 0, %v", n, err, errSequence)
	}
	d.wantCount(t, "many_rows", rows)

	n, err = sqlxhelper.InsertSeq(ctx, h, d.DB, "many_rows", sequence(rows, 10_500, nil))
	if e := (*sqlxhelper.InsertError)(nil); n != 0 || !errors.As(err, &e) || e.Row != 10_500 && e.Row != -1 || e.First > 10_500 || e.Last < 10_500 {
		t.Errorf("InsertSeq(a row that is refused) = %d, %v; want an InsertError of row 10500, or of a statement with it", n, err)
	}
	d.wantCount(t, "many_rows", rows)
}

// The transaction goes on after a sequence that has failed, whatever it was.
func (d Database) sequencesInTx(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(0))
	tx := d.begin(t)
	if err := h.Insert(ctx, tx, "many_rows", &row{N: 1}); err != nil {
		t.Fatal(err)
	}
	ending, cancel := context.WithCancel(ctx)
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		rows iter.Seq2[row, error]
		want error
	}{
		"fails":      {ctx, sequence(7000, 6000, errSequence), errSequence},
		"is refused": {ctx, sequence(7000, 6000, nil), nil},
		"is canceled": {ending, func(yield func(row, error) bool) {
			sequence(7000, -1, nil)(func(r row, err error) bool {
				if r.N == 6000 {
					cancel()
				}
				return yield(r, err)
			})
		}, context.Canceled},
	} {
		n, err := sqlxhelper.InsertSeq(c.ctx, h, tx, "many_rows", c.rows)
		if n != 0 || err == nil || !errors.Is(err, c.want) && c.want != nil || errors.Is(err, sqlxhelper.ErrTxBroken) {
			t.Fatalf("InsertSeq(that %s) = %d, %v; want 0, %v, and the transaction to go on", name, n, err, c.want)
		}
	}
	if n, err := sqlxhelper.InsertSeq(ctx, h, tx, "many_rows", sequence(6000, -1, nil)); n != 6000 || err != nil {
		t.Errorf("InsertSeq() afterwards = %d, %v; want 6000", n, err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	d.wantCount(t, "many_rows", 6001)
}

// A temporary table is seen by its connection alone.
func (d Database) connection(t *testing.T) {
	c, err := d.DB.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ExecContext(ctx, "CREATE TEMPORARY TABLE own_rows (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, a VARCHAR(20), b VARCHAR(20), c VARCHAR(20), d VARCHAR(20))"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = c.ExecContext(ctx, "DROP TABLE own_rows") }()
	h, at := sqlxhelper.New(NewCounter(0)), sqlxhelper.OnConn(c, d.DB.DriverName())
	if err := h.InsertMany(ctx, at, "own_rows", make([]row, 3000)); err != nil {
		t.Errorf("InsertMany() = %v", err)
	}
	if n, err := sqlxhelper.InsertSeq(ctx, h, at, "own_rows", sequence(6000, -1, nil)); n != 6000 || err != nil {
		t.Errorf("InsertSeq() = %d, %v; want 6000", n, err)
	}
	var n int
	if err := c.GetContext(ctx, &n, "SELECT count(*) FROM own_rows"); err != nil || n != 9000 {
		t.Errorf("rows in the temporary table = %d, %v; want 9000", n, err)
	}
}

// A raw BEGIN is no transaction to database/sql. What it has done must neither be
// committed by a call nor be lost by the refusal.
func (d Database) connectionInTransaction(t *testing.T) {
	d.tables(t, rowsTable)
	c, err := d.DB.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	h, at := sqlxhelper.New(NewCounter(0)), sqlxhelper.OnConn(c, d.DB.DriverName())
	exec := func(text string) {
		t.Helper()
		if _, err := c.ExecContext(ctx, text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
	for name, call := range map[string]func() error{
		"InsertMany": func() error { return h.InsertMany(ctx, at, "many_rows", newRows(3000)) },
		"InsertSeq": func() error {
			_, err := sqlxhelper.InsertSeq(ctx, h, at, "many_rows", sequence(10, -1, nil))
			return err
		},
		"an upsert": func() error {
			return h.With(sqlxhelper.OnConflictDoNothing("id")).Insert(ctx, at, "many_rows", &row{})
		},
	} {
		for end, want := range map[string]int{"ROLLBACK": 0, "COMMIT": 1} {
			exec("BEGIN")
			exec("INSERT INTO many_rows (id, n) VALUES (-1, 1)")
			if err := call(); !errors.Is(err, sqlxhelper.ErrDB) {
				t.Errorf("%s after BEGIN = %v; want ErrDB", name, err)
			}
			exec(end)
			d.wantCount(t, "many_rows", want)
			d.exec(t, "DELETE FROM many_rows")
		}
		if err := call(); err != nil {
			t.Errorf("%s after the transaction = %v; want nil", name, err)
		}
		d.exec(t, "DELETE FROM many_rows")
	}
}
