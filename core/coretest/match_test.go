package coretest_test

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/types"
)

var _ sqlmock.Argument = coretest.Matcher{}

func TestAMatcherTakesTheKeyThatItNames(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{})
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

func TestTypedKeysAreMatchedAsTheUntyped(t *testing.T) {
	type order struct{}
	g := coretest.NewGenerator(coretest.Config{})
	id := types.ID[order](take(t, g, 1)[0])
	insert := func(want any, null types.NullID[order]) error {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		mock.ExpectExec("INSERT").WithArgs(want, want).WillReturnResult(sqlmock.NewResult(0, 1))
		_, err = db.ExecContext(t.Context(), "INSERT", id, null)
		return err
	}
	present := types.NullID[order]{ID: id, Valid: true}
	for _, want := range []any{g.Key(1), coretest.AnyKey(), coretest.KeyBetween(id.Snowflake(), id.Snowflake()), id, present} {
		if err := insert(want, present); err != nil {
			t.Errorf("INSERT of %d where %v is expected = %v; want nil", id, want, err)
		}
		if err := insert(want, types.NullID[order]{}); err == nil {
			t.Errorf("INSERT of an absent NullID where %v is expected = nil; want an error", want)
		}
	}
}

func TestAKeyIsLookedUpWhenItIsCompared(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{})
	second := g.Key(2) // before the key is made
	ids := take(t, g, 2)
	for _, test := range []struct {
		key  driver.Valuer
		want driver.Value
		text string
	}{
		{second, ids[1].Int64(), ids[1].String() + ", key 2 of the generator"},
		{g.Key(1), ids[0].Int64(), ids[0].String() + ", key 1 of the generator"},
		{g.Key(3), nil, "key 3 of the generator, not made yet"},
		{g.Key(0), nil, "key 0 of the generator, not made yet"},
	} {
		got, err := test.key.Value()
		text := fmt.Sprint(test.key)
		if got != test.want || (err == nil) != (test.want != nil) || text != test.text {
			t.Errorf("Value() = %v, %v, String() = %q; want %v, %q", got, err, text, test.want, test.text)
		}
	}
}

// A test that fails says which key was wanted, and which came.
func TestSqlmockShowsTheKeyThatWasWanted(t *testing.T) {
	g := coretest.NewGenerator(coretest.Config{First: 41})
	take(t, g, 1)
	for _, test := range []struct {
		argument driver.Value
		wants    []string // in the error of the statement, and of ExpectationsWereMet
	}{
		{g.Key(1), []string{"[int64 - 41]", "41, key 1 of the generator"}},
		{g.Key(2), []string{"has made 1 keys, and not key 2", "key 2 of the generator, not made yet"}},
		{coretest.AnyKey(), []string{"coretest.Matcher", "any key"}},
		{coretest.KeyBetween(7, 8), []string{"coretest.Matcher", "a key from 7 to 8"}},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		mock.ExpectExec("INSERT").WithArgs(test.argument).WillReturnResult(sqlmock.NewResult(0, 1))
		_, sent := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", -5)
		for i, err := range []error{sent, mock.ExpectationsWereMet()} {
			if err == nil || !strings.Contains(err.Error(), test.wants[i]) {
				t.Errorf("error %d of a statement with -5 in place of %v = %v; want %q in it", i, test.argument, err, test.wants[i])
			}
		}
		if sent == nil || !strings.Contains(sent.Error(), "-5") && strings.Contains(test.wants[0], "int64") {
			t.Errorf("error of a statement with -5 in place of %v = %v; want -5 in it", test.argument, sent)
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
