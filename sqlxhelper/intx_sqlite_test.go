package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/types"
)

// openTwice opens a database by two pools, whose connections wait for no lock.
func openTwice(t *testing.T, parameters string) (one, other *sqlx.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	open := func() *sqlx.DB {
		db, err := sqlx.Open("sqlite3", "file:"+path+"?_busy_timeout=0&_synchronous=OFF&"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
		return db
	}
	one, other = open(), open()
	exec(t, one, "CREATE TABLE rows (id INTEGER PRIMARY KEY)")
	return one, other
}

func exec(t *testing.T, db sqlx.Execer, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// releasing is a pool that ends another transaction when it has failed to begin
// one.
type releasing struct {
	*sqlx.DB
	held   *sqlx.Tx
	failed int
}

func (r *releasing) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	tx, err := r.DB.BeginTxx(ctx, opts)
	if err != nil {
		if r.failed++; r.failed == 2 {
			err := r.held.Rollback()
			if err != nil {
				return nil, err
			}
		}
	}
	return tx, err
}

func TestBusyBeginIsTriedAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=WAL&_txlock=immediate")
	held, err := other.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	db := &releasing{DB: one, held: held}
	err = inTx(t.Context(), (&conn{pool: db}).database(false), nil, func(tx *sqlx.Tx) error {
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	})
	if err != nil || db.failed != 2 {
		t.Errorf("InTx() = %v after %d beginnings that failed; want nil after 2", err, db.failed)
	}
	wantKeys(t, one, 7)
}

