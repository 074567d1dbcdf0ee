package sqlxhelper

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestChunksGrowAsColumnsShrink(t *testing.T) {
	for _, c := range []struct {
		d              Dialect
		columns, chunk int
	}{
		{SQLite, 1, 300}, {SQLite, 6, 50}, {SQLite, 7, 42}, {SQLite, 300, 1}, {SQLite, 301, 1}, {SQLite, 32766, 1},
		{PostgreSQL, 1, 3000}, {PostgreSQL, 6, 500}, {PostgreSQL, 1600, 1}, {PostgreSQL, 65535, 1},
		{MySQL, 6, 500}, {MySQL, 4096, 1},
	} {
		if got := traitsOf(c.d).chunk(c.columns); got != c.chunk {
			t.Errorf("%v.chunk(%d columns) = %d; want %d", c.d, c.columns, got, c.chunk)
		}
	}
}

// Whatever number of rows is left, a statement takes at least half of those that
// fit. pgx keeps few texts prepared on the server.
func TestPostgresHasFewStatementTexts(t *testing.T) {
	texts := map[int]bool{}
	for fit := 1; fit <= 500; fit++ {
		n := traitsOf(PostgreSQL).step(fit, 500)
		if n > fit || 2*n < fit {
			t.Errorf("step(%d) = %d; want at least half of it", fit, n)
		}
		texts[n] = true
	}
	if len(texts) > 48 {
		t.Errorf("500 row counts make %d statement texts; want at most 48", len(texts))
	}
	if n := traitsOf(PostgreSQL).step(32, 500); n != 32 {
		t.Errorf("step(32) = %d; want all", n)
	}
	if n := traitsOf(SQLite).step(49, 50); n != 49 {
		t.Errorf("step(49) on SQLite = %d; want all: it keeps no texts", n)
	}
}

func TestMoreColumnsThanBindsAreAnError(t *testing.T) {
	for d, limit := range map[Dialect]int{SQLite: 32766, PostgreSQL: 65535, MySQL: 65535} {
		columns := make([]column, limit+1)
		for i := range columns {
			columns[i].name = "c"
		}
		if _, err := traitsOf(d).insertHead("t", columns[:limit]); err != nil {
			t.Errorf("%v.insertHead(%d columns) = %v; want nil", d, limit, err)
		}
		if _, err := traitsOf(d).insertHead("t", columns); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), fmt.Sprint(limit)) {
			t.Errorf("%v.insertHead(%d columns) = %v; want ErrArgument that names %d", d, limit+1, err, limit)
		}
	}
}

// The room is reserved once, for the widest placeholders.
func TestStatementTextFitsItsBuffer(t *testing.T) {
	into := &table{head: `INSERT INTO "t" ("a")`, columns: make([]column, 6), tail: " ON CONFLICT"}
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		if n := testing.AllocsPerRun(1000, func() { _ = traitsOf(d).insertText(into, 500) }); n > 2 {
			t.Errorf("%v.insertText(500 rows) makes %v allocations; want the buffer and the string", d, n)
		}
	}
}
