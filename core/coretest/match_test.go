package coretest_test

import (
	"database/sql/driver"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/types"
)

var _ sqlmock.Argument = coretest.Matcher(nil)

func TestAMatcherTakesTheKeyThatItNames(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{})
	second := g.Key(2) // before the key is made
	early := g.Key(3)
	ids := take(t, g, 2)
	span := coretest.KeyBetween(g.Min(coretest.Start()), g.Max(coretest.Start()))
	next := g.Min(coretest.Start().Add(time.Millisecond))
	for _, test := range []struct {
		name    string
		matcher coretest.Matcher
		value   driver.Value
		want    bool
	}{
		{"AnyKey", coretest.AnyKey(), int64(1), true},
		{"AnyKey", coretest.AnyKey(), int64(0), false},
		{"AnyKey", coretest.AnyKey(), int64(-1), false},
		{"AnyKey", coretest.AnyKey(), nil, false},
		{"AnyKey", coretest.AnyKey(), "1", false},
		{"Key(2)", second, ids[1].Int64(), true},
		{"Key(2)", second, ids[0].Int64(), false},
		{"Key(2)", second, nil, false},
		{"Key(3), not made yet", early, int64(0), false},
		{"Key(0)", g.Key(0), ids[0].Int64(), false},
		{"KeyBetween", span, ids[0].Int64(), true},
		{"KeyBetween", span, (next - 1).Int64(), true},
		{"KeyBetween", span, next.Int64(), false},
		{"KeyBetween", span, (ids[0] - 1).Int64(), false},
		{"KeyBetween", span, ids[0].String(), false},
	} {
		if got := test.matcher.Match(test.value); got != test.want {
			t.Errorf("%s.Match(%v) = %v; want %v", test.name, test.value, got, test.want)
		}
	}
}

// sqlmock hands a matcher what the driver would get.
func TestSqlmockHandsAMatcherTheNumber(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	g := coretest.NewGenerator(coretest.Config{})
	mock.ExpectExec("INSERT").WithArgs(g.Key(1), coretest.AnyKey(), coretest.AnyKey()).WillReturnResult(sqlmock.NewResult(0, 1))
	id := take(t, g, 1)[0]
	parent := types.NullSnowflake{Snowflake: 7, Valid: true}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?, ?, ?)", id, parent, &id); err != nil {
		t.Errorf("Exec(%d) = %v; want it to match", id, err)
	}
	mock.ExpectExec("INSERT").WithArgs(g.Key(1)).WillReturnResult(sqlmock.NewResult(0, 1))
	if _, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", id+1); err == nil {
		t.Errorf("Exec(%d) = no error; want it not to match", id+1)
	}
}