// In WAL mode a transaction that has read cannot write once another one has
// committed.
func TestBusySnapshotIsRunAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=WAL")
	runs := 0
	err := InTx(t.Context(), one, nil, func(tx *sqlx.Tx) error {
		runs++
		var n int
		if err := tx.Get(&n, "SELECT COUNT(*) FROM rows"); err != nil {
			return err
		}
		if runs == 1 {
			exec(t, other, "INSERT INTO rows VALUES (1)")
		}
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	wantKeys(t, one, 1, 7)
}

// With a rollback journal a reader keeps a writer from committing. SQLite leaves
// the transaction open then, and the driver ends it.
func TestBusyCommitIsRunAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=DELETE")
	one.SetMaxOpenConns(1) // the same connection again
	exec(t, other, "INSERT INTO rows VALUES (1)")
	reader, err := other.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.Get(&n, "SELECT COUNT(*) FROM rows"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = InTx(t.Context(), one, nil, func(tx *sqlx.Tx) error {
		if runs++; runs == 2 {
			if err := reader.Rollback(); err != nil {
				return err
			}
		}
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	wantKeys(t, one, 1, 7)
}

// wantKeys fails the test if the table does not hold exactly these.
func wantKeys(t *testing.T, db *sqlx.DB, keys ...int64) {
	t.Helper()
	var got []int64
	if err := db.Select(&got, "SELECT id FROM rows ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, keys) {
		t.Errorf("keys = %v; want %v", got, keys)
	}
}

// A lateSQLite is a driver whose first COMMIT fails, and takes place after all, or is
// rolled back, when a while has passed.
type lateSQLite struct {
	sqlite3.SQLiteDriver
	dsn      string
	hold     <-chan time.Time // ends the while
	rollback bool

	once sync.Once
	late sync.WaitGroup // for the transaction that is not over
}

func (d *lateSQLite) Driver() driver.Driver { return d }

func (d *lateSQLite) Connect(context.Context) (driver.Conn, error) {
	c, err := d.Open(d.dsn)
	if err != nil {
		return nil, err
	}
	return &lateConn{SQLiteConn: c.(*sqlite3.SQLiteConn), driver: d}, nil
}

type lateConn struct {
	*sqlite3.SQLiteConn
	driver *lateSQLite
	bad    bool
}

func (c *lateConn) IsValid() bool { return !c.bad }

// Close leaves a connection with a late transaction open until that is over.
func (c *lateConn) Close() error {
	if c.bad {
		return nil
	}
	return c.SQLiteConn.Close()
}

func (c *lateConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.SQLiteConn.BeginTx(ctx, opts)
	return &lateTx{tx, c}, err
}

type lateTx struct {
	driver.Tx
	conn *lateConn
}

func (tx *lateTx) Commit() (err error) {
	late := false
	tx.conn.driver.once.Do(func() { late = true })
	if !late {
		return tx.Tx.Commit()
	}
	tx.conn.bad = true
	tx.conn.driver.late.Go(func() {
		<-tx.conn.driver.hold
		if tx.conn.driver.rollback {
			_ = tx.Rollback()
		} else {
			_ = tx.Tx.Commit()
		}
		_ = tx.conn.SQLiteConn.Close()
	})
	return io.ErrUnexpectedEOF
}

// Whatever the journal, the writer holds the lock of the file until its transaction is
// over, and the look waits for that.
func TestCommitThatIsLateOnSQLiteIsWaitedFor(t *testing.T) {
	for _, journal := range []string{"WAL", "DELETE"} {
		for _, rollback := range []bool{false, true} {
			dsn := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_busy_timeout=0&_synchronous=OFF&_journal_mode=" + journal
			late := &lateSQLite{dsn: dsn, hold: time.After(300 * time.Millisecond), rollback: rollback}
			db := sqlx.NewDb(sql.OpenDB(late), "sqlite3")
			if _, err := db.Exec("CREATE TABLE rows (id INTEGER PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			var keys []int64
			err := InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
				row := types.Model{ID: types.Snowflake(7 + len(keys))}
				keys = append(keys, int64(row.ID))
				return New(nil).Insert(t.Context(), tx, "rows", &row)
			})
			if want := map[bool]int{false: 1, true: 2}[rollback]; err != nil || len(keys) != want {
				t.Errorf("InTx(%s, late commit is rolled back: %v) = %v after %d runs; want nil after %d", journal, rollback, err, len(keys), want)
			}
			wantKeys(t, db, keys[len(keys)-1]) // what is in memory
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			late.late.Wait()
		}
	}
}

func TestCommitThatStaysOpenOnSQLiteIsUnknown(t *testing.T) {
	dsn := "file:" + filepath.Join(t.TempDir(), "test.db") + "?_busy_timeout=0&_synchronous=OFF&_journal_mode=WAL"
	hold := make(chan time.Time)
	late := &lateSQLite{dsn: dsn, hold: hold}
	db := sqlx.NewDb(sql.OpenDB(late), "sqlite3")
	defer func() { close(hold); _ = db.Close(); late.late.Wait() }()
	if _, err := db.Exec("CREATE TABLE rows (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	runs := 0
	err := InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		runs++
		return New(nil).Insert(ctx, tx, "rows", &types.Model{ID: 7})
	})
	if !errors.Is(err, ErrCommitUnknown) || !errors.Is(err, context.DeadlineExceeded) || runs != 1 {
		t.Errorf("InTx() = %v after %d runs; want ErrCommitUnknown and the deadline after 1", err, runs)
	}
}

// The error of the raw statement ends the transaction, and the second row is stored by itself.
func TestInTxDoesNotKnowWhatIsStoredIfFnWentOnAfterTheEndOfItsTransaction(t *testing.T) {
	db, _ := openTwice(t, "")
	exec(t, db, "CREATE TABLE names (name TEXT UNIQUE ON CONFLICT ROLLBACK)")
	exec(t, db, "INSERT INTO names VALUES ('taken')")
	runs := 0
	err := InTx(t.Context(), db, nil, func(tx *sqlx.Tx) error {
		runs++
		h := New(nil)
		if err := h.Insert(t.Context(), tx, "rows", &types.Model{ID: 1}); err != nil {
			return err
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO names VALUES ('taken')"); err == nil {
			t.Error("a name was stored twice")
		}
		return h.Insert(t.Context(), tx, "rows", &types.Model{ID: 2})
	})
	var unknown *UnknownError
	if !errors.As(err, &unknown) || !errors.Is(err, ErrCommitUnknown) || len(unknown.Rows) != 0 || runs != 1 {
		t.Errorf("InTx() = %v after %d runs; want ErrCommitUnknown without rows after 1", err, runs)
	}
	var stored []int64
	if err := db.Select(&stored, "SELECT id FROM rows"); err != nil || !slices.Equal(stored, []int64{2}) {
		t.Errorf("stored = %v, %v; want 2 alone", stored, err)
	}
}
