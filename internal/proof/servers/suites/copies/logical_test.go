package copies

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/types"
)

// A row is one of the table notes, or what replication tells of it.
type row struct {
	ID     types.Snowflake     `json:"id"`
	Parent types.NullSnowflake `json:"parent_id"`
	Text   string              `json:"note"`
}

// A change is one of the table notes. Old is nil unless it was sent, and New if the row is
// deleted.
type change struct {
	Kind     string // insert, update or delete
	Old, New *row
}

// A stream reads changes as a program with pglogrepl does.
type stream struct {
	*testing.T
	conn      *pgconn.PgConn
	relations map[uint32]*pglogrepl.RelationMessageV2
	types     *pgtype.Map
	streaming bool // in a transaction that is not committed yet
}

// stream starts to read the publication all of a database.
func (p postgres) stream(database string, options ...string) *stream {
	p.Helper()
	conn, err := pgconn.Connect(p.Context(), p.in(database)+"&replication=database")
	must(p, err)
	p.Cleanup(func() { _ = conn.Close(context.WithoutCancel(p.Context())) })
	slot := "slot_" + strings.ToLower(rand.Text())
	_, err = pglogrepl.CreateReplicationSlot(p.Context(), conn, slot, "pgoutput", pglogrepl.CreateReplicationSlotOptions{Temporary: true})
	must(p, err)
	must(p, pglogrepl.StartReplication(p.Context(), conn, slot, 0, pglogrepl.StartReplicationOptions{
		PluginArgs: append(options, `publication_names '"all"'`),
	}))
	return &stream{T: p.T, conn: conn, relations: map[uint32]*pglogrepl.RelationMessageV2{}, types: pgtype.NewMap()}
}

// message returns the next message that is no keep-alive.
func (s *stream) message() pglogrepl.Message {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	for {
		received, err := s.conn.ReceiveMessage(ctx)
		must(s, err)
		data, ok := received.(*pgproto3.CopyData)
		if !ok {
			s.Fatalf("replication has sent %#v; want changes", received)
		}
		if data.Data[0] != pglogrepl.XLogDataByteID {
			continue
		}
		log, err := pglogrepl.ParseXLogData(data.Data[1:])
		must(s, err)
		m, err := pglogrepl.ParseV2(log.WALData, s.streaming)
		must(s, err)
		return m
	}
}

// changes returns the next n changes.
func (s *stream) changes(n int) (list []change) {
	s.Helper()
	for len(list) < n {
		switch m := s.message().(type) {
		case *pglogrepl.RelationMessageV2:
			s.relations[m.RelationID] = m
		case *pglogrepl.InsertMessageV2:
			list = append(list, change{"insert", nil, s.row(m.RelationID, m.Tuple)})
		case *pglogrepl.UpdateMessageV2:
			list = append(list, change{"update", s.row(m.RelationID, m.OldTuple), s.row(m.RelationID, m.NewTuple)})
		case *pglogrepl.DeleteMessageV2:
			list = append(list, change{"delete", s.row(m.RelationID, m.OldTuple), nil})
		case *pglogrepl.StreamStartMessageV2:
			s.streaming = true
		case *pglogrepl.StreamStopMessageV2:
			s.streaming = false
		}
	}
	return list
}

// row decodes the columns, each by the methods of its type and by pgx.
func (s *stream) row(relation uint32, tuple *pglogrepl.TupleData) *row {
	s.Helper()
	if tuple == nil {
		return nil
	}
	var r row
	to := map[string]any{"id": &r.ID, "parent_id": &r.Parent, "note": &r.Text}
	for i, column := range tuple.Columns {
		d := s.relations[relation].Columns[i]
		if column.DataType == pglogrepl.TupleDataTypeNull {
			continue
		}
		format := int16(pgtype.TextFormatCode)
		if column.DataType == pglogrepl.TupleDataTypeBinary {
			format = pgtype.BinaryFormatCode
		}
		must(s, s.types.Scan(d.DataType, format, column.Data, to[d.Name]))
		if d.Name != "id" {
			continue
		}
		var direct types.Snowflake
		decode := direct.UnmarshalText
		if format == pgtype.BinaryFormatCode {
			decode = direct.UnmarshalBinary
		}
		if err := decode(column.Data); err != nil || direct != r.ID {
			s.Errorf("decoding %q = %d, %v; pgx says %d", column.Data, direct, err, r.ID)
		}
	}
	return &r
}

const notes = "CREATE TABLE notes (id BIGINT PRIMARY KEY, parent_id BIGINT, note TEXT)"

