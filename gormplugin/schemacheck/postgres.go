package schemacheck

import (
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/sqltype"
)

type postgres struct{}

func (postgres) binds(col *tableColumn, target string) bool {
	return (col.class == classText) != (target == "text") // a number may refer to one of another width
}

func (postgres) is(col *tableColumn, target string) bool {
	return col.typ == target || target == "text" && col.class == classText && (col.length == 0 || col.length >= decimals)
}

// A text is no key unless its digits are those of a key. The cast alone takes 007,
// spaces, and from version 16 on 0x1F and 1_000.
const noKey = `? !~ '^(0|[1-9][0-9]{0,18})$' OR length(?) = 19 AND ? COLLATE "C" > '9223372036854775807'`

func (postgres) statements(c *checker, places []place, keys []*foreignKey, target string) (fix string, sql []string, err error) {
	var readers, locks, checks []string
	parts := map[*table][]string{}
	for _, p := range places {
		var list []string
		// The rule that makes a view has no name of its own.
		err := c.query(p.name, `SELECT DISTINCT regexp_replace(pg_describe_object(d.classid, d.objid, d.objsubid), '^rule "_RETURN" on |^rule _RETURN on ', '')
			FROM pg_catalog.pg_depend d
			JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
			WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = to_regclass(?) AND a.attname = ?
			AND d.classid IN ('pg_catalog.pg_rewrite'::regclass, 'pg_catalog.pg_trigger'::regclass, 'pg_catalog.pg_policy'::regclass)
			ORDER BY 1`, p.quoted, p.col.name).Scan(&list).Error
		if err != nil {
			return "", nil, err
		}
		readers = append(readers, list...)
		change := "ALTER COLUMN " + p.col.quoted + " TYPE " + target
		if p.col.class == classText && target != p.text {
			change += " USING " + p.col.quoted + "::" + target
			checks = append(checks, refuse(p, strings.ReplaceAll(noKey, "?", p.col.quoted+"::text")))
		}
		parts[p.table] = append(parts[p.table], change)
	}
	fix = "change its type, which rewrites the table under an exclusive lock"
	if len(readers) > 0 {
		return "drop what reads the column, and make it anew afterwards, because PostgreSQL changes no type below it: " +
			strings.Join(readers, ", ") + "; then " + fix, nil, nil
	}
	for _, t := range tablesOf(places) {
		locks = append(locks, t.quoted)
		sql = append(sql, "ALTER TABLE "+t.quoted+" "+strings.Join(parts[t], ", "))
	}
	if len(checks) == 0 && len(keys) == 0 {
		return fix, sql, nil
	}
	if len(checks) > 0 {
		fix += howRefused
	}
	same := func(id string) string { return id } // it is quoted
	drop := alter(same, keys, func(k *foreignKey) string { return "DROP CONSTRAINT " + k.name })
	add := alter(same, keys, func(k *foreignKey) string { return "ADD CONSTRAINT " + k.name + " " + k.definition })
	begin := []string{"BEGIN", "LOCK TABLE " + strings.Join(locks, ", ") + " IN ACCESS EXCLUSIVE MODE"}
	return fix + "; after any error run ROLLBACK", slices.Concat(begin, checks, drop, sql, add, []string{"COMMIT"}), nil
}

func (postgres) uncount(_ *checker, p place, _ string) (string, []string, error) {
	column := "ALTER TABLE " + p.quoted + " ALTER COLUMN " + p.col.quoted
	if strings.HasPrefix(p.col.counted, "GENERATED") {
		return "drop the identity", []string{column + " DROP IDENTITY"}, nil
	}
	list := []string{column + " DROP DEFAULT"}
	if p.col.sequence != "" {
		list = append(list, "DROP SEQUENCE "+p.col.sequence)
	}
	return "drop the default, and the sequence if nothing else uses it", list, nil
}

func (postgres) foreignKeys(c *checker, t *table) (keys []*foreignKey, err error) {
	var list []struct {
		Name       string `gorm:"column:name"`
		Child      string `gorm:"column:child"`
		Parent     string `gorm:"column:parent"`
		Definition string `gorm:"column:definition"`
		From       string `gorm:"column:from_column"`
		To         string `gorm:"column:to_column"`
	}
	// Those of partitions come and go with that of their parent.
	err = c.query(t.name, `SELECT quote_ident(k.conname) AS name, CAST(k.conrelid::regclass AS text) AS child, CAST(k.confrelid::regclass AS text) AS parent,
		pg_get_constraintdef(k.oid) AS definition, f.attname AS from_column, r.attname AS to_column
		FROM pg_catalog.pg_constraint k
		CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u (f, r, n)
		JOIN pg_catalog.pg_attribute f ON f.attrelid = k.conrelid AND f.attnum = u.f
		JOIN pg_catalog.pg_attribute r ON r.attrelid = k.confrelid AND r.attnum = u.r
		WHERE k.contype = 'f' AND k.conparentid = 0 AND to_regclass(?) IN (k.conrelid, k.confrelid)
		ORDER BY 2, 1, u.n`, t.quoted).Scan(&list).Error
	for _, l := range list {
		if n := len(keys); n == 0 || keys[n-1].name != l.Name || keys[n-1].table != l.Child {
			keys = append(keys, &foreignKey{name: l.Name, table: l.Child, other: l.Parent, definition: l.Definition})
		}
		k := keys[len(keys)-1]
		k.columns, k.refers = append(k.columns, l.From), append(k.refers, l.To)
	}
	return keys, err
}

