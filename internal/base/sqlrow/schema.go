package sqlrow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Schema is a schema of PostgreSQL, or a database of MySQL, in which a table may be.
type Schema struct {
	Name string
	Path int  // its place among those in which the connection looks for a table, from 1; 0: it does not
	Has  bool // it has the table
}

// Schemas returns the schemas in which the connection looks for a table, and the others that have it,
// as far as the user may know. Those of temporary tables and of the system are left out. [CheckTable]
// has accepted the name of the table, which has no schema. The dialect is PostgreSQL or MySQL.
func (t *Tx) Schemas(ctx context.Context, table string) ([]Schema, error) {
	return schemas(ctx, t.executor, t.db.config.Dialect, table)
}

func schemas(ctx context.Context, e dialect.Executor, d dialect.Dialect, table string) (all []Schema, err error) {
	query := `SELECT n.nspname, COALESCE(array_position(current_schemas(false), n.nspname), 0), c.relname IS NOT NULL
		FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = '%[1]s'
		WHERE n.nspname !~ '^pg_' AND (c.relname IS NOT NULL OR n.nspname = ANY (current_schemas(false)))`
	if d == dialect.MySQL {
		query = `SELECT DATABASE(), 1, (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '%[1]s') FROM DUAL WHERE DATABASE() IS NOT NULL
			UNION ALL SELECT table_schema, 0, 1 FROM information_schema.tables WHERE table_name = '%[1]s' AND NOT table_schema <=> DATABASE()`
	}
	err = dialect.Each(ctx, e, func(rows *sql.Rows) error {
		var s Schema
		if err := rows.Scan(&s.Name, &s.Path, &s.Has); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	}, fmt.Sprintf(query, table))
	return all, err
}

// Visible returns the schema in which a connection finds a table, or else the one in which it would
// create it.
func Visible(all []Schema) (home string, ok bool) {
	var best Schema
	for _, s := range all {
		better := !ok || s.Has && !best.Has || s.Has == best.Has && s.Path < best.Path
		if s.Path > 0 && better {
			best, ok = s, true
		}
	}
	return best.Name, ok
}

// Home is [Visible] for statements with the schema. The error says what is wrong with it.
func Home(all []Schema) (string, error) {
	home, ok := Visible(all)
	if !ok {
		return "", errors.New("the connection has no schema, by search_path or as default database; name one in Config.Table")
	}
	if strings.Contains(home, "?") { // Bind would take it for a parameter
		return "", fmt.Errorf("the schema %q of the connection has a question mark in its name; name another one in Config.Table", home)
	}
	return home, nil
}

// Locate returns the name in full by which a connection of the caller finds a table, or would create it.
// The name of the table has no quotation mark and no backslash.
func Locate(ctx context.Context, e dialect.Executor, d dialect.Dialect, table string) (Name, error) {
	name := NameOf(d, table)
	if name.Schema != "" {
		return name, nil
	}
	all, err := schemas(ctx, e, d, name.Table)
	if err == nil {
		name.Schema, err = Home(all)
	}
	return name, err
}

// LockSchemas makes other transactions that call it wait until this one has ended, so that of two that
// look for a table and then create it, each in a schema of its own, the second sees that of the first.
// The dialect is PostgreSQL or MySQL.
func (t *Tx) LockSchemas(ctx context.Context) error {
	if t.db.config.Dialect == dialect.PostgreSQL {
		_, err := t.executor.ExecContext(ctx, "SELECT pg_advisory_xact_lock(1936617335, 0)") // no sequence of id_next has OID 0
		return err
	}
	// CREATE TABLE ends the transaction, and so the lock is one of the connection. A Galera cluster may
	// refuse it (pxc_strict_mode), and it would not reach the other nodes either.
	const name = "'snowkey: create tables'"
	t.restore = append(t.restore, "DO RELEASE_LOCK("+name+")")
	var got *int64
	err := dialect.One(ctx, t.executor, []any{&got}, "SELECT GET_LOCK("+name+", 3600)")
	if ctx.Err() != nil || dialect.BadConnection(err) {
		return err
	}
	return nil
}
