package sqllease

import (
	"context"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A history is the table of the records of claims: a row for each worker, with one line for each
// claim. A row for each claim would be easier to query, but MySQL would need a further round trip
// for it, while one UPDATE can write two rows that exist. Renewals do not touch the table, and
// versions of this package that do not know it are not in the way.
type history struct {
	table  string // quoted
	update string // as register.update, and with the line on MySQL
	alone  string // as register.alone, and with the line
	insert string // the line, on MySQL for a worker without a row
}

// mostRecords is how much of the text a claim keeps: at least what remains of the last hundred.
const mostRecords = (leasestore.HistoryLength - 1) * (leasestore.MaxRecord + 1)

// newHistory returns the statements for a claim. alone lacks sqlrow.AloneBegin.
func newHistory(d sqlstore.Dialect, table, update, alone string) history {
	h := history{table: table, update: update}
	into := "INSERT INTO " + table + " AS p (namespace, datacenter, worker, records) "
	kept := fmt.Sprintf("SUBSTR(p.records, 1, %d)", mostRecords)
	upsert := " ON CONFLICT (namespace, datacenter, worker) DO UPDATE SET records = excluded.records || " + kept
	switch h.insert = into + "VALUES (?, ?, ?, ?)" + upsert; d {
	case sqlstore.PostgreSQL:
		h.alone = sqlrow.AloneBegin + ", claimed AS (" + alone + " RETURNING namespace, datacenter, worker) " +
			into + "SELECT namespace, datacenter, worker, CAST(? AS TEXT) FROM claimed" + upsert
	case sqlstore.MySQL:
		h.insert = "INSERT INTO " + table + " (namespace, datacenter, worker, records) VALUES (?, ?, ?, ?)"
		h.update = strings.NewReplacer(
			" SET ", " r LEFT JOIN "+table+" p ON p.namespace = r.namespace AND p.datacenter = r.datacenter AND p.worker = r.worker SET ",
			" WHERE namespace = ? AND datacenter = ? AND worker = ?", ", p.records = CONCAT(?, "+kept+") WHERE r.namespace = ? AND r.datacenter = ? AND r.worker = ?").Replace(update)
	}
	return h
}

// makeHistory makes the rows that a claim on MySQL finds there. It is for Make.
func (r *register) makeHistory(ctx context.Context, t *tx, s leasestore.Space) error {
	if r.db.Dialect != sqlstore.MySQL {
		return nil
	}
	_, err := t.Exec(ctx, r.insertRows(s, "IGNORE INTO "+t.Text.history.table, "worker, records", "''"))
	if dialect.NoTable(err) || dialect.NoColumn(err) || dialect.Denied(err) { // the transaction goes on
		return nil
	}
	return err
}

// Records implements [leasestore.HistoryRegister].
func (r *register) Records(ctx context.Context, s leasestore.Space, worker int64) ([]string, error) {
	var text string
	_, err := tables.Do(ctx, r.db, func(t *tx) (done struct{}, err error) {
		return done, t.Each(ctx, func(scan func(...any) error) error { return scan(&text) },
			r.db.Dialect.Bind("SELECT records FROM "+t.Text.history.table+" WHERE namespace = ? AND datacenter = ? AND worker = ?"),
			s.Namespace, s.Datacenter, worker)
	})
	lines := strings.Split(text, "\n")
	return lines[:len(lines)-1], explain("records", err) // the last one is empty or cut
}
