package placement_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/placement"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

var graphs = flag.Int("placement.graphs", 1000, "how many random graphs both plugins place")

// The models of random graphs. The tagged field is a foreign key to a model with a tag or without
// one, that of the parent, or none. The belongs-to fields come first, because GORM walks them
// first. Most fields have the name of the model that they lead to.
type (
	pArea struct {
		ID                types.Snowflake `db:"id"`
		OrderID, ClientID types.NullSnowflake
		BestID, HomeID    types.NullSnowflake
		Best              *pClient   `db:"-" snowkey:"p_clients,belongs_to=best_id"`
		Home              *pArea     `db:"-" snowkey:"p_areas,belongs_to=home_id"`
		Clients           []*pClient `gorm:"foreignKey:AreaID" db:"-" snowkey:"p_clients,fk=area_id"`
		Orders            []*pOrder  `gorm:"foreignKey:AreaID" db:"-" snowkey:"p_orders,fk=area_id"`
		Lots              []*pLot    `gorm:"foreignKey:AreaID" db:"-" snowkey:"p_lots,fk=area_id"`
	}
	pClient struct {
		ID             types.Snowflake     `db:"id"`
		HostID         types.NullSnowflake `snowkey:"shard"`
		AreaID, DealID types.NullSnowflake
		Host           *pArea   `db:"-" snowkey:"p_areas,belongs_to=host_id"`
		Deal           *pOrder  `db:"-" snowkey:"p_orders,belongs_to=deal_id"`
		Areas          []*pArea `gorm:"foreignKey:ClientID" db:"-" snowkey:"p_areas,fk=client_id"`
		Tags           []*pTag  `gorm:"foreignKey:ClientID" db:"-" snowkey:"p_tags,fk=client_id"`
	}
	pOrder struct {
		ID             types.Snowflake     `db:"id"`
		BuyerID        types.NullSnowflake `snowkey:"shard"`
		AreaID, SpotID types.NullSnowflake
		Buyer          *pClient `db:"-" snowkey:"p_clients,belongs_to=buyer_id"`
		Spot           *pArea   `db:"-" snowkey:"p_areas,belongs_to=spot_id"`
		Areas          []*pArea `gorm:"foreignKey:OrderID" db:"-" snowkey:"p_areas,fk=order_id"`
	}
	pLot struct {
		ID     types.Snowflake     `db:"id"`
		AreaID types.NullSnowflake `snowkey:"shard"` // of the parent
		Area   *pArea              `db:"-" snowkey:"p_areas,belongs_to=area_id"`
	}
	pTag struct {
		ID       types.Snowflake     `db:"id"`
		OfID     types.NullSnowflake `snowkey:"shard"` // of no row of the graph
		ClientID types.NullSnowflake
		AreaID   types.NullSnowflake
		Area     *pArea `db:"-" snowkey:"p_areas,belongs_to=area_id"`
	}
)

// A modelRelation is a field of a model that leads to rows.
type modelRelation struct {
	field   string
	to      reflect.Type
	fk      string // the column
	belongs bool
}

type model struct {
	table     string
	tag       string // the column with the tag, and its field
	tagged    string
	relations []modelRelation
}

// modelOf reads what the tags say.
func modelOf(t reflect.Type) (m model) {
	m.table = "p_" + strings.ToLower(t.Name()[1:]) + "s"
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("snowkey")
		table, fk, ok := strings.Cut(tag, ",")
		switch {
		case tag == "shard":
			m.tag, m.tagged = column(f.Name), f.Name
		case ok && table != "":
			r := modelRelation{field: f.Name, to: f.Type.Elem()}
			if r.to.Kind() == reflect.Pointer {
				r.to = r.to.Elem()
			}
			r.fk, r.belongs = strings.CutPrefix(fk, "belongs_to=")
			r.fk = strings.TrimPrefix(r.fk, "fk=")
			m.relations = append(m.relations, r)
		}
	}
	return m
}

// column is the name of a field in the database: OrderID is order_id.
func column(field string) string {
	if name, ok := strings.CutSuffix(field, "ID"); ok && name != "" {
		return strings.ToLower(name) + "_id"
	}
	return strings.ToLower(field)
}

var modelTypes = []reflect.Type{reflect.TypeFor[pArea](), reflect.TypeFor[pClient](), reflect.TypeFor[pOrder](), reflect.TypeFor[pLot](), reflect.TypeFor[pTag]()}

// A node is a row of a random graph, and what the rules need to know of it.
type node struct {
	typ    reflect.Type
	rank   float64 // a row refers to rows of lower ranks, since a circle of keys could not be stored
	key    types.Snowflake
	tag    types.Snowflake // the key in the tagged field, if the caller sets it
	parent int
	by     string        // the foreign key of the parent
	to     map[int][]int // the rows in each relation
}