func (postgres) expressions(c *checker, t *table) (names []string, err error) {
	err = c.query(t.name, `SELECT r.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class r ON r.oid = i.indexrelid
		WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indexprs IS NOT NULL ORDER BY 1`, t.quoted).Scan(&names).Error
	return names, err
}

func (postgres) read(c *checker, name string) (*table, error) {
	return postgresTable(c, name, c.db.Statement.Quote(clause.Table{Name: name}))
}

func (postgres) open(c *checker, id string) (*table, error) { return postgresTable(c, id, id) }

// postgresTable finds the table as a statement would, by the search_path and the
// exact name. The type of a column is the one below all domains.
func postgresTable(c *checker, name, quoted string) (*table, error) {
	t := &table{name: name, quoted: quoted, number: "bigint", text: "text"}
	var list []struct { // the tags are for a NamingStrategy that names otherwise
		ID        string `gorm:"column:id"`
		Kind      string `gorm:"column:kind"`
		Name      string `gorm:"column:name"`
		Type      string `gorm:"column:type"`
		Category  string `gorm:"column:category"`
		Value     string `gorm:"column:value"`
		Identity  string `gorm:"column:identity"`
		Sequence  string `gorm:"column:sequence"`
		NotNull   bool   `gorm:"column:not_null"`
		Generated bool   `gorm:"column:generated"`
		Inherited bool   `gorm:"column:inherited"`
		Partition bool   `gorm:"column:partition"`
	}
	err := c.query(name, `WITH RECURSIVE below (num, type, mod) AS (
			SELECT attnum, atttypid, atttypmod FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped
			UNION ALL
			SELECT b.num, y.typbasetype, y.typtypmod FROM below b JOIN pg_catalog.pg_type y ON y.oid = b.type WHERE y.typtype = 'd'
		)
		SELECT CAST(r.oid::regclass AS text) AS id, CAST(r.relkind AS text) AS kind, a.attname AS name,
		format_type(b.type, b.mod) AS type,
		CAST(y.typcategory AS text) AS category,
		COALESCE(pg_get_expr(d.adbin, d.adrelid), '') AS value,
		CAST(a.attidentity AS text) AS identity,
		COALESCE(pg_get_serial_sequence(CAST(a.attrelid::regclass AS text), a.attname), '') AS sequence,
		a.attnotnull AS not_null,
		a.attgenerated <> '' AS generated,
		a.attinhcount > 0 AS inherited,
		EXISTS (SELECT FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = a.attrelid AND a.attnum = ANY (p.partattrs)) AS partition
		FROM below b
		JOIN pg_catalog.pg_type y ON y.oid = b.type AND y.typtype <> 'd'
		JOIN pg_catalog.pg_class r ON r.oid = to_regclass(?)
		JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = b.num
		LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		ORDER BY a.attnum`, t.quoted, t.quoted).Scan(&list).Error
	for _, l := range list {
		t.id = l.ID
		switch l.Kind {
		case "v", "m":
			t.fixed = fixView
		case "f":
			t.fixed = fixForeign
		}
		col := tableColumn{
			name: l.Name, quoted: c.db.Statement.Quote(clause.Column{Name: l.Name}), typ: l.Type,
			sequence: l.Sequence, notNull: l.NotNull, generated: l.Generated, value: l.Value != "",
		}
		base, precision, scale := sqltype.Parts(l.Type)
		switch base {
		case "bigint":
			col.class = classWide
		case "integer", "smallint":
			col.class = classNarrow
		case "real", "double precision":
			col.class, col.fixed = classNarrow, fixFloat
		case "numeric":
			col.class = decimalClass(precision, scale)
		case "character varying", "character":
			col.class, col.length = classText, precision
		default:
			col.class = classOther
			if l.Category == "S" { // text, and what compares like it: citext
				col.class = classText
			}
		}
		switch {
		case l.Inherited:
			col.fixed = fixParent
		case l.Partition:
			col.fixed = fixPartition
		case l.Generated:
			col.fixed = fixGenerated
		case col.class == classOther:
			col.fixed = fixOther
		}
		switch {
		case l.Identity == "a":
			col.counted = "GENERATED ALWAYS AS IDENTITY"
		case l.Identity == "d":
			col.counted = "GENERATED BY DEFAULT AS IDENTITY"
		case strings.Contains(l.Value, "nextval("):
			col.counted = "DEFAULT " + l.Value
		}
		t.columns = append(t.columns, col)
	}
	return t, err
}
