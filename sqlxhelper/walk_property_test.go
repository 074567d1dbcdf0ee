package sqlxhelper

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/types"
)

// The types of random graphs have children of each form. They have pointers that
// lead first to another table, back to the parent, to a shared row and to the own
// table. From rWorker to rTeam and back is a circle of tables.
type rFirm struct {
	types.Model
	OwnerID types.NullSnowflake `db:"owner_id"`
	Owner   *rFirm              `db:"-" snowkey:"firms,belongs_to=owner_id"`
	Teams   []rTeam             `db:"-" snowkey:"teams,fk=firm_id"`
	Office  *rOffice            `db:"-" snowkey:"offices,fk=firm_id"`
}

type rTeam struct {
	rTeamKeys
	Firm    *rFirm     `db:"-" snowkey:"firms,belongs_to=firm_id"`
	Lead    *rWorker   `db:"-" snowkey:"workers,belongs_to=lead_id"`
	Workers []*rWorker `db:"-" snowkey:"workers,fk=team_id"`
}

type rTeamKeys struct {
	types.Model
	FirmID *types.Snowflake    `db:"firm_id"`
	LeadID types.NullSnowflake `db:"lead_id"`
}

type rWorker struct {
	types.Model
	*rWorkerKeys
	Team  *rTeam    `db:"-" snowkey:"teams,belongs_to=team_id"`
	Boss  *rWorker  `db:"-" snowkey:"workers,belongs_to=boss_id"`
	Staff []rWorker `db:"-" snowkey:"workers,fk=boss_id"`
	Desk  *rOffice  `db:"-" snowkey:"offices,belongs_to=desk_id"`
	Tasks []rTask   `db:"-" snowkey:"tasks,fk=worker_id"`
}

type rWorkerKeys struct {
	TeamID types.NullSnowflake `db:"team_id"`
	BossID *types.Snowflake    `db:"boss_id"`
	DeskID types.NullSnowflake `db:"desk_id"`
}

type rOffice struct {
	types.Model
	FirmID types.NullSnowflake `db:"firm_id"`
}

// rTask is reached by the slices of one field, which needs no map.
type rTask struct {
	types.Model
	WorkerID types.Snowflake `db:"worker_id"`
}

// A reference is what the oracle knows of a foreign key.
type reference struct {
	from, to any // pointers to rows
	key      func() types.Snowflake
}

// A world is a random graph, and what the oracle knows of it. That is recorded
// while the graph is made, not read from it.
type world struct {
	*rand.Rand
	firms      []*rFirm
	workers    []*rWorker
	offices    []*rOffice
	tables     map[any]string // of each row
	holders    map[any]any    // of each child, its parent
	references []reference
	set        int // firms with a key
}

func (w *world) refer(from, to any, key func() types.Snowflake) {
	w.references = append(w.references, reference{from, to, key})
}

// pick returns one of the rows, or nil.
func pick[T any](w *world, rows []*T) *T {
	if len(rows) == 0 || w.IntN(2) == 0 {
		return nil
	}
	return rows[w.IntN(len(rows))]
}

// Each of the following makes a row that refers only to complete rows, so there is no cycle.

func (w *world) firm() *rFirm {
	f := &rFirm{}
	if f.Owner = pick(w, w.firms); f.Owner != nil {
		w.refer(f, f.Owner, func() types.Snowflake { return f.OwnerID.Snowflake })
	}
	w.tables[f] = "firms"
	if w.IntN(2) == 0 {
		f.Office = &rOffice{}
		w.tables[f.Office] = "offices"
		w.holders[f.Office] = f
		w.refer(f.Office, f, func() types.Snowflake { return f.Office.FirmID.Snowflake })
		w.offices = append(w.offices, f.Office)
	}
	f.Teams = make([]rTeam, w.IntN(4))
	for i := range f.Teams {
		t := &f.Teams[i]
		w.refer(t, f, func() types.Snowflake { return *t.FirmID })
		w.holders[t] = f
		if w.IntN(2) == 0 {
			t.Firm = f
		}
		w.team(t)
	}
	if w.IntN(4) == 0 {
		f.ID = types.Snowflake(1_000_000 + 16*len(w.tables) + w.IntN(16))
		w.set++
		if len(f.Teams) > 0 {
			f.Teams[0].FirmID = &f.ID
		}
	}
	w.firms = append(w.firms, f)
	return f
}

func (w *world) team(t *rTeam) {
	w.tables[t] = "teams"
	if t.Lead = pick(w, w.workers); t.Lead != nil {
		w.refer(t, t.Lead, func() types.Snowflake { return t.LeadID.Snowflake })
	}
	for range w.IntN(4) {
		k := &rWorker{}
		t.Workers = append(t.Workers, k)
		w.refer(k, t, func() types.Snowflake { return k.TeamID.Snowflake })
		w.holders[k] = t
		if w.IntN(2) == 0 {
			k.Team = t
		}
		w.worker(k, 3, w.workers)
	}
}

