package sqlxhelper

import (
	"context"
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/types"
)

// checkShard completes the field of p that names the shard.
func (b *builder) checkShard(p *plan) error {
	if p.shard < 0 {
		return nil
	}
	c := &p.columns[p.shard]
	if b.integers && integerKey(c.typ) != nil {
		c.untyped = integerKey(c.typ)
	}
	problem := ""
	switch {
	case p.shard == p.key:
		problem = "the primary key is on the shard that another field names"
	case !c.holdsKey():
		problem = fmt.Sprintf("%v holds no key that could name the shard, want types.Snowflake, *types.Snowflake or types.NullSnowflake, or a types.ID or types.NullID%s", c.typ, b.orInteger())
	}
	if problem != "" {
		return &PlanError{Type: p.typ, Field: c.field, Problem: problem}
	}
	if b.tagged == nil {
		b.tagged = p
	}
	return nil
}

// checkTag refuses types with a tag that the source of the Helper would ignore. A nil Source
// makes no keys, so there is nothing to ignore.
func (h *Helper) checkTag(p *plan) error {
	if p.tagged == nil || h.src == nil || shardBits(h.src) > 0 {
		return nil
	}
	return &PlanError{Type: p.tagged.typ, Field: p.tagged.columns[p.tagged.shard].field, Problem: fmt.Sprintf(
		"its key names a shard, and the keys of the source, a %T, have none; use a core.Generator with Layout.ShardBits, or remove the tag", h.src)}
}

// shards are where the new keys of a call go.
//
// The source has put all of them where ctx asks, or on one shard after the other. A key that
// belongs on another shard than it was given has its low bits replaced. It remains unique,
// because the source never returns two keys that are equal above these bits.
type shards struct {
	*rows
	mask   types.Snowflake // of the bits that name the shard
	wish   types.Snowflake // the shard for which ctx asks
	wished bool

	// By row. Without rows that have the tag, the first three are nil.
	names  []types.Snowflake // the key in the tagged field, or 0 if there is none
	target []int             // the row whose key the call sets in the tagged field, or -1
	origin []int             // the row for which the source has chosen the shard, or -1: the caller did
	keys   []types.Snowflake
	state  []shardState

	given []int // the rows that get their keys from the call
}

type shardState uint8

const (
	waiting shardState = iota
	asking             // for the shard of another row
	placed
)

// findShards finds what the shards of new keys depend on. Rows without relations or tags need
// none of it.
func (r *rows) findShards(ctx context.Context, src Source, missing int) error {
	bits := shardBits(src)
	if bits == 0 || r.nodes == nil && r.tables[0].plan.shard < 0 {
		return nil
	}
	shard, ok, err := src.(sharder).ShardFrom(ctx)
	if err != nil {
		return fmt.Errorf("sqlxhelper: shard of the keys: %w", err)
	}
	s := &shards{rows: r, mask: 1<<bits - 1, wish: types.Snowflake(shard), wished: ok, given: make([]int, 0, missing)}
	s.keys, s.state = make([]types.Snowflake, len(r.ids)), make([]shardState, len(r.ids))
	for i, id := range r.ids {
		if *id == 0 {
			s.given = append(s.given, i)
		} else {
			s.keys[i], s.state[i] = *id, placed
		}
	}
	r.shards = s
	return s.readTags()
}

// readTags reads the tagged fields of the rows without a key.
func (s *shards) readTags() error {
	if s.tables[0].plan.tagged == nil {
		return nil
	}
	s.names, s.target, s.origin = make([]types.Snowflake, len(s.keys)), make([]int, len(s.keys)), make([]int, len(s.keys))
	for i := range s.target {
		s.target[i], s.origin[i] = -1, -1
	}
	for _, l := range s.links {
		if p := s.nodes[l.from].plan; l.via.belongs && p.shard >= 0 && l.via.fk == &p.columns[p.shard] {
			s.target[l.from] = l.to
		}
	}
	for _, i := range s.given {
		p := s.table(i).plan
		if p.shard < 0 {
			continue
		}
		c := &p.columns[p.shard]
		id, null := foreignKey(c.ref(s.structs[i]))
		if null || s.nodes != nil && s.sets(i, c) {
			continue // it will have the key of the parent, or of the target
		}
		if id <= 0 {
			return refuse(s.path(i), ErrShard, "%s is %d, and names the shard of the row; set it to a key", c.field, id)
		}
		s.names[i] = id
	}
	return nil
}

// lay replaces the shards of new keys, which are in the order of s.given.
func (s *shards) lay(keys []types.Snowflake) error {
	for i, row := range s.given {
		s.keys[row] = keys[i]
	}
	if err := s.place(s.given); err != nil {
		return err
	}
	for i, row := range s.given {
		keys[i] = s.keys[row]
	}
	return nil
}

