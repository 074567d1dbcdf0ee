//go:build unix

package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A shard moves from one database to another while it is written. Without a proxy, what keeps a program
// with an old Map from writing to the old place is a table without columns for each shard, shard_17, in the
// database that holds it. A writer's transaction begins with LOCK TABLE shard_17 IN ROW SHARE MODE. If there
// is no such table, the shard is elsewhere.
//
// The mover takes the table's exclusive lock, which waits for the writers and makes new ones wait, copies
// what is left, and drops the table. A row of a table of shards that writers lock FOR SHARE would not do:
// PostgreSQL lets them pass by the mover that waits for the row. With 32 writers of 50 ms each it waited until
// they ended, after 10 s, and for the table 0.1 to 0.2 s.
//
// What changes in the course of the copy is found by triggers that note the keys.
const moveTables = shardTables + `;
	CREATE TABLE shard_changes (name TEXT NOT NULL, id BIGINT NOT NULL);
	CREATE TABLE shards_left (shard BIGINT PRIMARY KEY);
	CREATE FUNCTION shard_change() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE key BIGINT := CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END;
	BEGIN
		IF key & 15 = TG_ARGV[0]::BIGINT THEN
			INSERT INTO shard_changes VALUES (TG_TABLE_NAME, key);
		END IF;
		RETURN NULL;
	END $$`

const moveShardBits = 4 // as in shard_change

var moveTableNames = []string{"orders", "lines"}

// A mover moves a shard. If it dies, another one goes on.
type mover struct {
	from, to *sqlx.DB
	shard    int64
	at       func(step string)

	target *sqlx.Conn // of to, with the lock
	copied int
}

var moveSteps = []string{"noted", "cleared", "a page", "copied", "caught up", "locked", "complete", "left", "arrived"}

// move returns when the shard is in m.to. Until finish, its rows are also in m.from.
func (m *mover) move(ctx context.Context) (err error) {
	// All writes to the target have this connection, whose lock says that there is no other mover: one
	// that was taken for dead could write an old state of a row over a new one.
	if m.target, err = m.to.Connx(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.target.Close()) }()
	if _, err := m.target.ExecContext(ctx, "SELECT pg_advisory_lock(hashtext('shard'), $1)", m.shard); err != nil {
		return err
	}
	var left, gone bool
	if err := m.from.QueryRowxContext(ctx, "SELECT EXISTS (SELECT FROM shards_left WHERE shard = $1), to_regclass($2) IS NULL",
		m.shard, m.table()).Scan(&left, &gone); err != nil {
		return err
	}
	if gone != left {
		return fmt.Errorf("shard %d has left: %t, is gone: %t", m.shard, left, gone)
	}
	if !left {
		if err := m.copyAll(ctx); err != nil {
			return err
		}
		if err := m.leave(ctx); err != nil {
			return err
		}
		m.at("left")
	}
	// From here on the shard is in m.to, which a mover that goes on reads in shards_left.
	if _, err := m.target.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+m.table()+" ()"); err != nil {
		return err
	}
	m.at("arrived")
	_, err = m.target.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtext('shard'), $1)", m.shard)
	return err
}