// worker completes k. bosses are those that it may have, unless it is staff.
func (w *world) worker(k *rWorker, depth int, bosses []*rWorker) {
	k.rWorkerKeys = &rWorkerKeys{}
	w.tables[k] = "workers"
	if k.Boss = pick(w, bosses); k.Boss != nil {
		w.refer(k, k.Boss, func() types.Snowflake { return *k.BossID })
	}
	if k.Desk = pick(w, w.offices); k.Desk != nil {
		w.refer(k, k.Desk, func() types.Snowflake { return k.DeskID.Snowflake })
	}
	k.Tasks = make([]rTask, w.IntN(3))
	for i := range k.Tasks {
		task := &k.Tasks[i]
		w.tables[task] = "tasks"
		w.refer(task, k, func() types.Snowflake { return task.WorkerID })
		w.holders[task] = k
	}
	if depth > 0 && w.IntN(3) == 0 {
		k.Staff = make([]rWorker, w.IntN(3))
		for i := range k.Staff {
			s := &k.Staff[i]
			w.worker(s, depth-1, nil)
			w.refer(s, k, func() types.Snowflake { return *s.BossID })
			w.holders[s] = k
			if w.IntN(2) == 0 {
				s.Boss = k
			}
		}
	}
	w.workers = append(w.workers, k)
}

// TestRandomGraphsAreOrderedAndLinked compares with an oracle. Each row that was
// made is in one group, after all rows to which it refers. Keys are unique. Every
// foreign key is the key of the row that it was made to refer to. That holds after
// keys have changed too. Children are on the shards of their parents, and all rows on that of
// their root or of a row with a key of its own.
func TestRandomGraphsAreOrderedAndLinked(t *testing.T) {
	const seed, graphs = 20260101, 400
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	schema := schemaOf[rFirm](t, SQLite, "firms", true)
	layout := core.Default()
	layout.ShardBits = 4
	for n := range graphs {
		spreading := coretest.NewGenerator(coretest.Config{Layout: layout})
		w := &world{Rand: r, tables: map[any]string{}, holders: map[any]any{}}
		for range 1 + r.IntN(8) {
			w.firm()
		}
		// In any order, and some that own others are reached only by way of these.
		owners := map[*rFirm]bool{}
		for _, f := range w.firms {
			owners[f.Owner] = true
		}
		roots := slices.DeleteFunc(slices.Clone(w.firms), func(f *rFirm) bool { return owners[f] && r.IntN(2) == 0 })
		r.Shuffle(len(roots), func(i, j int) { roots[i], roots[j] = roots[j], roots[i] })
		b, err := manyRows("InsertGraph", roots)
		if err != nil {
			t.Fatal(err)
		}
		walk, err := newRows(b, schema)
		if err != nil {
			t.Fatalf("graph %d: newRows() = %v; want nil", n, err)
		}
		loads, err := walk.loads()
		if err != nil {
			t.Fatalf("graph %d: loads() = %v; want nil", n, err)
		}
		if err := walk.assign(context.Background(), New(spreading).keys); err != nil {
			t.Fatalf("graph %d: assign() = %v; want nil", n, err)
		}
		at, keys := map[any]int{}, map[types.Snowflake]bool{}
		for i, g := range loads {
			if i > 0 && loads[i-1].name == g.name {
				t.Errorf("graph %d: %s is in two loads, one after the other", n, g.name)
			}
			for _, row := range g.rows {
				ptr, id := row.Addr().Interface(), *g.plan.id(row)
				if _, twice := at[ptr]; twice || w.tables[ptr] != g.name {
					t.Errorf("graph %d: a row of %q is in %s, twice: %v", n, w.tables[ptr], g.name, twice)
				}
				if id == 0 || keys[id>>4] {
					t.Errorf("graph %d: key %d of a row of %s is zero or not the first", n, id, g.name)
				}
				at[ptr], keys[id>>4] = len(at), true
			}
		}
		if len(at) != len(w.tables) {
			t.Errorf("graph %d: %d rows in loads; want %d", n, len(at), len(w.tables))
		}
		key := func(row any) types.Snowflake {
			return reflect.ValueOf(row).Elem().FieldByName("ID").Interface().(types.Snowflake)
		}
		check := func(when string) {
			for _, ref := range w.references {
				if at[ref.from] <= at[ref.to] {
					t.Errorf("graph %d: a row of %s is before one of %s to which it refers", n, w.tables[ref.from], w.tables[ref.to])
				}
				if got, want := ref.key(), key(ref.to); got != want {
					t.Errorf("graph %d, %s: foreign key in %s = %d; want %d", n, when, w.tables[ref.from], got, want)
				}
			}
		}
		check("assigned")
		for child, parent := range w.holders {
			if child, parent := key(child), key(parent); layout.Shard(child) != layout.Shard(parent) {
				t.Errorf("graph %d: a child is on shard %d; want that of its parent, %d", n, layout.Shard(child), layout.Shard(parent))
			}
		}
		shards := map[int64]bool{}
		for row := range at {
			shards[layout.Shard(key(row))] = true
		}
		if len(roots) == 1 && len(shards) > 1+w.set {
			t.Errorf("graph %d: the rows of one root, and of %d firms whose keys are set, are on %d shards", n, w.set, len(shards))
		}
		for i := range walk.structs {
			if r.IntN(2) == 0 {
				*walk.ids[i] += 10_000_000
			}
		}
		walk.link()
		check("linked again")
		if t.Failed() {
			return
		}
	}
}
