package gormplugin

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// GORM changes the order of the conditions that it writes in place. Several
// goroutines may write a statement, each from a session of its own.
func TestPageLeavesTheConditionsBeforeItInTheirOrder(t *testing.T) {
	db := settleDB(t)()
	either, other := clause.Or(clause.Eq{Column: "id", Value: 1}), clause.Eq{Column: "id", Value: 2}
	group := pageGroup{either, other}
	stmt := &gorm.Statement{DB: db, Clauses: map[string]clause.Clause{}}
	group.Build(stmt)
	if got, want := stmt.SQL.String(), "(`id` = ? OR `id` = ?)"; got != want {
		t.Errorf("Build = %s; want %s", got, want)
	}
	if !alternative(group[0]) || alternative(group[1]) {
		t.Errorf("group after Build = %+v; want the order that it had", group)
	}
}
