package copies

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
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
	ID     types.Snowflake
	Parent types.NullSnowflake
	Text   string
}

// A change is one of the table notes: a row as it is now, or the key of a row that was deleted.
type change struct {
	Kind string // insert, update or delete
	row
}

// A stream reads changes as a program with pglogrepl does.
type stream struct {
	*testing.T
	conn      *pgconn.PgConn
	relations map[uint32]*pglogrepl.RelationMessageV2
	types     *pgtype.Map
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
		m, err := pglogrepl.ParseV2(log.WALData, false)
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
			list = append(list, change{"insert", s.row(m.RelationID, m.Tuple)})
		case *pglogrepl.UpdateMessageV2:
			list = append(list, change{"update", s.row(m.RelationID, m.NewTuple)})
		case *pglogrepl.DeleteMessageV2:
			list = append(list, change{"delete", s.row(m.RelationID, m.OldTuple)})
		}
	}
	return list
}

// row decodes the columns, each by the methods of its type and by pgx.
func (s *stream) row(relation uint32, tuple *pglogrepl.TupleData) (r row) {
	s.Helper()
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
	return r
}

const notes = "CREATE TABLE notes (id BIGINT PRIMARY KEY, parent_id BIGINT, note TEXT)"

// published makes a database with a table whose changes are published.
func (p postgres) published(name string) shop {
	p.Helper()
	s := p.shop(name)
	statements(p, s.db, notes, `CREATE PUBLICATION "all" FOR ALL TABLES`)
	return s
}

// write inserts, updates and deletes rows, and returns the changes that a reader must see.
func write(t testing.TB, db *sql.DB) (list []change) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	do := func(kind string, r row, query string, args ...any) {
		t.Helper()
		_, err := tx.ExecContext(t.Context(), query, args...)
		must(t, err)
		list = append(list, change{kind, r})
	}
	ids := keys()
	last := ids[len(ids)-1]
	parents := make([]types.NullSnowflake, len(ids)) // the first has none
	for i, id := range ids[:len(ids)-1] {
		do("insert", row{id, parents[i], "a"}, "INSERT INTO notes VALUES ($1, $2, 'a')", id, parents[i])
		parents[i+1] = types.NullSnowflake{Snowflake: id, Valid: true}
	}
	do("update", row{ids[1], parents[1], "b"}, "UPDATE notes SET note = 'b' WHERE id = $1", ids[1])
	do("update", row{last, parents[2], "a"}, "UPDATE notes SET id = $2 WHERE id = $1", ids[2], last)
	do("delete", row{ID: last}, "DELETE FROM notes WHERE id = $1", last)
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
			t.Run(fmt.Sprintf("%d/binary=%s", protocol, form), func(t *testing.T) {
				p := p
				p.T = t
				statements(t, s.db, "TRUNCATE notes")
				changes := p.stream(s.name, fmt.Sprintf("proto_version '%d'", protocol), fmt.Sprintf("binary '%s'", form))
				want := write(t, s.db)
				for i, got := range changes.changes(len(want)) {
					if got != want[i] {
						t.Fatalf("change %d = %+v; want %+v", i, got, want[i])
					}
				}
			})
		}
	}
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