// randomGraph returns a graph whose first rows are its roots, all of one model.
func randomGraph(rng *rand.Rand) (nodes []*node, roots int) {
	roots = 1 + rng.IntN(3)
	t := modelTypes[rng.IntN(3)]
	add := func(t reflect.Type, rank float64) int {
		nodes = append(nodes, &node{typ: t, rank: rank, parent: -1, to: map[int][]int{}})
		return len(nodes) - 1
	}
	for range roots {
		add(t, rng.Float64())
	}
	for range rng.IntN(60) {
		i := rng.IntN(len(nodes))
		n := nodes[i]
		relations := modelOf(n.typ).relations
		if len(relations) == 0 {
			continue
		}
		k := rng.IntN(len(relations))
		r := relations[k]
		if r.belongs && len(n.to[k]) > 0 {
			continue
		}
		to := -1
		if rng.IntN(3) > 0 { // a row that is there
			to = rng.IntN(len(nodes))
			if o := nodes[to]; o.typ != r.to || r.belongs == (o.rank >= n.rank) || o.rank == n.rank || !r.belongs && (to < roots || o.parent >= 0) {
				continue
			}
		}
		// A lot refers to its area in both directions, or in one.
		switch {
		case r.belongs && n.by == r.fk && n.parent != to:
			continue
		case !r.belongs && to >= 0 && slices.ContainsFunc(modelOf(r.to).relations, func(o modelRelation) bool { return o.belongs && o.fk == r.fk }) && len(nodes[to].to) > 0:
			continue
		}
		if to < 0 {
			rank := n.rank * rng.Float64()
			if !r.belongs {
				rank = n.rank + (1-n.rank)*rng.Float64()
			}
			to = add(r.to, rank)
		}
		if n.to[k] = append(n.to[k], to); !r.belongs {
			nodes[to].parent, nodes[to].by = i, r.fk
		}
	}
	known := func() types.Snowflake {
		return types.Snowflake(1_000_000+len(nodes)*rng.IntN(1000))<<shardBits | types.Snowflake(rng.IntN(2))
	}
	for i, n := range nodes {
		if rng.IntN(10) == 0 {
			n.key = types.Snowflake(2_000_000+i)<<shardBits | types.Snowflake(rng.IntN(3))
		}
		if m := modelOf(n.typ); m.tag != "" && n.by != m.tag && n.target(m) < 0 && rng.IntN(8) == 0 {
			n.tag = known()
		}
	}
	return nodes, roots
}

// target returns the row to which the tagged field is going to refer, or -1.
func (n *node) target(m model) int {
	for k, r := range m.relations {
		if r.belongs && r.fk == m.tag && len(n.to[k]) > 0 {
			return n.to[k][0]
		}
	}
	return -1
}

// walkOf returns the rows in the order in which both plugins read them, level by level, and for each
// row the one from which it was reached first, or -1.
func walkOf(nodes []*node, roots int) (walk, from []int) {
	from = slices.Repeat([]int{-1}, len(nodes))
	for i := range roots {
		walk = append(walk, i)
	}
	for k := 0; k < len(walk); k++ {
		n := nodes[walk[k]]
		for r := range modelOf(n.typ).relations {
			for _, to := range n.to[r] {
				if to >= roots && from[to] < 0 {
					from[to] = walk[k]
					walk = append(walk, to)
				}
			}
		}
	}
	return walk, from
}

// placed is the graph in the words of the rules, with the shard that the context asks for.
func placed(nodes []*node, roots int, wish int64) graph {
	walk, from := walkOf(nodes, roots)
	at := make([]int, len(nodes)) // in the order of the walk
	for k, i := range walk {
		at[i] = k
	}
	index := func(i int) int {
		if i < 0 {
			return -1
		}
		return at[i]
	}
	rows := make(graph, len(nodes))
	for i, n := range nodes {
		m := modelOf(n.typ)
		r := row{none, index(n.target(m)), index(n.parent), index(from[i]), none}
		if r.From < 0 {
			r.Wish = wish
		}
		if n.tag != 0 {
			r.Shard = int64(n.tag) & (1<<shardBits - 1)
		}
		if n.key != 0 {
			r = placement.At(int64(n.key) & (1<<shardBits - 1))
		}
		rows[at[i]] = r
	}
	return rows
}

// build makes the rows anew. It returns them in the order of the walk, and the slice of the roots.
func build(nodes []*node, roots int) (rows []reflect.Value, slice any) {
	rows = make([]reflect.Value, len(nodes))
	for i, n := range nodes {
		rows[i] = reflect.New(n.typ)
		v := rows[i].Elem()
		v.FieldByName("ID").SetInt(int64(n.key))
		if n.tag != 0 {
			v.FieldByName(modelOf(n.typ).tagged).Set(reflect.ValueOf(types.NullSnowflake{Snowflake: n.tag, Valid: true}))
		}
	}
	for i, n := range nodes {
		for k, r := range modelOf(n.typ).relations {
			f := rows[i].Elem().FieldByName(r.field)
			for _, to := range n.to[k] {
				if r.belongs {
					f.Set(rows[to])
				} else {
					f.Set(reflect.Append(f, rows[to]))
				}
			}
		}
	}
	list := reflect.MakeSlice(reflect.SliceOf(rows[0].Type()), 0, roots)
	return rows, reflect.Append(list, rows[:roots]...).Interface()
}

const shardBits = 10

// turns is a source that counts, with one shard after the other.
type turns struct{ last int64 }