// published makes a database with a table whose changes are published.
func (p postgres) published(name string) shop {
	p.Helper()
	s := p.shop(name)
	statements(p, s.db, notes, `CREATE PUBLICATION "all" FOR ALL TABLES`)
	return s
}

// write inserts, updates and deletes rows, and returns the changes that a reader must see if
// the old row is sent whole, or if only its key is.
func write(t testing.TB, db *sql.DB, whole bool) (list []change) {
	t.Helper()
	ids := keys()
	none := func(id types.Snowflake) *row { return &row{ID: id} }
	if whole {
		none = func(id types.Snowflake) *row { return nil }
	}
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	do := func(query string, args ...any) {
		t.Helper()
		_, err := tx.ExecContext(t.Context(), query, args...)
		must(t, err)
	}
	var parent types.NullSnowflake
	rows := map[types.Snowflake]row{}
	for _, id := range ids[:len(ids)-1] {
		r := row{id, parent, "a"}
		do("INSERT INTO notes VALUES ($1, $2, $3)", r.ID, r.Parent, r.Text)
		list = append(list, change{"insert", nil, &r})
		rows[id], parent = r, types.NullSnowflake{Snowflake: id, Valid: true}
	}
	// The key stays.
	for _, id := range ids[:3] {
		before, after := rows[id], rows[id]
		after.Text = "b"
		do("UPDATE notes SET note = $2 WHERE id = $1", id, after.Text)
		rows[id] = after
		if whole {
			list = append(list, change{"update", &before, &after})
		} else {
			list = append(list, change{"update", nil, &after})
		}
	}
	// The key changes, to the greatest.
	before, last := rows[ids[2]], ids[len(ids)-1]
	after := before
	after.ID = last
	do("UPDATE notes SET id = $2 WHERE id = $1", before.ID, last)
	old := none(before.ID)
	if whole {
		old = &before
	}
	list = append(list, change{"update", old, &after})
	old = none(last)
	if whole {
		old = &after
	}
	do("DELETE FROM notes WHERE id = $1", last)
	list = append(list, change{"delete", old, nil})
	do("DELETE FROM notes WHERE id = $1", ids[1])
	gone := rows[ids[1]]
	old = none(ids[1])
	if whole {
		old = &gone
	}
	list = append(list, change{"delete", old, nil})
	must(t, tx.Commit())
	return list
}

// pgoutput sends keys as digits or as eight bytes, in each version of its protocol.
func TestLogicalReplicationKeepsEveryKey(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "wal_level=logical")
	s := p.published("shop")
	var version int
	must(t, s.db.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&version))
	latest := 3
	if version >= 16 {
		latest = 4
	}
	for protocol := 1; protocol <= latest; protocol++ {
		for _, form := range []string{"false", "true"} {
			for _, identity := range []string{"DEFAULT", "FULL"} {
				t.Run(fmt.Sprintf("%d/binary=%s/%s", protocol, form, identity), func(t *testing.T) {
					p := p
					p.T = t
					statements(t, s.db, "TRUNCATE notes", "ALTER TABLE notes REPLICA IDENTITY "+identity)
					changes := p.stream(s.name, fmt.Sprintf("proto_version '%d'", protocol), fmt.Sprintf("binary '%s'", form))
					want := write(t, s.db, identity == "FULL")
					compareChanges(t, changes.changes(len(want)), want)
				})
			}
		}
	}
}

func compareChanges(t *testing.T, got, want []change) {
	t.Helper()
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("change %d = %s %+v → %+v; want %s %+v → %+v", i, got[i].Kind, got[i].Old, got[i].New, want[i].Kind, want[i].Old, want[i].New)
		}
	}
}

// A large transaction is sent before it is committed.
func TestLogicalReplicationKeepsTheKeysOfATransactionInProgress(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "wal_level=logical", "logical_decoding_work_mem=64kB")
	s := p.published("shop")
	changes := p.stream(s.name, "proto_version '2'", "streaming 'on'", "binary 'true'")
	tx, err := s.db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	first := int64(1<<60 + 1)
	const n = 5_000
	_, err = tx.ExecContext(t.Context(), "INSERT INTO notes SELECT $1 + i, $1 + i, repeat('x', 100) FROM generate_series(0, $2::bigint - 1) i", first, n)
	must(t, err)
	check := func(from, until int) {
		t.Helper()
		for i, c := range changes.changes(until - from) {
			want := types.Snowflake(first + int64(from+i))
			if c.Kind != "insert" || c.New.ID != want || c.New.Parent != (types.NullSnowflake{Snowflake: want, Valid: true}) {
				t.Fatalf("change %d = %s %+v; want an insert of %d", from+i, c.Kind, c.New, want)
			}
		}
	}
	check(0, 100)
	if !changes.streaming {
		t.Errorf("the changes were not streamed; want them before the commit")
	}
	must(t, tx.Commit())
	check(100, n)
}

