package tables

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A table without a schema is found by what a connection has at the time: search_path, which differs
// between roles and is changed by SET, or a default database, which USE changes. Two tables of one
// name would give the same numbers twice. A Store therefore looks for its tables once, in its first
// operation, and names them in full from then on, even if they are dropped.

// A place is where the tables are.
type place[T any] struct {
	*Tables[T]
	there  bool     // the first table exists
	others []string // tables of its name in other schemas
}

// place returns where the tables are, or where they are to be created, among all schemas that have the
// first one or could get it.
func (d *DB[T]) place(all []sqlrow.Schema) (place[T], error) {
	p := place[T]{Tables: d.found.Load()}
	if p.Tables == nil {
		schema, err := sqlrow.Home(all)
		if err != nil {
			return p, d.named.missing(err)
		}
		p.Tables = d.in(schema)
	}
	for _, s := range all {
		switch {
		case !s.Has:
		case s.Name == p.schema:
			p.there = true
		default:
			p.others = append(p.others, sqlrow.Name{Schema: s.Name, Table: d.first()}.String())
		}
	}
	slices.Sort(p.others)
	return p, nil
}

// first returns the name of the first table, without a schema.
func (d *DB[T]) first() string { return sqlrow.NameOf(d.Dialect, d.config.Table).Table }

// Find returns the tables. Until they are found for the first time, each call asks the database.
func (d *DB[T]) Find(ctx context.Context) (*Tables[T], error) {
	if found := d.found.Load(); found != nil {
		return found, nil
	}
	p, err := sqlrow.Do(ctx, d.DB, func(t *sqlrow.Tx) (p place[T], err error) { return d.look(ctx, t) })
	if err != nil {
		return nil, err
	}
	return d.keep(ctx, p), nil
}

// look returns where the tables are. A missing one is an error.
func (d *DB[T]) look(ctx context.Context, t *sqlrow.Tx) (p place[T], err error) {
	all, err := t.Schemas(ctx, d.first())
	if err != nil {
		return p, err
	}
	p, err = d.place(all)
	if err == nil && !p.there {
		err = p.missing(errors.New("not in a schema of search_path, or not in the default database"))
	}
	return p, err
}

// keep makes p the place of the tables for the life of the Store, unless another call was first.
func (d *DB[T]) keep(ctx context.Context, p place[T]) *Tables[T] {
	if !d.found.CompareAndSwap(nil, p.Tables) {
		return d.found.Load()
	}
	d.Log.DebugContext(ctx, "sqlstore: the table is found; it is used from now on, whatever search_path and the default database become", "table", p.Names[0])
	if len(p.others) > 0 {
		d.Log.WarnContext(ctx, "sqlstore: other schemas have a table of this name; programs that write the same rows and use different ones repeat numbers. Name the schema in Config.Table.",
			"table", p.Names[0], "others", p.others)
	}
	return p.Tables
}

// Within is [sqlrow.DB.Within]. A transaction may have a search_path of its own, which must not choose
// among several tables, so these are [sqlstore.ErrOtherSchema] unless the Store has found its own before.
func (d *DB[T]) Within(ctx context.Context, tx dialect.Executor) (*Tx[T], error) {
	t, err := d.DB.Within(ctx, tx)
	if err != nil {
		return nil, err
	}
	found := d.found.Load()
	if found == nil {
		p, err := d.look(ctx, t)
		if err != nil {
			return nil, err
		}
		if len(p.others) > 0 {
			return nil, fmt.Errorf("%w: %s and %s, and a transaction does not choose between them; call Define or Lookup before, or name the schema in Config.Table",
				sqlstore.ErrOtherSchema, p.Names[0], strings.Join(p.others, ", "))
		}
		found = d.keep(ctx, p)
	}
	return &Tx[T]{t, found}, nil
}

// CreateTables creates the tables unless they exist. Any number of processes may do so at the
// same time. check examines the tables by statements that only read; if it finds them in order,
// no right to create tables is needed.
//
// Unless Config.Table names the schema, the first table is not created while another schema has one
// of its name; the error matches [sqlstore.ErrOtherSchema].
func (d *DB[T]) CreateTables(ctx context.Context, check func(context.Context, *Tx[T]) error) error {
	look := func() error {
		_, err := Do(ctx, d, func(t *Tx[T]) (done struct{}, err error) { return done, check(ctx, t) })
		return err
	}
	if err := look(); !errors.Is(err, sqlstore.ErrNoTable) {
		return err
	}
	made, err := sqlrow.Do(ctx, d.DB, func(t *sqlrow.Tx) (p place[T], err error) {
		if p, err = d.free(ctx, t); err != nil {
			return p, err
		}
		for _, text := range p.statements {
			if _, err := t.Exec(ctx, text); err != nil {
				return p, err
			}
		}
		return p, nil
	})
	if err != nil {
		return d.Explain(err)
	}
	d.keep(ctx, made)
	return look()
}

// free returns where the tables are to be created.
func (d *DB[T]) free(ctx context.Context, t *sqlrow.Tx) (p place[T], err error) {
	if d.named.schema != "" {
		return place[T]{Tables: d.named}, nil
	}
	if err := t.LockSchemas(ctx); err != nil {
		return p, err
	}
	all, err := t.Schemas(ctx, d.first())
	if err != nil {
		return p, err
	}
	p, err = d.place(all)
	if err == nil && !p.there && len(p.others) > 0 {
		err = fmt.Errorf("%w: %s, beside which %[3]s is not created; set Config.Table to the one whose programs write the same rows, with its schema, or to %[3]s if no other program does",
			sqlstore.ErrOtherSchema, strings.Join(p.others, ", "), p.Names[0])
	}
	return p, err
}

// Locate returns the name in full, quoted, of a table of the program that [sqlrow.CheckTable] has
// accepted, or the name unchanged if there is none.
func (d *DB[T]) Locate(ctx context.Context, rows *sqlrow.DB, table string) (quoted string, found bool, err error) {
	name := sqlrow.NameOf(d.Dialect, table)
	if name.Schema == "" {
		all, err := sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) ([]sqlrow.Schema, error) { return t.Schemas(ctx, name.Table) })
		if err != nil {
			return "", false, err
		}
		all = slices.DeleteFunc(all, func(s sqlrow.Schema) bool { return !s.Has })
		name.Schema, found = sqlrow.Visible(all)
		return name.Quote(d.Dialect), found, nil
	}
	return name.Quote(d.Dialect), true, nil
}
