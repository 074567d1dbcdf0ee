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
		if got := c.d.divide(c.columns, 1).chunk; got != c.chunk {
			t.Errorf("%v.divide(%d columns).chunk = %d; want %d", c.d, c.columns, got, c.chunk)
		}
	}
}

// The law of divide: all rows, none twice, no statement above the bind limit.
func TestStatementsCoverAllRowsWithinTheBindLimit(t *testing.T) {
	for _, d := range []Dialect{SQLite, PostgreSQL, MySQL} {
		for _, columns := range []int{1, 2, 6, 17, 299, 301, 1600} {
			for rows := range 1300 {
				v := d.divide(columns, rows)
				got := v.full * v.chunk
				for _, n := range v.tail {
					got += n
					if n < 1 || n >= v.chunk {
						t.Fatalf("%v.divide(%d, %d) has a tail of %d rows; want 1 to %d", d, columns, rows, n, v.chunk-1)
					}
				}
				if got != rows || v.chunk*columns > max(d.traits().binds, columns) || len(v.tail) > 2 {
					t.Fatalf("%v.divide(%d, %d) = %+v; want all rows, at most %d values, a tail of at most 2", d, columns, rows, v, d.traits().binds)
				}
			}
		}
	}
}

// pgx keeps each text prepared in the server.
func TestPostgresHasFewStatementTexts(t *testing.T) {
	texts := map[int]bool{}
	for rows := 1; rows <= 2000; rows++ {
		v := PostgreSQL.divide(6, rows)
		if v.full > 0 {
			texts[v.chunk] = true
		}
		for _, n := range v.tail {
			texts[n] = true
		}
	}
	if len(texts) > 48 {
		t.Errorf("2000 row counts make %d statement texts; want at most 48", len(texts))
	}
	if n := PostgreSQL.divide(6, 32).statements(); n != 1 {
		t.Errorf("32 rows take %d statements; want 1", n)
	}
}

func TestMoreColumnsThanBindsAreAnError(t *testing.T) {
	for d, limit := range map[Dialect]int{SQLite: 32766, PostgreSQL: 65535, MySQL: 65535} {
		columns := make([]column, limit+1)
		for i := range columns {
			columns[i].name = "c"
		}
		if _, err := d.insertHead("t", columns[:limit]); err != nil {
			t.Errorf("%v.insertHead(%d columns) = %v; want nil", d, limit, err)
		}
		if _, err := d.insertHead("t", columns); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), fmt.Sprint(limit)) {
			t.Errorf("%v.insertHead(%d columns) = %v; want ErrArgument that names %d", d, limit+1, err, limit)
		}
	}
}

// The room is reserved once, for the widest placeholders.
func TestStatementTextFitsItsBuffer(t *testing.T) {
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		if n := testing.AllocsPerRun(5, func() { _ = d.insertText("", 6, 500) }); n > 2 {
			t.Errorf("%v.insertText(500 rows) makes %v allocations; want the buffer and the string", d, n)
		}
	}
}
