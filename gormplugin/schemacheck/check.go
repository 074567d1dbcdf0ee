package schemacheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// Check compares models with the database and returns everything that does not fit the keys
// of package gormplugin. Call it in a test, or when a service starts:
//
//	findings, err := schemacheck.Check(ctx, db, &Order{}, &Item{})
//	for _, f := range findings {
//		log.Print(f) // and f.SQL has the statements that mend it
//	}
//
// The columns of a has-many child or a join table are checked with the model that declares
// the relation. On PostgreSQL and MySQL, the columns of fresh tables of AutoMigrate give no
// finding, unless a model asks for a counted key, as one of type int64 does without
// autoIncrement:false. On SQLite they give [NoRowID], unless [gormplugin.UseRowIDs] was
// called before.
//
// Check reads the catalog and writes nothing. With dbresolver it asks the source of each
// table, and not a replica. Findings come in the order of the models.
//
// It returns the error of a model that GORM cannot parse, the error of the database,
// gorm.ErrInvalidDB or gorm.ErrDryRunModeUnsupported. For a database other than SQLite,
// PostgreSQL and MySQL (MariaDB) it returns an error and the findings that need no
// database. It is safe for concurrent use.
func Check(ctx context.Context, db *gorm.DB, models ...any) ([]Finding, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return nil, fmt.Errorf("schemacheck: %w", gorm.ErrInvalidDB)
	}
	if db.DryRun {
		return nil, fmt.Errorf("schemacheck: %w", gorm.ErrDryRunModeUnsupported)
	}
	c := &checker{
		db:     db.Session(&gorm.Session{NewDB: true, Context: ctx}),
		tables: map[string]*table{}, mended: map[place]place{},
	}
	schemas, err := c.parse(models)
	if err != nil {
		return nil, err
	}
	c.verify(schemas, models)
	for _, s := range schemas {
		c.model(s)
	}
	if c.database = databases[c.db.Name()]; c.database == nil {
		return c.findings, fmt.Errorf("schemacheck: Check knows the databases sqlite, postgres and mysql, not %q", c.db.Name())
	}
	if err := c.compareAll(); err != nil {
		return nil, err
	}
	return c.findings, nil
}

// A checker is one call of Check.
type checker struct {
	db       *gorm.DB
	database *database
	findings []Finding
	seen     []seenModel
	wanted   []*wantedColumn
	pointers []*schema.Field   // reported
	tables   map[string]*table // by name and by ID; nil: the database has none
	keys     []foreignKey      // read once they are needed
	mended   map[place]place   // by the statements of the finding on another place
}

func (c *checker) add(f Finding) { c.findings = append(c.findings, f) }

// parse returns the schemas of models, each once. It parses all of them before any is
// checked, so that every has-one and has-many is known by then.
func (c *checker) parse(models []any) (schemas []*schema.Schema, err error) {
	for _, m := range models {
		stmt := &gorm.Statement{DB: c.db}
		if err := stmt.Parse(m); err != nil {
			return nil, fmt.Errorf("schemacheck: %T: %w", m, err)
		}
		if !slices.Contains(schemas, stmt.Schema) {
			schemas = append(schemas, stmt.Schema)
		}
	}
	return schemas, nil
}

// compareAll compares the columns that the models want with the database.
func (c *checker) compareAll() error {
	if len(c.wanted) == 0 {
		return nil
	}
	if c.database.connection != nil {
		if err := c.database.connection(c); err != nil {
			return fmt.Errorf("schemacheck: %w", err)
		}
	}
	for _, step := range []func(*wantedColumn) error{c.resolve, c.compare} {
		for _, w := range c.wanted {
			if err := step(w); err != nil {
				return dialect.ExplainPooler(fmt.Errorf("schemacheck: table %s: %w", w.table(), err))
			}
		}
	}
	return nil
}

// query asks the database to which a table is written. The query names the parameters of
// args that it needs.
func (c *checker) query(table, sql string, args map[string]any) *gorm.DB {
	// dbresolver's setting, without which a SELECT may go to a replica.
	db := c.db.Session(&gorm.Session{NewDB: true}).Set("gorm:db_resolver:write", true).Table(table)
	if args == nil || !strings.Contains(sql, "@") { // GORM would send the map itself
		return db.Raw(sql)
	}
	return db.Raw(sql, args)
}

func (c *checker) quoteTable(name string) string {
	return c.db.Statement.Quote(clause.Table{Name: name})
}

func (c *checker) quoteColumn(name string) string {
	return c.db.Statement.Quote(clause.Column{Name: name})
}
