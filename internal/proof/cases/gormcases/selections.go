package gormcases

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

type condition = gormplugin.Condition

// A selection is a condition and what it selects.
type selection struct {
	text      string
	condition condition
	selects   func(id types.Snowflake) bool
}

// selections returns keys of a layout, and conditions at these and between. A row was created before
// a time if the tick of its key ends by then.
func selections(l core.Layout) (ids []types.Snowflake, list []selection) {
	before := func(t time.Time) func(types.Snowflake) bool {
		return func(id types.Snowflake) bool { return !l.Parts(id).Time.Add(l.Unit).After(t) }
	}
	times := []time.Time{{}, l.Exhausted().AddDate(1000, 0, 0)}
	for _, at := range []time.Time{l.Epoch, l.Epoch.Add(5 * l.Unit), l.Exhausted().Add(-l.Unit)} {
		ids = append(ids, max(1, l.Min(at)), l.Max(at)) // not 0, which the plugin takes for missing
		times = append(times, at, at.Add(l.Unit/2), at.Add(l.Unit).In(time.FixedZone("", 3600)))
	}
	list = []selection{{"the zero Condition", condition{}, func(types.Snowflake) bool { return true }}}
	for i, from := range times {
		until := times[(i+3)%len(times)]
		list = append(list,
			selection{fmt.Sprint("before ", from), gormplugin.CreatedBefore(from), before(from)},
			selection{fmt.Sprint("after ", from), gormplugin.CreatedAfter(from), func(id types.Snowflake) bool { return !before(from)(id) }},
			selection{fmt.Sprint("between ", from, " and ", until), gormplugin.CreatedBetween(from, until), func(id types.Snowflake) bool { return !before(from)(id) && before(until)(id) }})
	}
	for _, than := range append([]types.Snowflake{math.MinInt64, 0, math.MaxInt64}, ids...) {
		list = append(list,
			selection{fmt.Sprint("newer than ", than), gormplugin.NewerThan(than), func(id types.Snowflake) bool { return id > than }},
			selection{fmt.Sprint("older than ", than), gormplugin.OlderThan(than), func(id types.Snowflake) bool { return id < than }})
	}
	return ids, list
}

// joinings are ways to put two conditions into a statement, and which rows it then selects.
var joinings = []struct {
	name    string
	join    func(tx *gorm.DB, a, b condition) *gorm.DB
	selects func(a, b bool) bool
}{
	{"Where", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Where("id <> 0").Where(a).Where(b) }, func(a, b bool) bool { return a && b }},
	{"Or", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Where(a).Or(b) }, func(a, b bool) bool { return a || b }},
	{"Not", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Not(a).Where(b) }, func(a, b bool) bool { return !a && b }},
	{"Not both", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Not(a, b) }, func(a, b bool) bool { return !(a && b) }},
	{"Scopes", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Scopes(a.Scope, b.Scope) }, func(a, b bool) bool { return a && b }},
	{"Clauses", func(tx *gorm.DB, a, b condition) *gorm.DB { return tx.Clauses(a, b) }, func(a, b bool) bool { return a && b }},
	{"a clause of both", func(tx *gorm.DB, a, b condition) *gorm.DB {
		return tx.Clauses(clause.Where{Exprs: []clause.Expression{clause.Or(a, b)}})
	}, func(a, b bool) bool { return a || b }},
	{"a group of both", func(tx *gorm.DB, a, b condition) *gorm.DB {
		return tx.Where(tx.Session(&gorm.Session{NewDB: true}).Where(a).Or(b))
	}, func(a, b bool) bool { return a || b }},
}

// selected ends a statement on the rows of model in a way. It returns the rows that it found or
// changed, or that Delete has left.
func selected(end string, chain *gorm.DB, model func() *gorm.DB) (ids []types.Snowflake, err error) {
	switch end {
	case "Find":
		var list []Event
		err = chain.Order("id").Find(&list, condition{}).Error
		return idsOf(list), err
	case "Update":
		err = chain.Update("name", "changed").Error
		chain = model().Where("name = ?", "changed")
	case "Delete":
		err = chain.Unscoped().Delete(&Event{}).Error
		chain = model()
	case "subquery":
		chain = model().Where("id IN (?)", chain.Select("id"))
	}
	return ids, errors.Join(err, chain.Order("id").Pluck("id", &ids).Error)
}
