package servers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
)

// What shardmove_test.go does with LOCK TABLE in a transaction, MySQL and MariaDB do with the metadata lock
// that a SELECT holds until the transaction ends, and LOCK TABLES on a connection of the mover's own.
func TestATableIsTheLockOfAShardOnMySQLToo(t *testing.T) {
	t.Parallel()
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		t.Parallel()
		db := w.place(t).sqlx(t).DB
		execSqlx(t, db, "CREATE TABLE shard_3 (nothing INT)")
		const hold = "SELECT nothing FROM shard_3"

		// A mover waits for the writer that is there, and a writer that comes for the mover.
		writer := db.MustBegin()
		_, err := writer.Exec(hold)
		must(t, err)
		mover := ownConn(t, db)
		locked := make(chan error, 1)
		go func() {
			_, err := mover.ExecContext(t.Context(), "LOCK TABLES shard_3 WRITE")
			locked <- err
		}()
		awaitMetadataLocks(t, db, 1)
		second := db.MustBegin()
		held := make(chan error, 1)
		go func() {
			_, err := second.Exec(hold)
			held <- err
		}()
		awaitMetadataLocks(t, db, 2)
		must(t, writer.Commit())
		must(t, <-locked)
		awaitMetadataLocks(t, db, 1)

		// A mover that dies leaves the shard where it is.
		must(t, kill(t, db, mover))
		must(t, <-held)
		must(t, second.Commit())

		// One that does not, takes it away.
		mover = ownConn(t, db)
		_, err = mover.ExecContext(t.Context(), "LOCK TABLES shard_3 WRITE")
		must(t, err)
		third := db.MustBegin()
		go func() {
			_, err := third.Exec(hold)
			held <- err
		}()
		awaitMetadataLocks(t, db, 1)
		_, err = mover.ExecContext(t.Context(), "DROP TABLE shard_3")
		must(t, err)
		var refused *mysql.MySQLError
		if err := <-held; !errors.As(err, &refused) || refused.Number != 1146 {
			t.Errorf("the writer that waited got %v; want error 1146, no such table", err)
		}
		_ = third.Rollback()
	})
}

func ownConn(t *testing.T, db *sqlx.DB) *sqlx.Conn {
	t.Helper()
	conn, err := db.Connx(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// kill ends the connection as the server does when the program is gone.
func kill(t *testing.T, db *sqlx.DB, conn *sqlx.Conn) error {
	t.Helper()
	var id int64
	must(t, conn.GetContext(t.Context(), &id, "SELECT connection_id()"))
	_, err := db.Exec(fmt.Sprintf("KILL %d", id))
	return err
}

// awaitMetadataLocks returns when n connections of the database wait for one.
func awaitMetadataLocks(t *testing.T, db *sqlx.DB, n int) {
	t.Helper()
	for waiting := -1; waiting != n; time.Sleep(time.Millisecond) {
		must(t, db.Get(&waiting, "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'Waiting for table metadata lock'"))
	}
}
