package sqlxhelper

import (
	"context"
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/internal/base/placement"
	"github.com/snowkey/snowkey/internal/base/supply"
	"github.com/snowkey/snowkey/types"
)

// checkShard completes the field of p that names the shard.
func (b *builder) checkShard(p *plan) error {
	if p.shard < 0 {
		return nil
	}
	c := &p.columns[p.shard]
	problem := ""
	switch {
	case p.shard == p.key:
		problem = "the primary key is on the shard that another field names"
	case !b.holdKey(c):
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
// gives no keys, so there is nothing to ignore.
func (h *Helper) checkTag(p *plan) error {
	if p.tagged == nil || h.keys.Supply == nil || h.keys.Sharded() {
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
	src   *supply.Supply
	wish  int64           // the shard for which ctx asks, or placement.None
	given []int           // the rows that get their keys from the call
	leads []placement.Row // by row
}

// findShards finds what the shards of new keys depend on, for rows with relations or a tag.
func (r *rows) findShards(ctx context.Context, src *supply.Supply, missing int) error {
	wish, err := src.Wish(ctx)
	if err != nil {
		return fmt.Errorf("sqlxhelper: shard of the keys: %w", err)
	}
	s := &shards{rows: r, src: src, wish: wish, given: make([]int, 0, missing), leads: make([]placement.Row, len(r.ids))}
	for i, id := range r.ids {
		if *id == 0 {
			s.given, s.leads[i] = append(s.given, i), s.lead(i)
		} else {
			s.leads[i] = placement.At(src.Shard(*id))
		}
	}
	r.shards = s
	return s.readTags()
}

// lead returns on what the shard of a row without a key depends, but for its tag.
func (s *shards) lead(i int) placement.Row {
	l := placement.Row{Shard: placement.None, Target: -1, Parent: -1, From: -1, Wish: placement.None}
	owner := isRoot
	if s.nodes != nil {
		owner, l.From = s.nodes[i].owner, s.nodes[i].from
	}
	switch {
	case owner >= 0:
		l.Parent = s.links[owner].to
	case owner == isRoot:
		l.Wish = s.wish
	}
	return l
}

// readTags adds what the tagged fields of the rows without a key say.
func (s *shards) readTags() error {
	if s.tables[0].plan.tagged == nil {
		return nil
	}
	for _, l := range s.links {
		p := s.nodes[l.from].plan
		if l.via.belongs && p.shard >= 0 && l.via.fk == &p.columns[p.shard] && *s.ids[l.from] == 0 {
			s.leads[l.from].Target = l.to
		}
	}
	for _, i := range s.given {
		p := s.table(i).plan
		if p.shard < 0 {
			continue
		}
		c := &p.columns[p.shard]
		id, null := c.key.Key(c.in(s.structs[i]))
		if null || s.nodes != nil && s.sets(i, c) {
			continue // it will have the key of the parent, or of the target
		}
		if id == 0 {
			return refuse(s.path(i), ErrShard, "%s is %d, and names the shard of the row; set it to a key", c.field, id)
		}
		s.leads[i].Shard = s.src.Shard(id)
	}
	return nil
}

// move puts new keys, which are in the order of s.given, on the shards of their rows.
func (s *shards) move(keys []types.Snowflake) error {
	byRow := make([]int, len(s.ids)) // the index of its key
	for i, row := range s.given {
		byRow[row] = i
	}
	shards, c := placement.Shards(s.leads, s.given, func(row int) int64 { return s.src.Shard(keys[byRow[row]]) })
	for i := range shards {
		keys[i] = s.src.On(shards[i], keys[i])
	}
	return s.refuse(c)
}

// refuse returns the error of a row whose tag says another shard than its parent or, for a root,
// than ctx; and nil without one.
func (s *shards) refuse(conflict *placement.Conflict) error {
	if conflict == nil {
		return nil
	}
	row, of := conflict.Row, "the context asks for"
	if conflict.Parent >= 0 {
		of = "the parent that holds it is on"
	}
	p := s.table(row).plan
	c, key := &p.columns[p.shard], "for a key"
	if id, _ := c.key.Key(c.in(s.structs[row])); s.leads[row].Shard != placement.None {
		key = id.String() + ","
	}
	return refuse(s.path(row), ErrShard, "%s is %s on %s, and %s %s", c.field, key, conflict.At, of, conflict.Other)
}

// follow puts the keys of rows that are not sent yet on the shards of the rows that they follow,
// after an upsert has given the rows of l the keys of stored rows.
func (a *attempt) follow(l *load) error {
	s := a.shards
	if s == nil {
		return nil
	}
	sent := make([]bool, len(s.ids))
	for i := range a.loads {
		done := &a.loads[i]
		for j := range done.rows {
			sent[done.index(j)] = true
		}
		if done == l {
			break
		}
	}
	unsent := slices.DeleteFunc(slices.Clone(s.given), func(row int) bool { return sent[row] })
	shards, c := placement.Follow(s.leads, unsent, func(row int) int64 { return s.src.Shard(*s.ids[row]) })
	for i, shard := range shards {
		if id := s.ids[unsent[i]]; s.src.Shard(*id) != shard {
			a.replaced = append(a.replaced, replacedKey{id, *id})
			*id = s.src.On(shard, *id)
		}
	}
	return s.refuse(c)
}
