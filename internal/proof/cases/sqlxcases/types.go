package sqlxcases

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/sqlxhelper"
)

type status string

// decimal is exact: a text in Go, a number in the database.
type decimal string

func (d decimal) Value() (driver.Value, error) { return string(d), nil }

func (d *decimal) Scan(src any) error {
	switch src := src.(type) {
	case string:
		*d = decimal(src)
	case []byte:
		*d = decimal(src)
	default:
		return fmt.Errorf("decimal: cannot scan %T", src)
	}
	return nil
}

// level is an enum.
type level string

// point is a Valuer by its pointer alone.
type point struct{ X, Y int }

func (p *point) Value() (driver.Value, error) { return fmt.Sprintf("%d,%d", p.X, p.Y), nil }

func (p *point) Scan(src any) error {
	text := fmt.Sprint(src)
	if b, ok := src.([]byte); ok {
		text = string(b)
	}
	_, err := fmt.Sscanf(text, "%d,%d", &p.X, &p.Y)
	return err
}

// labels is an array that does without the driver.
type labels []string

func (l labels) Value() (driver.Value, error) {
	if l == nil {
		return nil, nil
	}
	return "{" + strings.Join(l, ",") + "}", nil
}

func (l *labels) Scan(src any) error {
	text := ""
	switch src := src.(type) {
	case nil:
		*l = nil
		return nil
	case string:
		text = src
	case []byte:
		text = string(src)
	}
	*l = strings.Split(strings.Trim(text, "{}"), ",")
	return nil
}

// Address is embedded by value, Audit by pointer.
type Address struct {
	City string         `db:"city"`
	Zip  sql.NullString `db:"zip"`
}

type Audit struct {
	By   *string    `db:"changed_by"`
	When *time.Time `db:"changed_at"`
}

func (d Database) withLevels(t *testing.T) {
	t.Helper()
	if d.Dialect == sqlxhelper.PostgreSQL {
		d.exec(t, "CREATE TYPE level AS ENUM ('low', 'high')")
		t.Cleanup(func() { d.exec(t, "DROP TYPE level") })
	}
}
