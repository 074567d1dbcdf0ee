package shard

import (
	"slices"
	"strconv"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A Map says which database each shard of a layout is in. [New] and [Spread] return one; the zero value
// has no shards and is not usable. It does not change, and is safe for concurrent use.
type Map[DB comparable] struct {
	of []DB // by shard; its length is a power of two
}

// New returns the Map of a layout, from its shards 0..1<<ShardBits-1 to their databases. It returns a
// [*core.ValueError] if a shard is missing, has the zero value for a database, such as a nil *sql.DB,
// or is not one of the layout, and for a layout that is invalid or has no ShardBits.
func New[DB comparable](l core.Layout, databases map[int64]DB) (*Map[DB], error) {
	n, err := count(l)
	if err != nil {
		return nil, err
	}
	m := &Map[DB]{of: make([]DB, n)}
	for shard, db := range databases {
		if err := m.check("shard of databases", shard); err != nil {
			return nil, err
		}
		m.of[shard] = db
	}
	var none DB
	if first := slices.Index(m.of, none); first >= 0 {
		missing := len(slices.DeleteFunc(m.of, func(db DB) bool { return db != none }))
		return nil, invalid("databases", "without shard "+strconv.Itoa(first)+" ("+strconv.Itoa(missing)+" of "+strconv.Itoa(n)+" are missing)",
			"a database for each shard of the layout")
	}
	return m, nil
}

// Spread returns a Map with a range of shards in each database: of 256 shards and four databases, 0..63
// are in the first. The lengths of the ranges differ by one at most. It returns a [*core.ValueError] if
// there is no database, or more than there are shards, and the errors of New.
func Spread[DB comparable](l core.Layout, databases ...DB) (*Map[DB], error) {
	n, err := count(l)
	if err != nil {
		return nil, err
	}
	if len(databases) == 0 || len(databases) > n {
		return nil, invalid("databases", strconv.Itoa(len(databases)), "1.."+strconv.Itoa(n)+", the shards of the layout")
	}
	of := make(map[int64]DB, n)
	for shard := range n {
		of[int64(shard)] = databases[shard*len(databases)/n]
	}
	return New(l, of)
}

// Of returns the database that the row with key id is in. A key that is not above 0 is a
// [*core.ValueError].
func (m *Map[DB]) Of(id types.Snowflake) (DB, error) {
	if id <= 0 {
		var none DB
		return none, invalid("id", id.String(), "a key, above 0")
	}
	return m.holder(id), nil
}

// On returns the database that a shard is in. A shard that the layout does not have is a
// [*core.ValueError].
func (m *Map[DB]) On(shard int64) (DB, error) {
	if err := m.check("shard", shard); err != nil {
		var none DB
		return none, err
	}
	return m.of[shard], nil
}

// Databases returns the databases, each once, in the order of their first shards.
func (m *Map[DB]) Databases() []DB {
	var all []DB
	for _, db := range m.of {
		if !slices.Contains(all, db) {
			all = append(all, db)
		}
	}
	return all
}

// Move returns a Map in which the shard is in another database, perhaps a new one. It moves no rows. It
// returns a [*core.ValueError] for a shard that the layout does not have, or the zero value for a database.
func (m *Map[DB]) Move(shard int64, to DB) (*Map[DB], error) {
	if err := m.check("shard", shard); err != nil {
		return nil, err
	}
	var none DB
	if to == none {
		return nil, invalid("to", "", "a database, not the zero value")
	}
	of := slices.Clone(m.of)
	of[shard] = to
	return &Map[DB]{of}, nil
}

// Split returns the rows of each database, in the order in which they are in rows. A key says the key of
// a row, and each row must have one: one of 0 or below is a [*core.ValueError] that names its index. Keys
// come from the generator's Fill or Next, or from gormplugin's Plugin.Assign, before any SQL:
//
//	parts, err := shard.Split(databases, orders, func(o Order) types.Snowflake { return o.ID })
//	…
//	for db, part := range parts {
//		err = helper.InsertMany(ctx, db, "orders", part)
//
// Each database stores its part or refuses it by itself.
func Split[DB comparable, Row any](m *Map[DB], rows []Row, key func(Row) types.Snowflake) (map[DB][]Row, error) {
	parts := make(map[DB][]Row)
	for i, row := range rows {
		id := key(row)
		if id <= 0 {
			return nil, invalid("key of rows["+strconv.Itoa(i)+"]", id.String(), "a key, above 0: rows get their keys before they are split")
		}
		db := m.holder(id)
		parts[db] = append(parts[db], row)
	}
	return parts, nil
}

// holder requires an id above 0.
func (m *Map[DB]) holder(id types.Snowflake) DB { return m.of[int64(id)&int64(len(m.of)-1)] }

func (m *Map[DB]) check(name string, shard int64) error {
	if shard < 0 || shard >= int64(len(m.of)) {
		return invalid(name, strconv.FormatInt(shard, 10), "0.."+strconv.Itoa(len(m.of)-1))
	}
	return nil
}

// count returns how many shards a layout has.
func count(l core.Layout) (int, error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	if l.ShardBits == 0 {
		return 0, invalid("Layout.ShardBits", "0", "1 or more, such as 8 for 256 shards")
	}
	return 1 << l.ShardBits, nil
}

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "shard", Name: name, Value: value, Want: want}
}
