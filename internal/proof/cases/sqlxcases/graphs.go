package sqlxcases

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
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

// A grower makes graphs. A row belongs to rows alone that were made before it, so that an order
// exists in which each comes after those to which it refers.
type grower struct {
	*rand.Rand
	given   int64
	firms   []*firm
	workers []*worker
}

// key returns 0, or a key that the program sets, above all that the source gives.
func (g *grower) key() int64 {
	if g.IntN(6) > 0 {
		return 0
	}
	g.given++
	return 1<<40 + g.given
}

func (g *grower) firm(level int) *firm {
	f := &firm{Model: types.Model{ID: types.Snowflake(g.key())}}
	switch n := g.IntN(4); {
	case n == 0 && level > 0:
		f.Owner = g.firm(level - 1)
	case n == 1 && len(g.firms) > 0:
		f.Owner = g.firms[g.IntN(len(g.firms))]
	}
	f.Teams = make([]team, g.IntN(3))
	for i := range f.Teams {
		t := &f.Teams[i]
		t.ID = types.ID[team](g.key())
		if g.IntN(2) == 0 {
			t.Firm = f
		}
		t.Lead = g.superior()
		for range g.IntN(4) {
			boss := g.superior()
			t.Workers = append(t.Workers, &worker{})
			g.fill(t.Workers[len(t.Workers)-1], 2)
			t.Workers[len(t.Workers)-1].Boss = boss
		}
	}
	g.firms = append(g.firms, f)
	return f
}

// superior returns a worker that was made before, a new one, or none.
func (g *grower) superior() *worker {
	switch n := g.IntN(3); {
	case n == 0 && len(g.workers) > 0:
		return g.workers[g.IntN(len(g.workers))]
	case n == 1:
		return &worker{}
	}
	return nil
}

func (g *grower) fill(w *worker, level int) {
	if w.ID = g.key(); g.IntN(2) == 0 {
		w.ID = -w.ID // as the groups of Telegram have it
	}
	if g.IntN(2) == 0 {
		w.Badge = &badge{}
	}
	w.Staff = make([]worker, g.IntN(3)*level/2)
	for i := range w.Staff {
		g.fill(&w.Staff[i], level-1)
		if g.IntN(2) == 0 {
			w.Staff[i].Boss = w
		}
	}
	g.workers = append(g.workers, w)
}

// graphs stores random graphs. Their rows are stored as they are in memory, with the keys of those
// to which they refer. The database checks with each statement that these are there.
func (d Database) graphs(t *testing.T) {
	d.firmTables(t)
	h := sqlxhelper.New(NewCounter(0), sqlxhelper.WithIntegerKeys())
	g := &grower{Rand: rand.New(rand.NewPCG(3, 4))}
	stored := newStock(t)
	for range 30 {
		g.firms, g.workers = nil, nil
		var roots []*firm
		for range 1 + g.IntN(9) {
			roots = append(roots, g.firm(2))
		}
		handle := handles[g.IntN(len(handles))]
		err := d.through(t, handle, func(db sqlxhelper.DB) error {
			if len(roots) == 1 {
				return h.InsertGraph(ctx, db, "firms", roots[0])
			}
			return h.InsertGraph(ctx, db, "firms", roots)
		})
		if err != nil {
			t.Fatalf("InsertGraph(%s, %d firms) = %v; want nil", handle.name, len(roots), err)
		}
		for _, f := range roots {
			stored.firm(f)
		}
	}
	boss := int64(-5)
	many := make([]worker, 400)
	many[0].BossID, many[399].ID = &boss, boss // the last has to be sent first
	if err := h.InsertMany(ctx, d.DB, "workers", many); err != nil {
		t.Errorf("InsertMany(a worker below one with the key -5) = %v; want nil", err)
	}
	stored.workers = append(stored.workers, many...)
	wantSame(t, d, "firms", stored.firms)
	wantSame(t, d, "teams", stored.teams)
	wantSame(t, d, "workers", stored.workers)
	wantSame(t, d, "badges", stored.badges)
}

// A stock collects the rows of graphs without what they are linked to.
type stock struct {
	t       *testing.T
	seen    map[any]bool
	firms   []firm
	teams   []team
	workers []worker
	badges  []badge
}

func newStock(t *testing.T) *stock { return &stock{t: t, seen: map[any]bool{}} }

// linked fails the test if a foreign key is not as it should be.
func (s *stock) linked(what string, got, want any) {
	s.t.Helper()
	if !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s = %+v; want %+v", what, got, want)
	}
}

func (s *stock) firm(f *firm) {
	if s.seen[f] {
		return
	}
	s.seen[f] = true
	s.firms = append(s.firms, firm{Model: f.Model, OwnerID: f.OwnerID})
	if f.Owner != nil {
		s.linked("the owner of a firm", f.OwnerID, types.NullSnowflake{Snowflake: f.Owner.ID, Valid: true})
		s.firm(f.Owner)
	}
	for i := range f.Teams {
		t := &f.Teams[i]
		s.teams = append(s.teams, team{ID: t.ID, FirmID: t.FirmID, LeadID: t.LeadID})
		s.linked("the firm of a team", t.FirmID, &f.ID)
		if t.Lead != nil {
			s.linked("the lead of a team", t.LeadID, sql.NullInt64{Int64: t.Lead.ID, Valid: true})
			s.worker(t.Lead)
		}
		for _, w := range t.Workers {
			s.linked("the team of a worker", w.TeamID, types.NullID[team]{ID: t.ID, Valid: true})
			s.worker(w)
		}
	}
}

func (s *stock) worker(w *worker) {
	if s.seen[w] {
		return
	}
	s.seen[w] = true
	s.workers = append(s.workers, worker{ID: w.ID, TeamID: w.TeamID, BossID: w.BossID})
	if w.Boss != nil {
		s.linked("the boss of a worker", w.BossID, &w.Boss.ID)
		s.worker(w.Boss)
	}
	for i := range w.Staff {
		s.linked("the boss of a worker below one", w.Staff[i].BossID, &w.ID)
		s.worker(&w.Staff[i])
	}
	if w.Badge != nil {
		s.linked("the worker of a badge", w.Badge.WorkerID, sql.Null[int64]{V: w.ID, Valid: true})
		s.badges = append(s.badges, *w.Badge)
	}
}

// wantSame fails the test if the rows of a table are not those in memory, in any order.
func wantSame[T any](t *testing.T, d Database, table string, want []T) {
	t.Helper()
	var got []T
	if err := d.DB.Select(&got, "SELECT * FROM "+table); err != nil {
		t.Fatalf("Select(%s) = %v", table, err)
	}
	in := map[any]T{}
	for _, row := range want {
		in[reflect.ValueOf(row).FieldByName("ID").Interface()] = row
	}
	if len(got) != len(want) || len(in) != len(want) {
		t.Errorf("%s has %d rows, and memory %d keys; want %d", table, len(got), len(in), len(want))
	}
	for _, row := range got {
		if want := in[reflect.ValueOf(row).FieldByName("ID").Interface()]; !reflect.DeepEqual(row, want) {
			t.Errorf("%s has %+v; want %+v", table, row, want)
		}
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
