package sqlxcases

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A firm has teams, a team has workers, who have other workers below them and a badge. A firm
// belongs to another one, a team has a lead, and a worker a boss. The keys and foreign keys are of
// all kinds.
type firm struct {
	types.Model
	OwnerID types.NullSnowflake `db:"owner_id"`
	Owner   *firm               `db:"-" snowkey:"firms,belongs_to=owner_id"`
	Teams   []team              `db:"-" snowkey:"teams,fk=firm_id"`
}

type team struct {
	ID      types.ID[team]   `db:"id"`
	FirmID  *types.Snowflake `db:"firm_id"`
	LeadID  sql.NullInt64    `db:"lead_id"`
	Firm    *firm            `db:"-" snowkey:"firms,belongs_to=firm_id"`
	Lead    *worker          `db:"-" snowkey:"workers,belongs_to=lead_id"`
	Workers []*worker        `db:"-" snowkey:"workers,fk=team_id"`
}

type worker struct {
	ID     int64              `db:"id"`
	TeamID types.NullID[team] `db:"team_id"`
	BossID *int64             `db:"boss_id"`
	Boss   *worker            `db:"-" snowkey:"workers,belongs_to=boss_id"`
	Staff  []worker           `db:"-" snowkey:"workers,fk=boss_id"`
	Badge  *badge             `db:"-" snowkey:"badges,fk=worker_id"`
}

type badge struct {
	ID       labelID         `db:"id"`
	WorkerID sql.Null[int64] `db:"worker_id"`
}

type labelID uint64

func (d Database) firmTables(t *testing.T) {
	d.tables(t,
		"CREATE TABLE firms (id BIGINT PRIMARY KEY, owner_id BIGINT, FOREIGN KEY (owner_id) REFERENCES firms (id))",
		"CREATE TABLE teams (id BIGINT PRIMARY KEY, firm_id BIGINT NOT NULL, lead_id BIGINT, FOREIGN KEY (firm_id) REFERENCES firms (id))",
		"CREATE TABLE workers (id BIGINT PRIMARY KEY, team_id BIGINT, boss_id BIGINT, FOREIGN KEY (team_id) REFERENCES teams (id), FOREIGN KEY (boss_id) REFERENCES workers (id))",
		"CREATE TABLE badges (id BIGINT PRIMARY KEY, worker_id BIGINT NOT NULL, FOREIGN KEY (worker_id) REFERENCES workers (id))")
	if d.Dialect == sqlxhelper.SQLite { // which cannot add one, and has the other direction
		return
	}
	constraint := "CONSTRAINT"
	if d.Dialect == sqlxhelper.MySQL {
		constraint = "FOREIGN KEY" // TiDB knows only the old name
	}
	d.exec(t, "ALTER TABLE teams ADD CONSTRAINT teams_lead FOREIGN KEY (lead_id) REFERENCES workers (id)")
	t.Cleanup(func() {
		d.exec(t, "UPDATE teams SET lead_id = NULL")
		d.exec(t, "ALTER TABLE teams DROP "+constraint+" teams_lead")
	})
}

// graphs stores a graph through each handle. Random ones are in sqlxhelper, without a database. Here
// the rows are stored as they are in memory, and the database checks with each statement that the
// rows are there to which others refer.
func (d Database) graphs(t *testing.T) {
	d.firmTables(t)
	h := sqlxhelper.New(NewCounter(0), sqlxhelper.WithIntegerKeys())
	for i, handle := range handles {
		boss := &worker{ID: -int64(i + 1), Badge: &badge{}} // as the groups of Telegram have it
		lead := &worker{Boss: boss, Badge: &badge{ID: labelID(1<<40 + i)}, Staff: make([]worker, 2)}
		other := &worker{Boss: lead}
		f := &firm{Owner: &firm{}, Teams: []team{{Lead: boss, Workers: []*worker{other, lead}}, {ID: types.ID[team](1<<40 + i), Lead: lead}}}
		f.Teams[1].Firm, lead.Staff[0].Boss = f, lead
		roots := []*firm{f, {Owner: f}}
		must(t, d.through(t, handle, func(db sqlxhelper.DB) error {
			if i%2 == 0 {
				return h.InsertGraph(ctx, db, "firms", roots[1])
			}
			return h.InsertGraph(ctx, db, "firms", roots)
		}))
		for what, key := range map[string][2]any{
			"the owner of a firm":                {f.OwnerID, types.NullSnowflake{Snowflake: f.Owner.ID, Valid: true}},
			"the owner of another firm":          {roots[1].OwnerID, types.NullSnowflake{Snowflake: f.ID, Valid: true}},
			"the firm of a team":                 {f.Teams[0].FirmID, &f.ID},
			"the firm of the second team":        {f.Teams[1].FirmID, &f.ID},
			"the lead of a team":                 {f.Teams[0].LeadID, sql.NullInt64{Int64: boss.ID, Valid: true}},
			"the lead of the second team":        {f.Teams[1].LeadID, sql.NullInt64{Int64: lead.ID, Valid: true}},
			"the team of a worker":               {other.TeamID, types.NullID[team]{ID: f.Teams[0].ID, Valid: true}},
			"the team of the lead":               {lead.TeamID, types.NullID[team]{ID: f.Teams[0].ID, Valid: true}},
			"the boss of a worker":               {other.BossID, &lead.ID},
			"the boss of the lead":               {lead.BossID, &boss.ID},
			"the boss of the first of the staff": {lead.Staff[0].BossID, &lead.ID},
			"the boss of the last of the staff":  {lead.Staff[1].BossID, &lead.ID},
			"the boss of a badge":                {boss.Badge.WorkerID, sql.Null[int64]{V: boss.ID, Valid: true}},
			"the lead of a badge":                {lead.Badge.WorkerID, sql.Null[int64]{V: lead.ID, Valid: true}},
		} {
			if !reflect.DeepEqual(key[0], key[1]) {
				t.Errorf("%s, by %s = %v; want %v", what, handle.name, key[0], key[1])
			}
		}
		d.readBack(t, "firms", reflect.ValueOf([]firm{*f, *f.Owner, *roots[1]}))
		d.readBack(t, "teams", reflect.ValueOf(f.Teams))
		d.readBack(t, "workers", reflect.ValueOf([]worker{*boss, *lead, *other, lead.Staff[0], lead.Staff[1]}))
		d.readBack(t, "badges", reflect.ValueOf([]badge{*boss.Badge, *lead.Badge}))
	}
	boss := int64(-50)
	many := make([]worker, 400)
	many[0].BossID, many[399].ID = &boss, boss // the last has to be sent first
	if err := h.InsertMany(ctx, d.DB, "workers", many); err != nil {
		t.Errorf("InsertMany(a worker below one with the key %d) = %v; want nil", boss, err)
	}
	d.readBack(t, "workers", reflect.ValueOf(many))
	for table, each := range map[string]int{"firms": 3, "teams": 2, "workers": 5, "badges": 2} {
		d.wantCount(t, table, each*len(handles)+map[string]int{"workers": len(many)}[table])
	}
}

