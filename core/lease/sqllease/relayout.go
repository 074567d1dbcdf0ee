package sqllease

import (
	"context"
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// Relayout gives a namespace another layout: from is the space that is stored, and to the same with
// another Layout and number of Workers. No ID of a later lease has a time before until. rows are
// all rows of from, as [leasestore.Lister] has read them. If one has changed since, the error is a
// [*leasestore.LostError] and nothing is done, so that what the caller has concluded from the rows
// still holds when the layout changes.
//
// It is for the command snowkey, whose "workers empty" decides whether a namespace is unused and whether
// IDs of the two layouts could be equal. Relayout itself refuses a namespace with rows of several
// datacenters only. A holder that runs on loses its row.
//
// Epochs go on from the next multiple of [leasestore.RelayoutEpochs], for whoever fences by them, and so that the
// rows show that the namespace had another layout before.
func (s *Store) Relayout(ctx context.Context, from, to leasestore.Space, rows []leasestore.Row, until leasestore.Millis) error {
	for _, space := range []leasestore.Space{from, to} {
		if err := space.Validate(); err != nil {
			return err
		}
	}
	r, lock := s.register, " FOR UPDATE"
	if r.db.Dialect == sqlstore.SQLite { // which has one writer
		lock = ""
	}
	_, err := tables.Do(ctx, r.db, func(t *tx) (done struct{}, err error) {
		// The rows first, since renewals lock them. None of those that wait is done afterwards, because each
		// compares all columns.
		found, err := r.lockRows(ctx, t, from, lock)
		if err != nil {
			return done, err
		}
		epoch := int64(0)
		for i, row := range found {
			if i >= len(rows) || row != rows[i] {
				return done, &leasestore.LostError{Worker: row.Worker, Epoch: row.Epoch, Reason: "its row has changed since it was read"}
			}
			epoch = max(epoch, row.Epoch)
		}
		if len(found) != len(rows) {
			return done, &leasestore.LostError{Worker: int64(len(found)), Reason: leasestore.Gone}
		}
		datacenters, err := r.datacenters(ctx, t, from, " ORDER BY datacenter"+lock)
		if err != nil {
			return done, err
		}
		if want := []int64{wholeNamespace, from.Datacenter}; !slices.Equal(datacenters, want) {
			return done, leasestore.Permanent(fmt.Errorf("namespace %q has rows of the datacenters %d, where %d is the namespace itself; want %d alone", from.Namespace, datacenters, wholeNamespace, from.Datacenter))
		}
		next := fmt.Sprintf("%d, '', '', %d, 0, ''", (epoch/leasestore.RelayoutEpochs+1)*leasestore.RelayoutEpochs, int64(until))
		for _, statement := range []struct {
			text string
			args []any
		}{
			{"DELETE FROM " + t.Text.table + " WHERE namespace = ? AND datacenter = ?", []any{from.Namespace, from.Datacenter}},
			{r.insertRows(to, "INTO "+t.Text.table, rowColumns, next), nil},
			{"UPDATE " + t.Text.meta + " SET layout = ? WHERE namespace = ?", []any{to.Layout, to.Namespace}},
		} {
			if _, err := t.Exec(ctx, r.db.Dialect.Bind(statement.text), statement.args...); err != nil {
				return done, err
			}
		}
		return done, r.makeHistory(ctx, t, to)
	})
	return explain("relayout", err)
}

// lockRows reads all rows of a space.
func (r *register) lockRows(ctx context.Context, t *tx, s leasestore.Space, lock string) (all []leasestore.Row, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		var row leasestore.Row
		var until int64
		if err := scan(&row.Worker, &row.Epoch, &row.Owner, &row.Nonce, &until, &row.Renewals, &row.Holder); err != nil {
			return err
		}
		row.Until = leasestore.Millis(until)
		all = append(all, row)
		return nil
	}, r.db.Dialect.Bind("SELECT "+rowColumns+" FROM "+t.Text.table+" WHERE namespace = ? AND datacenter = ? ORDER BY worker"+lock), s.Namespace, s.Datacenter)
	return all, err
}