// copyAll copies the shard, less what changes meanwhile.
func (m *mover) copyAll(ctx context.Context) error {
	if err := m.noteChanges(ctx); err != nil {
		return err
	}
	m.at("noted")
	// There may be rows of a move that was given up, or never finished.
	if err := m.clear(ctx, m.target); err != nil {
		return err
	}
	m.at("cleared")
	for _, table := range moveTableNames {
		for after := int64(0); ; {
			var keys []int64
			err := m.from.SelectContext(ctx, &keys, "SELECT id FROM "+table+" WHERE id > $1 AND (id & 15) = $2 ORDER BY id LIMIT 500", after, m.shard)
			if err != nil {
				return err
			}
			if len(keys) == 0 {
				break
			}
			if err := m.copy(ctx, m.from, map[string][]int64{table: keys}); err != nil {
				return err
			}
			m.at("a page")
			after = keys[len(keys)-1]
		}
	}
	m.at("copied")
	for n := 100; n >= 100; {
		err := m.patiently(ctx, func(tx *sqlx.Tx) (err error) {
			n, err = m.catchUp(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	m.at("caught up")
	return nil
}

// noteChanges creates the triggers. Each waits for all transactions that write to its table, and those that
// come wait for it, but not for long. In one transaction the two would deadlock with writers.
func (m *mover) noteChanges(ctx context.Context) error {
	for _, table := range moveTableNames {
		err := m.patiently(ctx, func(tx *sqlx.Tx) error {
			var there bool
			err := tx.GetContext(ctx, &there, "SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2)", table, m.table())
			if err == nil && !there {
				_, err = tx.ExecContext(ctx, fmt.Sprintf("CREATE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION shard_change(%d)",
					m.table(), table, m.shard))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leave copies what has changed since, with no writer in between, and ends what m.from holds.
func (m *mover) leave(ctx context.Context) error {
	return m.patiently(ctx, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, "LOCK TABLE "+m.table()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		m.at("locked")
		if _, err := m.catchUp(ctx, tx); err != nil { // committed there before it is dropped here
			return err
		}
		m.at("complete")
		_, err := tx.ExecContext(ctx, "DROP TABLE "+m.table())
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO shards_left VALUES ($1)", m.shard)
		}
		return err
	})
}

// patiently runs a transaction in m.from, again and again while others are in its way. It lets those
// pass that wait for it. If this program's host is lost, the server ends the transaction.
func (m *mover) patiently(ctx context.Context, do func(*sqlx.Tx) error) error {
	for {
		tx, err := m.from.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "SET LOCAL lock_timeout = '1s'; SET LOCAL idle_in_transaction_session_timeout = '10s'")
		if err == nil {
			err = do(tx)
		}
		if err == nil {
			return tx.Commit()
		}
		_ = tx.Rollback()
		if sqlState(err) != "55P03" {
			return err
		}
	}
}

// catchUp copies the rows that were noted. A row that is being changed is noted when that commits.
func (m *mover) catchUp(ctx context.Context, tx *sqlx.Tx) (n int, err error) {
	var changes []struct {
		Name string
		ID   int64
	}
	if err := tx.SelectContext(ctx, &changes, "DELETE FROM shard_changes RETURNING name, id"); err != nil {
		return 0, err
	}
	keys := make(map[string][]int64)
	for _, c := range changes {
		keys[c.Name] = append(keys[c.Name], c.ID)
	}
	return len(changes), m.copy(ctx, tx, keys)
}

// copy makes rows in m.to what they are in m.from.
func (m *mover) copy(ctx context.Context, from sqlx.QueryerContext, keys map[string][]int64) error {
	tx, err := m.target.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	// No triggers and no foreign keys, as where PostgreSQL itself replicates.
	if _, err := tx.ExecContext(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
		return err
	}
	for table, keys := range keys {
		var rows string
		if err := sqlx.GetContext(ctx, from, &rows, "SELECT coalesce(jsonb_agg(t), '[]')::text FROM "+table+" t WHERE id = ANY($1)", keys); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE id = ANY($1)", keys); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, "INSERT INTO "+table+" SELECT * FROM jsonb_populate_recordset(NULL::"+table+", $1::text::jsonb)", rows)
		if err != nil {
			return err
		}
		n, _ := done.RowsAffected()
		m.copied += int(n)
	}
	return tx.Commit()
}

// finish removes what is left in m.from. Programs whose Map is old no longer find the rows there.
func (m *mover) finish(ctx context.Context) error {
	conn, err := m.from.Connx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := m.clear(ctx, conn); err != nil {
		return err
	}
	for _, table := range moveTableNames {
		err := m.patiently(ctx, func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, "DROP TRIGGER "+m.table()+" ON "+table)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("BEGIN; DELETE FROM shard_changes; DELETE FROM shards_left WHERE shard = %d; COMMIT", m.shard))
	return err
}

// clear removes the rows of the shard from the database of a connection.
func (m *mover) clear(ctx context.Context, conn *sqlx.Conn) error {
	_, err := conn.ExecContext(ctx, fmt.Sprintf(`BEGIN; SET LOCAL session_replication_role = replica;
		DELETE FROM lines WHERE (id & 15) = %[1]d; DELETE FROM orders WHERE (id & 15) = %[1]d; COMMIT`, m.shard))
	return err
}

func (m *mover) table() string { return shardTable(m.shard) }

func shardTable(n int64) string { return fmt.Sprintf("shard_%d", n) }

// shardsOf asks the databases which shards they hold. In the midst of a move one is missing.
func shardsOf(ctx context.Context, l core.Layout, dbs []*sqlx.DB) (*shard.Map[*sqlx.DB], error) {
	of := make(map[int64]*sqlx.DB)
	for _, db := range dbs {
		var shards []int64
		if err := db.SelectContext(ctx, &shards, `SELECT substr(relname, 7)::bigint FROM pg_class WHERE relkind = 'r' AND relname ~ '^shard_\d+$'`); err != nil {
			return nil, err
		}
		for _, n := range shards {
			of[n] = db
		}
	}
	return shard.New(l, of)
}

// A shardWriter is a program with a Map of its own. It inserts, changes and deletes orders of its own on
// one shard.
type shardWriter struct {
	dbs    []*sqlx.DB
	helper *sqlxhelper.Helper
	layout core.Layout
	shard  int64
	random *rand.Rand

	m      *shard.Map[*sqlx.DB]
	orders map[types.Snowflake]types.Snowflake // what is stored: the customers of its orders
	writes atomic.Int64
}

func (w *shardWriter) run(ctx context.Context) error {
	always := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		if w.m == nil {
			m, err := shardsOf(always, w.layout, w.dbs)
			if missing := (*core.ValueError)(nil); errors.As(err, &missing) {
				time.Sleep(time.Millisecond) // it polls, as a program does
				continue
			}
			if err != nil {
				return err
			}
			w.m = m
		}
		switch err := w.write(always); {
		case err == nil:
			w.writes.Add(1)
		case sqlState(err) == "42P01": // no such table: the shard is elsewhere
			w.m = nil
		default:
			return err
		}
	}
	return nil
}

func (w *shardWriter) write(ctx context.Context) error {
	db, err := w.m.On(w.shard)
	if err != nil {
		return err
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "LOCK TABLE "+shardTable(w.shard)+" IN ROW SHARE MODE"); err != nil {
		return err
	}
	order := shardOrder{Customer: types.Snowflake(w.random.Int64N(1e9)), Lines: make([]shardLine, 2)}
	what := w.random.IntN(3) // the shard stays as large as it was
	var old types.Snowflake
	for old = range w.orders { // any
		break
	}
	switch {
	case what == 0 || old == 0:
		err = w.helper.InsertGraph(core.OnShard(ctx, w.shard), tx, "orders", &order)
		old = order.ID
	case what == 1:
		_, err = tx.ExecContext(ctx, "UPDATE orders SET customer = $2 WHERE id = $1", old, order.Customer)
	default:
		if _, err = tx.ExecContext(ctx, "DELETE FROM lines WHERE order_id = $1", old); err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM orders WHERE id = $1", old)
		}
		order.Customer = 0
	}
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if order.Customer == 0 {
		delete(w.orders, old)
	} else {
		w.orders[old] = order.Customer
	}
	return nil
}

// A process that TestAShardOfPostgres… starts.
func TestAProcessThatMovesAShard(t *testing.T) {
	args := strings.Fields(os.Getenv("SNOWKEY_MOVE"))
	if len(args) == 0 {
		t.Skip("another test starts it")
	}
	m := mover{from: openSqlx(t, "pgx", args[0]), to: openSqlx(t, "pgx", args[1]), shard: 3}
	m.at = func(step string) {
		if step == strings.Join(args[2:], " ") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	must(t, m.move(t.Context()))
}

func TestAShardOfPostgresMovesWhileItIsWritten(t *testing.T) {
	t.Parallel()
	dsns, dbs := postgresDatabases(t, 2, moveTables)
	gen := shardGenerator(t, moveShardBits, 23)
	helper := sqlxhelper.New(gen)
	for n := range int64(16) {
		execSqlx(t, dbs[0], "CREATE TABLE "+shardTable(n)+" ()")
	}
	const moved = 3
	stored := make([]shardOrder, inNights(1000, 20_000)) // before any writer
	for i := range stored {
		stored[i] = shardOrder{Customer: 1, Lines: make([]shardLine, 2)}
	}
	must(t, helper.InsertGraph(core.OnShard(t.Context(), moved), dbs[0], "orders", stored))
	must(t, helper.InsertGraph(core.OnShard(t.Context(), moved), dbs[1], "orders", &shardOrder{Lines: make([]shardLine, 1)})) // of a move that was given up

	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); wg.Wait() })
	writers := make([]*shardWriter, 5)
	for i := range writers {
		w := &shardWriter{dbs: dbs, helper: helper, layout: gen.Layout(), shard: moved, orders: make(map[types.Snowflake]types.Snowflake),
			random: rand.New(rand.NewPCG(uint64(i), 3))}
		if i == 0 {
			w.shard++ // it stays where it is
		}
		writers[i] = w
		wg.Go(func() {
			if err := w.run(ctx); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	await := func(writes int64) {
		for _, w := range writers {
			for until := w.writes.Load() + writes; w.writes.Load() < until && !t.Failed(); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	// holders returns the databases that accept writes to the shard.
	holders := func() (in []int) {
		for i, db := range dbs {
			var there bool
			must(t, db.Get(&there, "SELECT to_regclass($1) IS NOT NULL", shardTable(moved)))
			if there {
				in = append(in, i)
			}
		}
		return in
	}

	// There, by movers that are killed in each step. The old database holds the shard until the step
	// that drops its table, and after it none does until another mover goes on.
	await(20)
	for _, step := range append(slices.Clone(moveSteps), "never") {
		mover := exec.Command(os.Args[0], "-test.run=^TestAProcessThatMovesAShard$")
		mover.Env = append(os.Environ(), fmt.Sprintf("SNOWKEY_MOVE=%s %s %s", dsns[0], dsns[1], step))
		out, err := mover.CombinedOutput()
		if killed := mover.ProcessState.Sys().(syscall.WaitStatus).Signaled(); killed == (step == "never") {
			t.Fatalf("the mover that dies at %q ends with %v\n%s", step, err, out)
		}
		want := []int{0}
		switch step {
		case "left":
			want = nil
		case "arrived", "never":
			want = []int{1}
		}
		if got := holders(); !slices.Equal(got, want) {
			t.Fatalf("after the mover died at %q, databases %v hold the shard; want %v", step, got, want)
		}
		if want != nil {
			await(5)
		}
	}
	before := rowsOfShard(t, dbs[0], moved)
	await(20)
	if !maps.Equal(rowsOfShard(t, dbs[0], moved), before) {
		t.Error("the old database has other rows of the shard than when it left; want none written")
	}
	back := &mover{from: dbs[0], to: dbs[1], shard: moved, at: func(string) {}}
	must(t, back.finish(t.Context()))

	// And back, at one go.
	var closed time.Duration
	var at time.Time
	back = &mover{from: dbs[1], to: dbs[0], shard: moved, at: func(step string) {
		switch step {
		case "locked":
			at = time.Now()
		case "arrived":
			closed = time.Since(at)
		}
	}}
	must(t, back.move(t.Context()))
	await(5)
	stop()
	wg.Wait()
	var writes int64
	for _, w := range writers {
		writes += w.writes.Load()
	}
	t.Logf("%d rows were copied back, of %d writes in all; the shard was closed for %s", back.copied, writes, closed)

	// Every order is once, with its lines, where the Map says, and as its writer left it.
	want := make(map[types.Snowflake]types.Snowflake)
	for _, o := range stored {
		want[o.ID] = o.Customer
	}
	for _, w := range writers[1:] {
		maps.Copy(want, w.orders)
	}
	if got := rowsOfShard(t, dbs[0], moved); !maps.Equal(got, want) {
		t.Errorf("%d orders are in the shard; want the %d that were written, as they were", len(got), len(want))
	}
	var lines int
	must(t, dbs[0].Get(&lines, "SELECT count(*) FROM lines JOIN orders ON orders.id = order_id WHERE (lines.id & 15) = $1", moved))
	if lines != 2*len(want) {
		t.Errorf("%d lines have their orders; want %d", lines, 2*len(want))
	}
	must(t, back.finish(t.Context()))
	if left := rowsOfShard(t, dbs[1], moved); len(left) > 0 {
		t.Errorf("finish leaves %d orders; want none", len(left))
	}
}

// rowsOfShard returns the customers of the orders of a shard.
func rowsOfShard(t *testing.T, db *sqlx.DB, n int64) map[types.Snowflake]types.Snowflake {
	t.Helper()
	var orders []shardOrder
	must(t, db.Select(&orders, "SELECT * FROM orders WHERE (id & 15) = $1", n))
	rows := make(map[types.Snowflake]types.Snowflake)
	for _, o := range orders {
		rows[o.ID] = o.Customer
	}
	return rows
}
