package gormplugin

import (
	"database/sql"
	"math"
	"slices"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// A run is two keys, and all numbers between them are keys as well.
type run struct{ first, last int64 }

// How long runs of keys are on average, at least, to be worth it, and how many a query
// has. SQLite takes conditions to a depth of 1,000.
const (
	runLength = 10
	maxRuns   = 100
)

// runsOf returns the keys of list by runs, or nil if there would be too many. As a rule
// fresh keys follow each other, within a tick of the clock at least. Two ends of a run
// cost a fraction of a list of its keys.
//
// A run has no gap. Else its query would meet, and under SERIALIZABLE wait for, rows that
// others are inserting. Its keys have the same number of digits. Then it is right in a
// column of text too.
func (r *reread) runsOf(list []int) (runs []run) {
	if len(list) < manyRows || r.columns[0].kind == text {
		return nil
	}
	keys := make([]int64, len(list))
	for n, i := range list {
		keys[n] = r.sentAt(i, 0).number
	}
	slices.Sort(keys)
	limit := int64(0) // of the last run
	for _, key := range keys {
		if n := len(runs) - 1; n >= 0 && key <= runs[n].last+1 && key < limit {
			runs[n].last = key
			continue
		}
		if len(runs) == min(len(keys)/runLength, maxRuns) {
			return nil
		}
		runs, limit = append(runs, run{key, key}), nextDigit(key)
	}
	return runs
}

// inRuns writes that the key is in one of runs.
func (q *query) inRuns(runs []run) {
	for n, run := range runs {
		if n > 0 {
			q.write(" OR ", clause.Column{Name: q.reread.columns[0].field.DBName})
		}
		q.write(" BETWEEN ")
		q.AddVar(q, run.first)
		q.write(" AND ")
		q.AddVar(q, run.last)
	}
}

// complete reports whether all keys of runs are stored, and nothing else is to be read. It
// asks MySQL, and only if the insert seems to have stored all rows. The others tell that
// by RowsAffected. Rows that are counted need not be sent.
//
// The count is that of the keys, because the column is unique and holds integers. A
// column of text may have more between two keys.
func (r *reread) complete(runs []run) (_ bool, err error) {
	if r.db.Name() != mysqlName || len(r.columns) > 1 || r.db.RowsAffected != int64(r.rows.len()) {
		return false, nil
	}
	uniques, err := r.storedUniques()
	if err != nil {
		return false, err
	}
	key := []*schema.Field{r.columns[0].field}
	if !slices.ContainsFunc(uniques, func(u unique) bool { return u.covers(key) && u.columns[0].form.Whole }) {
		return false, nil
	}
	q := r.query()
	q.write("SELECT COUNT(*) FROM ", q.table(), " WHERE ", clause.Column{Name: r.columns[0].field.DBName})
	q.inRuns(runs)
	var stored, want int64
	for _, run := range runs {
		want += run.last - run.first + 1
	}
	err = q.rows(func(found *sql.Rows) error { return found.Scan(&stored) })
	return stored == want, err
}

// nextDigit returns the first number that is longer than n, or n+1 if n is not positive.
func nextDigit(n int64) int64 {
	if n < 1 {
		return n + 1
	}
	limit := int64(10)
	for n >= limit {
		if limit > math.MaxInt64/10 {
			return math.MaxInt64
		}
		limit *= 10
	}
	return limit
}