func (*turns) ShardBits() int { return shardBits }

func (*turns) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	l := core.Default()
	l.ShardBits = shardBits
	return l.ShardFrom(ctx)
}

func (s *turns) Next(ctx context.Context) (types.Snowflake, error) {
	shard, ok, err := s.ShardFrom(ctx)
	if s.last++; !ok {
		shard = s.last * 641 & (1<<shardBits - 1)
	}
	return types.Snowflake(s.last<<shardBits | shard), err
}

func TestBothPluginsPlaceRandomGraphsAsThePageSays(t *testing.T) {
	ctx := t.Context()
	db, err := gorm.Open(sqlite.Open("file:placement?mode=memory&cache=shared"), &gorm.Config{Logger: logger.Discard, DisableForeignKeyConstraintWhenMigrating: true, SkipDefaultTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	pool.SetMaxOpenConns(1)
	plugin, helper := gormplugin.New(&turns{}), sqlxhelper.New(&turns{})
	if err := errors.Join(db.Use(plugin), db.AutoMigrate(&pArea{}, &pClient{}, &pOrder{}, &pLot{}, &pTag{})); err != nil {
		t.Fatal(err)
	}
	handle := sqlx.NewDb(pool, "sqlite3")
	handle.MapperFunc(column)
	clean := func() {
		for _, typ := range modelTypes {
			if _, err := pool.ExecContext(ctx, "DELETE FROM "+modelOf(typ).table); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused, circles := 0, 0
	for seed := range uint64(*graphs) {
		rng := rand.New(rand.NewPCG(seed, 2))
		nodes, roots := randomGraph(rng)
		wish, ctx := int64(none), ctx
		if rng.IntN(2) == 0 {
			wish = int64(rng.IntN(3))
			ctx = core.OnShard(ctx, wish)
		}
		rows := placed(nodes, roots, wish)
		spots := placement.Resolve(rows)
		contradicts := false
		for i := range rows {
			contradicts = contradicts || placement.ConflictOf(rows, spots, i) != nil
		}
		if check(t, rows); contradicts {
			refused++
		}
		if slices.ContainsFunc(rows, func(r row) bool { return r.Target >= 0 && rows[r.Target].Parent < 0 && r.Shard == none }) {
			circles++
		}
		for name, place := range map[string]func(roots any) error{
			"Assign": func(roots any) error { return plugin.Assign(ctx, db, roots) },
			"Create": func(roots any) error { clean(); return db.WithContext(ctx).Create(roots).Error },
			"InsertGraph": func(roots any) error {
				clean()
				return helper.InsertGraph(ctx, handle, modelOf(nodes[0].typ).table, roots)
			},
		} {
			if name == "Create" && refersTo(nodes, roots) {
				continue // GORM inserts such a root twice
			}
			built, slice := build(nodes, roots)
			err := place(slice)
			if contradicts {
				if !errors.Is(err, gormplugin.ErrShard) && !errors.Is(err, sqlxhelper.ErrShard) {
					t.Errorf("graph %d, %v: %s = %v; want ErrShard", seed, rows, name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("graph %d: %s = %v; want no error", seed, name, err)
				continue
			}
			compare(t, fmt.Sprintf("graph %d, %s", seed, name), nodes, roots, built, rows, spots)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d graphs, %d refused, %d with a tag that refers to a new row without a parent", *graphs, refused, circles)
	if refused < *graphs/20 || refused > *graphs*3/4 || circles < *graphs/10 {
		t.Error("want many of each")
	}
}

// refersTo reports whether a row refers to a root.
func refersTo(nodes []*node, roots int) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		for k, r := range modelOf(n.typ).relations {
			if r.belongs && len(n.to[k]) > 0 && n.to[k][0] < roots {
				return true
			}
		}
		return false
	})
}

// compare compares the keys of rows with their spots: rows are on one shard if their spots are
// equal, on that shard if it is known, and otherwise on another than all others that are chosen.
func compare(t *testing.T, what string, nodes []*node, roots int, built []reflect.Value, rows graph, spots []spot) {
	t.Helper()
	order, _ := walkOf(nodes, roots)
	chosen, shards := map[int]int64{}, map[int64]int{}
	for k, i := range order {
		id, s := built[i].Elem().FieldByName("ID").Int(), spots[k]
		shard := id & (1<<shardBits - 1)
		if id == 0 {
			t.Errorf("%s: row %d has no key", what, k)
			continue
		}
		if s.Of < 0 {
			if shard != s.Shard {
				t.Errorf("%s: row %d of %v is on shard %d; want %d", what, k, rows, shard, s.Shard)
			}
			continue
		}
		if was, ok := chosen[s.Of]; ok && was != shard {
			t.Errorf("%s: row %d of %v is on shard %d; want that of row %d, %d", what, k, rows, shard, s.Of, was)
		}
		if other, ok := shards[shard]; ok && other != s.Of {
			t.Errorf("%s: row %d of %v is on shard %d with row %d; want them apart", what, k, rows, shard, other)
		}
		chosen[s.Of], shards[shard] = shard, s.Of
	}
}