// A subscriber has the keys of the publisher. Sequences are not replicated, which matters to
// a counter and not to snowkey.
func TestASubscriberHasTheKeysAndNeedsNoSequence(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "wal_level=logical")
	publisher, subscriber := p.shop("publisher"), p.shop("subscriber")
	tables := []string{notes, "CREATE TABLE counted (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, note TEXT)"}
	for _, s := range []shop{publisher, subscriber} {
		statements(t, s.db, tables...)
	}
	statements(t, publisher.db,
		`CREATE PUBLICATION "all" FOR ALL TABLES`,
		"INSERT INTO notes VALUES (4611686018427387905, NULL, 'copied at first')",
		"INSERT INTO counted (note) VALUES ('copied at first')",
		"SELECT pg_create_logical_replication_slot('subscription', 'pgoutput')")
	// Publisher and subscriber are one server, so the slot must be there already.
	statements(t, subscriber.db, fmt.Sprintf(`CREATE SUBSCRIPTION subscription CONNECTION '%s' PUBLICATION "all"
		WITH (create_slot = false, binary = true)`, p.in("publisher")))
	t.Cleanup(func() { // or the server would wait for it
		_, _ = subscriber.db.ExecContext(context.WithoutCancel(t.Context()), "DROP SUBSCRIPTION subscription")
	})
	write(t, publisher.db, false)
	statements(t, publisher.db, "INSERT INTO counted (note) VALUES ('replicated')")
	same := func(table string) {
		t.Helper()
		want := texts(t, publisher.db, "SELECT * FROM "+table)
		var got []string
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if got = texts(t, subscriber.db, "SELECT * FROM "+table); slices.Equal(got, want) {
				return
			}
		}
		t.Errorf("the subscriber has %d rows of %s, some of them other ones; want %d as the publisher has", len(got), table, len(want))
	}
	same("notes")
	same("counted")

	// The subscriber becomes the primary.
	_, err := subscriber.db.ExecContext(t.Context(), "INSERT INTO counted (note) VALUES ('the next')")
	if failure := new(pgconn.PgError); !errors.As(err, &failure) || failure.Code != "23505" {
		t.Errorf("INSERT by the counter of the subscriber = %v; want a duplicate key: its sequence begins at 1", err)
	}
	id := subscriber.next(subscriber.acquire(lease.Config{Namespace: "subscriber"}))
	statements(t, subscriber.db, "INSERT INTO notes VALUES ("+id.String()+")")
}

// Two primaries with a lease table each give out the same worker number, unless the numbers are
// divided.
func TestTwoPrimariesDivideTheWorkerNumbers(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	one, other := p.shop("one"), p.shop("other")
	meet := func(namespace string, a, b lease.Config) error {
		t.Helper()
		a.Namespace, b.Namespace = namespace, namespace
		first, err := core.New(core.Config{Worker: one.acquire(a), Datacenter: a.Datacenter, Layout: a.Layout})
		must(t, err)
		defer func() { must(t, first.Close(t.Context())) }()
		l := other.acquire(b)
		second, err := core.New(core.Config{Worker: l, Datacenter: b.Datacenter, Layout: b.Layout})
		if err != nil {
			must(t, l.Close(t.Context()))
			return err
		}
		must(t, second.Close(t.Context()))
		return nil
	}
	seven := lease.Config{Workers: []int64{7}}
	if err := meet("same", seven, seven); !errors.Is(err, core.ErrWorkerInUse) {
		t.Errorf("two generators of two primaries = %v; want ErrWorkerInUse", err)
	}
	if err := meet("workers", seven, lease.Config{Workers: []int64{8}}); err != nil {
		t.Errorf("with other numbers in Config.Workers = %v; want no error", err)
	}
	layout := core.Twitter() // which has datacenters
	if err := meet("datacenters", lease.Config{Layout: layout, Datacenter: 1, Workers: []int64{7}}, lease.Config{Layout: layout, Datacenter: 2, Workers: []int64{7}}); err != nil {
		t.Errorf("with another datacenter = %v; want no error", err)
	}
}
