package sqlxcases

import (
	"errors"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A parcel is on the shard of its client. Each of its scans is on that of another client, who has
// to be on the same one.
type parcel struct {
	types.Model
	ClientID types.Snowflake `db:"client_id" snowkey:"shard"`
	Code     string          `db:"code"`
	Scans    []scan          `db:"-" snowkey:"scans,fk=parcel_id"`
}

type scan struct {
	types.Model
	ParcelID types.Snowflake `db:"parcel_id"`
	ClientID types.Snowflake `db:"client_id" snowkey:"shard"`
}

// clientOn is the key of a client on one of 64 shards.
func clientOn(shard int) types.Snowflake { return types.Snowflake(1<<30 | shard) }

// Only the database knows that the tag of a child names another shard than the stored row's.
func (d Database) shardedUpsert(t *testing.T) {
	d.tables(t,
		"CREATE TABLE parcels (id BIGINT PRIMARY KEY, client_id BIGINT NOT NULL, code VARCHAR(20) NOT NULL UNIQUE)",
		"CREATE TABLE scans (id BIGINT PRIMARY KEY, parcel_id BIGINT NOT NULL, client_id BIGINT NOT NULL, FOREIGN KEY (parcel_id) REFERENCES parcels (id))")
	layout := core.Default()
	layout.ShardBits = 6
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: layout}), sqlxhelper.OnConflictDoNothing("code"))
	stored := parcel{ClientID: clientOn(1), Code: "a"}
	must(t, h.Insert(ctx, d.DB, "parcels", &stored))
	rows := []parcel{{ClientID: clientOn(2), Code: "b"}, {ClientID: clientOn(2), Code: "a", Scans: []scan{{ClientID: clientOn(2)}}}}
	tx := d.begin(t)
	err := h.InsertGraph(ctx, tx, "parcels", rows)
	var row *sqlxhelper.RowError
	if !errors.As(err, &row) || !errors.Is(err, sqlxhelper.ErrShard) || row.Path != "sqlxcases.parcel[1].Scans[0]" {
		t.Errorf("InsertGraph(a scan on shard 2 of a parcel on shard 1) = %v; want ErrShard of the scan", err)
	}
	if rows[1].ID&63 != 2 || rows[1].Scans[0].ParcelID != rows[1].ID {
		t.Errorf("parcel = %+v; want the keys that it had when it was sent", rows[1])
	}
	rows[1].ClientID, rows[1].Scans[0] = clientOn(1), scan{ClientID: clientOn(1)}
	rows[1].ID = 0
	if err := errors.Join(h.InsertGraph(ctx, tx, "parcels", rows), tx.Commit()); err != nil || rows[1].ID != stored.ID {
		t.Errorf("InsertGraph(on the same shard) = %v, key %d; want nil, %d", err, rows[1].ID, stored.ID)
	}
	d.wantCount(t, "scans s JOIN parcels p ON p.id = s.parcel_id WHERE (s.id & 63) = (p.id & 63)", 1)
}
