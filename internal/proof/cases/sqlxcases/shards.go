package sqlxcases

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// parcel is on the shard of its client, and so are its scans and their marks.
type parcel struct {
	types.Model
	ClientID types.Snowflake `db:"client_id" snowkey:"shard"`
	Code     string          `db:"code"`
	Scans    []scan          `db:"-" snowkey:"scans,fk=parcel_id"`
}

type scan struct {
	types.Model
	ParcelID types.Snowflake `db:"parcel_id"`
	Marks    []*mark         `db:"-" snowkey:"marks,fk=scan_id"`
}

type mark struct {
	types.Model
	ScanID types.NullSnowflake `db:"scan_id"`
}

var parcelTables = []string{
	"CREATE TABLE parcels (id BIGINT PRIMARY KEY, client_id BIGINT NOT NULL, code VARCHAR(20) NOT NULL UNIQUE)",
	"CREATE TABLE scans (id BIGINT PRIMARY KEY, parcel_id BIGINT NOT NULL, FOREIGN KEY (parcel_id) REFERENCES parcels (id))",
	"CREATE TABLE marks (id BIGINT PRIMARY KEY, scan_id BIGINT, FOREIGN KEY (scan_id) REFERENCES scans (id))",
}

// A shardedCounter is a Counter whose keys name one of 64 shards.
type shardedCounter struct{ Counter }

func newShardedCounter() *shardedCounter { return &shardedCounter{Counter{last: 1000}} }

// Fill puts the keys on the shard of ctx, or on one after the other.
func (c *shardedCounter) Fill(ctx context.Context, ids []types.Snowflake) error {
	shard, chosen, err := c.ShardFrom(ctx)
	if err := errors.Join(err, c.Counter.Fill(ctx, ids)); err != nil {
		return err
	}
	for i, id := range ids {
		if !chosen {
			shard = int64(id) & 63
		}
		ids[i] = id<<6 | types.Snowflake(shard)
	}
	return nil
}

// ShardBits and ShardFrom are the methods that sqlxhelper looks for in a source with shards.
func (*shardedCounter) ShardBits() int { return 6 }

func (*shardedCounter) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	l := core.Default()
	l.ShardBits = 6
	return l.ShardFrom(ctx)
}

// clientOn is the key of a client on a shard.
func clientOn(shard int) types.Snowflake { return types.Snowflake(1<<40 | shard) }

// newParcels returns n parcels of clients on n shards, with three scans of two marks each.
func newParcels(n int) []parcel {
	parcels := make([]parcel, n)
	for i := range parcels {
		parcels[i] = parcel{ClientID: clientOn(i % 64), Code: fmt.Sprint(i), Scans: make([]scan, 3)}
		for j := range parcels[i].Scans {
			parcels[i].Scans[j].Marks = []*mark{{}, {}}
		}
	}
	return parcels
}

// A stored row may be on another shard than the row that was sent.
func (d Database) shardedUpsert(t *testing.T) {
	for name, options := range map[string][]sqlxhelper.Option{
		"DoNothing": {sqlxhelper.OnConflictDoNothing("code")},
		"Update":    {sqlxhelper.OnConflictUpdate("client_id"), sqlxhelper.ConflictTarget("code")},
	} {
		t.Run(name, func(t *testing.T) {
			d.tables(t, parcelTables...)
			h := sqlxhelper.New(newShardedCounter())
			stored := newParcels(10)
			for i := range stored {
				stored[i].ClientID = clientOn(63 - i)
			}
			if err := h.InsertMany(ctx, d.DB, "parcels", stored); err != nil {
				t.Fatal(err)
			}
			parcels := newParcels(20)
			// A failure in the last table undoes the upsert, and restores the keys.
			parcels[3].Scans[0].Marks[0].ID, parcels[5].Scans[2].Marks[1].ID = clientOn(17), clientOn(17)
			if err := h.With(options...).InsertGraph(ctx, d.DB, "parcels", parcels); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
				t.Fatalf("InsertGraph(a mark twice) = %v; want ErrDuplicateKey", err)
			}
			for i, p := range parcels {
				for _, s := range p.Scans {
					if s.ParcelID != p.ID || p.ID&63 != types.Snowflake(i) || s.ID&63 != types.Snowflake(i) {
						t.Errorf("after the failure parcel %d is on shard %d, and its scan on %d; want both on %d", i, p.ID&63, s.ID&63, i)
					}
				}
			}
			d.wantCount(t, "scans", 0)

			parcels = newParcels(20)
			parcels[3].Scans[0].Marks[0].ID = clientOn(17)
			if err := h.With(options...).InsertGraph(ctx, d.DB, "parcels", parcels); err != nil {
				t.Fatalf("InsertGraph() = %v; want nil", err)
			}
			for i := range stored {
				if parcels[i].ID != stored[i].ID {
					t.Errorf("key of parcel %d = %d; want that of the stored row, %d", i, parcels[i].ID, stored[i].ID)
				}
			}
			d.wantCount(t, "scans s JOIN parcels p ON p.id = s.parcel_id WHERE (s.id & 63) = (p.id & 63)", 60)
			of := "marks m JOIN scans s ON s.id = m.scan_id"
			d.wantCount(t, of, 120)
			d.wantCount(t, of+" WHERE (m.id & 63) <> (s.id & 63)", 1) // the one whose key was set
		})
	}
}

// Only the database knows that the tag of a child names another shard than the stored row's.
func (d Database) shardedUpsertRefused(t *testing.T) {
	type tagged struct {
		types.Model
		ParcelID types.Snowflake `db:"parcel_id"`
		ClientID types.Snowflake `db:"client_id" snowkey:"shard"`
	}
	type upserted struct {
		types.Model
		ClientID types.Snowflake `db:"client_id" snowkey:"shard"`
		Code     string          `db:"code"`
		Scans    []tagged        `db:"-" snowkey:"tagged_scans,fk=parcel_id"`
	}
	d.tables(t, parcelTables[0], "CREATE TABLE tagged_scans (id BIGINT PRIMARY KEY, parcel_id BIGINT NOT NULL, client_id BIGINT NOT NULL)")
	h := sqlxhelper.New(newShardedCounter(), sqlxhelper.OnConflictDoNothing("code"))
	stored := parcel{ClientID: clientOn(1), Code: "a"}
	if err := h.Insert(ctx, d.DB, "parcels", &stored); err != nil {
		t.Fatal(err)
	}
	rows := []upserted{{ClientID: clientOn(2), Code: "b"}, {ClientID: clientOn(2), Code: "a", Scans: []tagged{{ClientID: clientOn(2)}}}}
	tx := d.begin(t)
	err := h.InsertGraph(ctx, tx, "parcels", rows)
	var row *sqlxhelper.RowError
	if !errors.As(err, &row) || !errors.Is(err, sqlxhelper.ErrShard) || row.Path != "sqlxcases.upserted[1].Scans[0]" {
		t.Errorf("InsertGraph() = %v; want ErrShard of the scan", err)
	}
	if rows[1].ID&63 != 2 || rows[1].Scans[0].ParcelID != rows[1].ID {
		t.Errorf("parcel = %+v; want the keys that it had when it was sent", rows[1])
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() = %v; want nil", err)
	}
	d.wantCount(t, "parcels", 1)
}