// A reply refers to another row of its table. InsertMany knows of no relation.
type reply struct {
	types.Model
	To    types.NullSnowflake `db:"reply_to"`
	Other *types.Snowflake    `db:"other"`
	N     int                 `db:"n"`
}

// InsertMany stores rows that refer to each other, or not, whatever their order and
// number. Which rows are in one statement must not decide it.
func (d Database) rowsThatReferToEachOther(t *testing.T) {
	d.tables(t, "CREATE TABLE replies (id BIGINT PRIMARY KEY, reply_to BIGINT, other BIGINT, n BIGINT NOT NULL UNIQUE, "+
		"FOREIGN KEY (reply_to) REFERENCES replies (id), FOREIGN KEY (other) REFERENCES replies (id))")
	if d.Dialect != sqlxhelper.MySQL { // which has these indexes for the foreign keys
		d.exec(t, "CREATE INDEX replies_to ON replies (reply_to)")
		d.exec(t, "CREATE INDEX replies_other ON replies (other)")
	}
	empty := func() { // MySQL deletes row by row
		d.exec(t, "UPDATE replies SET reply_to = NULL, other = NULL")
		d.exec(t, "DELETE FROM replies")
	}
	h := sqlxhelper.New(NewCounter(0))
	unassigned := make([]reply, 300) // the keys that the pointers lead to are not there yet
	for i := range unassigned[1:] {
		unassigned[i].N, unassigned[i].Other = i+1, &unassigned[i+1].ID
	}
	if err := h.InsertMany(ctx, d.DB, "replies", unassigned); err != nil {
		t.Errorf("InsertMany(pointers to the keys of the next rows) = %v; want nil", err)
	}
	d.wantCount(t, "replies r JOIN replies o ON r.other = o.id AND o.n = (r.n + 1) % 300", 299)
	empty()
	for _, n := range []int{2, 30, 51, 3000} {
		for name, to := range map[string]func(i int) int{
			"the next":        func(i int) int { return i + 1 },
			"the last":        func(int) int { return n - 1 },
			"the one across":  func(i int) int { return n - 1 - i },
			"the one before":  func(i int) int { return i - 1 },
			"itself":          func(i int) int { return i },
			"some other rows": func(i int) int { return i*i%(n-i) + i },
		} {
			rows := make([]reply, n)
			for i := range rows {
				rows[i].ID, rows[i].N = types.Snowflake(1000+(i*7)%n), i
				if n%7 == 0 {
					rows[i].ID = types.Snowflake(1000 + i)
				}
			}
			for i := range rows {
				if j := to(i); j < 0 || j >= n || name == "the one across" && j < i {
					continue
				} else if i%2 == 0 {
					rows[i].To = types.NullSnowflake{Snowflake: rows[j].ID, Valid: true}
				} else {
					rows[i].Other = &rows[j].ID
				}
			}
			if err := h.InsertMany(ctx, d.DB, "replies", rows); err != nil {
				t.Errorf("InsertMany(%d rows that refer to %s) = %v; want nil", n, name, err)
			}
			d.wantCount(t, "replies", n)
			empty()

			// An error counts the rows as they were given.
			rows[0].N = -1
			rows[n-1].N = -1
			err := h.InsertMany(ctx, d.DB, "replies", rows)
			var e *sqlxhelper.InsertError
			if !errors.As(err, &e) || !errors.Is(err, sqlxhelper.ErrDuplicateKey) || e.Row >= 0 && (e.Row != 0 && e.Row != n-1 || e.Key != rows[e.Row].ID || e.Path != fmt.Sprintf("sqlxcases.reply[%d]", e.Row)) {
				t.Errorf("InsertMany(%d rows that refer to %s, two alike) = %+v; want an InsertError of the first or the last row", n, name, e)
			}
			d.wantCount(t, "replies", 0)
		}
	}
}
