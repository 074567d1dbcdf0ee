package sqllease

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

const (
	metaSuffix    = "_meta"
	historySuffix = "_past" // no longer than that of meta, so that every name of a table in use still fits

	// schemaVersion is in every meta row. It grows when a version of this package could harm
	// another that does not know its tables, or be harmed by it.
	schemaVersion = 1

	// wholeNamespace is the datacenter of the meta row of the namespace itself. First claims in
	// two datacenters both insert that row, which makes the second wait for the first and then
	// see its layout. The rows of the datacenters alone would not show it.
	wholeNamespace = -1

	maxLayout = 255 // the longest that leasestore.Space permits
)

// rowColumns are the fields of leasestore.Row, in their order.
const rowColumns = "worker, epoch, owner, nonce, reserved_until, renewals, holder"

// create returns the statements that create the tables.
func create(d sqlstore.Dialect, names []string) []string {
	return []string{
		sqlrow.CreateTable(d, names[1],
			"namespace VARCHAR(64) NOT NULL",
			"datacenter BIGINT NOT NULL",
			"layout VARCHAR("+strconv.Itoa(maxLayout)+") NOT NULL",
			"schema_version BIGINT NOT NULL",
			"PRIMARY KEY (namespace, datacenter)"),
		sqlrow.CreateTable(d, names[0],
			"namespace VARCHAR(64) NOT NULL",
			"datacenter BIGINT NOT NULL",
			"worker BIGINT NOT NULL",
			"epoch BIGINT NOT NULL",
			"owner VARCHAR(64) NOT NULL",
			"nonce VARCHAR(64) NOT NULL",
			"reserved_until BIGINT NOT NULL",
			"renewals BIGINT NOT NULL",
			"holder VARCHAR(64) NOT NULL",
			"PRIMARY KEY (namespace, datacenter, worker)"),
		sqlrow.CreateTable(d, names[2],
			"namespace VARCHAR(64) NOT NULL",
			"datacenter BIGINT NOT NULL",
			"worker BIGINT NOT NULL",
			"records TEXT NOT NULL", // one a line, the newest first
			"PRIMARY KEY (namespace, datacenter, worker)"),
	}
}

// datacenters returns the datacenters that have meta rows in a namespace, and wholeNamespace. A layout
// other than that of s is an error. tail ends the query, with an order or a lock.
func (r *register) datacenters(ctx context.Context, t *tx, s leasestore.Space, tail string) (all []int64, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var (
			datacenter, version int64
			layout              string
		)
		if err := scan(&datacenter, &layout, &version); err != nil {
			return err
		}
		if version != schemaVersion {
			return r.wrongVersion(version)
		}
		if layout != s.Layout {
			return &leasestore.LayoutError{Namespace: s.Namespace, Stored: layout, Own: s.Layout}
		}
		all = append(all, datacenter)
		return nil
	}, r.db.Dialect.Bind("SELECT datacenter, layout, schema_version FROM "+t.Text.meta+" WHERE namespace = ?"+tail), s.Namespace)
	return all, err
}

// Make inserts the meta rows and the rows in one transaction. If several processes do so at
// once, one inserts the meta row, and the others find it when they look again.
func (r *register) Make(ctx context.Context, s leasestore.Space) error {
	_, err := tables.Do(ctx, r.db, func(t *tx) (done struct{}, err error) {
		known, err := r.datacenters(ctx, t, s, "")
		if err != nil || slices.Contains(known, s.Datacenter) {
			return done, err
		}
		datacenters := []int64{wholeNamespace, s.Datacenter}
		if slices.Contains(known, wholeNamespace) {
			datacenters = datacenters[1:]
		}
		for _, datacenter := range datacenters {
			if _, err := t.Exec(ctx, t.Text.insertMeta, s.Namespace, datacenter, s.Layout); err != nil {
				return done, err
			}
		}
		if _, err = t.Exec(ctx, r.insertRows(s, "INTO "+t.Text.table, rowColumns, "0, '', '', 0, 0, ''")); err == nil {
			err = r.makeHistory(ctx, t, s)
		}
		return done, err
	})
	return explain("make", err)
}

// insertRows returns the statement that makes rows for the workers of a space, with constants in
// the other columns: one statement for up to 65,536 rows, from the digits of the worker numbers to
// base 16. A recursive query would be shorter, but MySQL stops those after 1,000 rounds.
func (r *register) insertRows(s leasestore.Space, into, columns, constants string) string {
	var digits, worker, from []string
	for i := range 16 {
		digits = append(digits, fmt.Sprintf("SELECT %d AS n", i))
	}
	for reach, name := int64(1), 'a'; reach < s.Workers || from == nil; reach, name = reach*16, name+1 {
		worker = append(worker, fmt.Sprintf("%d * %c.n", reach, name))
		from = append(from, fmt.Sprintf("(%s) %c", strings.Join(digits, " UNION ALL "), name))
	}
	number := strings.Join(worker, " + ")
	// A namespace has no character that ends a string. As a parameter in a list of results it
	// would have no type on PostgreSQL.
	return fmt.Sprintf("INSERT %s (namespace, datacenter, %s) SELECT '%s', %d, %s, %s FROM %s WHERE %s < %d",
		into, columns, s.Namespace, s.Datacenter, number, constants, strings.Join(from, " CROSS JOIN "), number, s.Workers)
}

// Statements returns the statements that create the tables, for those who run their
// migrations themselves. None ends in a semicolon. They name the schema of
// Config.Table, or none, and then make the tables in the schema of whoever runs them.
func (s *Store) Statements() []string { return s.register.db.Statements() }

// CreateTables creates the tables unless they exist, which any number of processes may do at
// once, and which needs no right to create tables if they do. It checks their columns and
// version: a [*sqlstore.TableError] says what is wrong.
func (s *Store) CreateTables(ctx context.Context) error {
	r := s.register
	err := r.db.CreateTables(ctx, func(ctx context.Context, t *tx) error {
		if err := t.Columns(ctx, 0, "namespace, datacenter, "+rowColumns); err != nil {
			return err
		}
		return t.Each(ctx, func(scan func(...any) error) error {
			var version int64
			if err := scan(new(any), new(any), new(any), &version); err != nil {
				return err
			}
			return r.wrongVersion(version)
		}, fmt.Sprintf("SELECT namespace, datacenter, layout, schema_version FROM %s WHERE schema_version <> %d", t.Text.meta, schemaVersion))
	})
	if err != nil {
		return explain("create tables", err)
	}
	if err := r.db.CreateTables(ctx, func(ctx context.Context, t *tx) error {
		return t.Columns(ctx, 2, "namespace, datacenter, worker, records")
	}); err != nil {
		r.db.Log.WarnContext(ctx, "sqllease: no table of past holders; leases work without, but History does not know them", "table", r.db.Names()[2], "error", explain("create tables", err))
	}
	return nil
}

func (r *register) wrongVersion(version int64) error {
	return r.db.WrongSchema(fmt.Errorf("schema_version is %d, want %d", version, schemaVersion))
}
