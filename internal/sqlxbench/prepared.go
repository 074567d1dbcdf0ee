package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jmoiron/sqlx"
)

// prepared is database/sql with nothing on top. It is one prepared statement for so
// many rows, over one slice of values. The rows have their keys.
func prepared(chunk int) func(context.Context, *job) (load, error) {
	return func(ctx context.Context, j *job) (load, error) {
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error {
				for _, t := range j.tables() {
					if err := preparedStore(ctx, tx, t, chunk); err != nil {
						return err
					}
				}
				return nil
			})
		}}, nil
	}
}

func preparedStore(ctx context.Context, tx *sqlx.Tx, t table, chunk int) error {
	for done := 0; done < t.rows; {
		// All of the full chunks by one statement, then the rest by another.
		n := min(chunk, t.rows-done)
		if err := preparedChunks(ctx, tx, t, done, n, (t.rows-done)/n); err != nil {
			return err
		}
		done += (t.rows - done) / n * n
	}
	return nil
}

func preparedChunks(ctx context.Context, tx *sqlx.Tx, t table, first, n, chunks int) (err error) {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	stmt, err := tx.PrepareContext(ctx, "INSERT INTO "+t.name+" ("+strings.Join(t.columns, ", ")+") VALUES "+row+strings.Repeat(", "+row, n-1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	columns := len(t.columns)
	values := make([]any, n*columns)
	for c := range chunks {
		for i := range n {
			t.set(values[i*columns:(i+1)*columns], first+c*n+i)
		}
		if _, err := stmt.ExecContext(context.WithoutCancel(ctx), values...); err != nil {
			return err
		}
	}
	return nil
}