// place puts the keys of the waiting rows on their shards.
func (s *shards) place(waiters []int) error {
	var asked []int // no recursion: a chain may have as many links as there are rows
	for _, row := range waiters {
		if s.state[row] == placed {
			continue // another row has asked for its shard
		}
		for asked = append(asked, row); len(asked) > 0; {
			top := asked[len(asked)-1]
			s.state[top] = asking
			leader := s.leader(top)
			if leader >= 0 && s.state[leader] == waiting {
				asked = append(asked, leader)
				continue
			}
			switch {
			case leader >= 0:
				s.put(top, s.keys[leader])
				if s.origin != nil {
					s.origin[top] = s.origin[leader]
				}
			case s.names == nil:
			case s.names[top] != 0:
				s.put(top, s.names[top])
			case !s.wished:
				s.origin[top] = top
			}
			s.state[top] = placed
			asked = asked[:len(asked)-1]
		}
	}
	for _, row := range waiters {
		if err := s.check(row); err != nil {
			return err
		}
	}
	return nil
}

// put puts the key of a row on the shard of another key.
func (s *shards) put(row int, like types.Snowflake) {
	s.keys[row] = s.keys[row]&^s.mask | like&s.mask
}

// leader returns the row whose shard a row takes, or -1 if it takes that of the key in its
// tagged field, or else keeps what the source has given.
//
// A row does not follow one that asks for it. That happens if its own row is the target of a
// tag: an order is on the shard of its new customer, and a customer without a tag is where the
// row is that leads to it. Then both are where the order would be without the tag, with the
// first row on the way to the root that does not ask. There always is one, or the root, because
// each row was met after the one from which it was met.
func (s *shards) leader(row int) int {
	if s.names != nil {
		if s.names[row] != 0 {
			return -1
		}
		if to := s.target[row]; to >= 0 && s.state[to] != asking {
			return to
		}
	}
	held := s.held(row)
	if held == isRoot {
		return -1
	}
	if held >= 0 && s.state[s.links[held].to] != asking {
		return s.links[held].to
	}
	from := s.nodes[row].from
	for from >= 0 && s.state[from] == asking {
		from = s.nodes[from].from
	}
	return from
}

// held returns what a row is held by, as a node does.
func (s *shards) held(row int) int {
	if s.nodes == nil {
		return isRoot
	}
	return s.nodes[row].held
}

// check refuses a row whose tag says another shard than its parent or, for a root, than ctx.
// Rows without a tag have followed these. A shard that the source has chosen is another one even if
// it happens to be the same, or else one call in many would pass.
func (s *shards) check(row int) error {
	p := s.table(row).plan
	if p.shard < 0 {
		return nil
	}
	shard, other, of := s.keys[row]&s.mask, types.Snowflake(0), ""
	own, its := -1, -1 // where the shards come from
	switch held := s.held(row); {
	case held >= 0:
		parent := s.links[held].to
		other, of = s.keys[parent]&s.mask, "the parent that holds it is on"
		own, its = s.origin[row], s.origin[parent]
	case held == isRoot && s.wished:
		other, of = s.wish, "the context asks for"
	default:
		return nil
	}
	if other == shard && own == its {
		return nil
	}
	const chosen = "one that the source chooses"
	here, there := fmt.Sprint("shard ", shard), fmt.Sprint("shard ", other)
	switch {
	case own == its:
	case its >= 0:
		there = chosen
	default:
		here = chosen
	}
	key := "for a key"
	if id := s.names[row]; id != 0 {
		key = id.String() + ","
	}
	return refuse(s.path(row), ErrShard, "%s is %s on %s, and %s %s", p.columns[p.shard].field, key, here, of, there)
}

// follow puts the keys of rows that are not sent yet on the shards of the rows that they follow,
// after an upsert has given the rows of l the keys of stored rows.
func (w *writer) follow(l *load) error {
	s := w.all.shards
	if s == nil {
		return nil
	}
	for i, id := range s.ids {
		s.keys[i] = *id
	}
	for _, row := range s.given {
		s.state[row] = waiting
	}
	for i := range w.loads {
		sent := &w.loads[i]
		for j := range sent.rows {
			s.state[sent.index(j)] = placed
		}
		if sent == l {
			break
		}
	}
	unsent := slices.DeleteFunc(slices.Clone(s.given), func(row int) bool { return s.state[row] == placed })
	if err := s.place(unsent); err != nil {
		return err
	}
	for _, row := range unsent {
		if id := s.ids[row]; *id != s.keys[row] {
			w.replaced = append(w.replaced, replacedKey{id, *id})
			*id = s.keys[row]
		}
	}
	return nil
}
