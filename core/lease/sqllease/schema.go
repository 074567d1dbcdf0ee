package sqllease

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

const (
	metaSuffix = "_meta"

	// schemaVersion is in every meta row. It grows when a version of this package could
	// harm, or be harmed by, one that does not know its tables.
	schemaVersion = 1

	// wholeNamespace is the datacenter of the meta row that stands for the namespace.
	// First claims in two datacenters both insert it. So the second waits for the first
	// and then sees its layout. With the rows of the two datacenters alone neither
	// would see the other's.
	wholeNamespace = -1

	maxLayout = 255 // what lease.Space.Check lets in
)

// rowColumns are those of lease.Row in the order in which they are scanned.
const rowColumns = "worker, epoch, owner, nonce, reserved_until, renewals, holder"

// texts are the statements of one Store. None depends on anything but the dialect
// and the table, so drivers that keep prepared statements keep a dozen.
type texts struct {
	probeRows, probeMeta string
	meta                 string // of a namespace
	insertMeta           string
	rows, row            string // of a space; of a worker, locked
	only                 string // rows of a space; a list of workers is to follow
	near, free           string // candidates of some rows; of all
	update               string
	fence                string // all rows of a space
	table                string // quoted
}

// textsOf returns the statements for a table.
func textsOf(d sqlstore.Dialect, names []string) texts {
	table, meta := sqlrow.Quote(d, names[0]), sqlrow.Quote(d, names[1])
	random, lock := "RANDOM()", " FOR UPDATE"
	switch d {
	case sqlstore.SQLite:
		lock = "" // the transaction has locked the file
	case sqlstore.MySQL:
		random = "RAND()"
	}
	version := strconv.Itoa(schemaVersion)
	const space = " WHERE namespace = ? AND datacenter = ?"
	const free = " AND (owner = '' AND reserved_until <= ? OR owner <> '' AND reserved_until <= ? OR owner = ?)"
	rows := "SELECT " + rowColumns + " FROM " + table + space
	return texts{
		probeRows:  "SELECT namespace, datacenter, " + rowColumns + " FROM " + table + " WHERE 1 = 0",
		probeMeta:  "SELECT namespace, datacenter, layout, schema_version FROM " + meta + " WHERE schema_version <> " + version,
		meta:       d.Bind("SELECT datacenter, layout, schema_version FROM " + meta + " WHERE namespace = ?"),
		insertMeta: d.Bind("INSERT INTO " + meta + " (namespace, datacenter, layout, schema_version) VALUES (?, ?, ?, " + version + ")"),
		rows:       d.Bind(rows + " ORDER BY worker"),
		row:        d.Bind(rows + " AND worker = ?" + lock),
		only:       d.Bind(rows + " AND worker IN "),
		// In the order of the key, so that the database stops at the last row that it needs.
		near: d.Bind(rows + " AND worker >= ? AND worker < ?" + free + " ORDER BY worker LIMIT " + strconv.Itoa(candidates)),
		free: d.Bind(rows + " AND worker < ?" + free + " ORDER BY CASE WHEN owner = ? THEN 0 ELSE 1 END, " + random + " LIMIT " + strconv.Itoa(candidates)),
		// The values are computed here, not by the database. MySQL assigns from left to
		// right, and a later assignment would see the new value of an earlier one.
		update: d.Bind("UPDATE " + table + " SET epoch = ?, owner = ?, nonce = ?, reserved_until = ?, renewals = ?, holder = ?" + space +
			" AND worker = ? AND epoch = ? AND owner = ? AND nonce = ? AND reserved_until = ? AND renewals = ?"),
		// Each value depends on its own column alone, so MySQL's order does not matter
		// here. GREATEST is MAX on SQLite; CASE is the same everywhere.
		fence: d.Bind("UPDATE " + table + " SET epoch = epoch + 1, owner = '', nonce = ?, holder = '', renewals = renewals + 1," +
			" reserved_until = CASE WHEN reserved_until < ? THEN ? ELSE reserved_until END" + space),
		table: table,
	}
}

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
	}
}

// insertRows returns the statement that makes the rows of a space. It is one statement
// for up to 65,536 rows, from the digits of the worker numbers to base 16. Recursive
// queries would be shorter, but MySQL stops them after 1,000 rounds.
func (s *Store) insertRows(space lease.Space) string {
	var digits, worker, from []string
	for i := range 16 {
		digits = append(digits, fmt.Sprintf("SELECT %d AS n", i))
	}
	for reach, name := int64(1), 'a'; reach < space.Workers || from == nil; reach, name = reach*16, name+1 {
		worker = append(worker, fmt.Sprintf("%d * %c.n", reach, name))
		from = append(from, fmt.Sprintf("(%s) %c", strings.Join(digits, " UNION ALL "), name))
	}
	number := strings.Join(worker, " + ")
	// The namespace is of the few characters that lease.Space.Check allows. As a parameter
	// in a list of results it would have no type on PostgreSQL.
	return fmt.Sprintf("INSERT INTO %s (namespace, datacenter, %s) SELECT '%s', %d, %s, 0, '', '', 0, 0, '' FROM %s WHERE %s < %d",
		s.text.table, rowColumns, space.Namespace, space.Datacenter, number, strings.Join(from, " CROSS JOIN "), number, space.Workers)
}

// Statements returns the statements that create the tables, for those who run
// their migrations themselves. None ends in a semicolon.
func (s *Store) Statements() []string { return s.db.Statements() }

// CreateTables creates the tables unless they are there. Any number of processes may do
// so at the same time. If the tables are there it needs no right to create tables. It
// checks their columns and version: a [*sqlstore.TableError] says what is wrong.
func (s *Store) CreateTables(ctx context.Context) error {
	return s.explain("create tables", s.db.CreateTables(ctx, func(ctx context.Context, t *sqlrow.Tx) error {
		if err := t.Each(ctx, func(func(...any) error) error { return nil }, s.text.probeRows); err != nil {
			return err
		}
		return t.Each(ctx, func(scan func(...any) error) error {
			var version int64
			if err := scan(new(any), new(any), new(any), &version); err != nil {
				return err
			}
			return s.wrongVersion(version)
		}, s.text.probeMeta)
	}))
}

func (s *Store) wrongVersion(version int64) error {
	return s.db.WrongSchema(fmt.Errorf("schema_version is %d, want %d", version, schemaVersion))
}
