package schemacheck

import "slices"

// resolve finds the table of w, and the type that its column should have.
func (c *checker) resolve(w *wantedColumn) (err error) {
	if w.in, err = c.load(w.table(), c.quoteTable(w.table())); err != nil || w.in == nil {
		return err
	}
	w.target = w.in.number
	if w.text {
		w.target = w.in.text
		return nil
	}
	w.unsigned, w.signed, err = c.signOf(w)
	if w.unsigned {
		w.target += " unsigned"
	}
	return err
}

// signOf returns whether w, a number, has to be unsigned, or signed, or neither. The field
// of the key that w is, or is bound to, decides. If the plugin does not fill that key, its
// column decides, which another program may have made with any type.
func (c *checker) signOf(w *wantedColumn) (unsigned, signed bool, err error) {
	key := w.refers
	if key == nil && w.filled {
		key = w.field
	}
	if key == nil || !c.database.unsigned {
		return false, false, nil
	}
	if !isText(key) && c.fills(key) {
		unsigned = isUnsigned(key)
		return unsigned, !unsigned, nil
	}
	t, err := c.load(key.Schema.Table, c.quoteTable(key.Schema.Table))
	if err != nil || t == nil {
		return false, false, err
	}
	col := t.column(key.DBName)
	if col == nil || col.class != classWide {
		return false, false, nil
	}
	return col.unsigned(), !col.unsigned(), nil
}

// compare compares w with the database.
func (c *checker) compare(w *wantedColumn) error {
	if w.in == nil {
		c.missingTable(w)
		return nil
	}
	col := w.in.column(w.field.DBName)
	if col == nil {
		c.missingColumn(w)
		return nil
	}
	for _, rule := range []func(*wantedColumn, place) error{c.checkType, c.checkCounter, c.checkRowID, c.checkIndexes} {
		if err := rule(w, place{w.in, col}); err != nil {
			return err
		}
	}
	return nil
}

// missingTable reports the table of w, once.
func (c *checker) missingTable(w *wantedColumn) {
	reported := func(f Finding) bool { return f.Problem == MissingTable && f.Table == w.table() }
	if !slices.ContainsFunc(c.findings, reported) {
		c.add(w.finding(MissingTable, "", "", "create it, for example with AutoMigrate").ofTable())
	}
}

func (c *checker) missingColumn(w *wantedColumn) {
	f := w.finding(MissingColumn, "", "a column of "+w.target, "add it, for example with AutoMigrate")
	switch {
	case fixes[w.in.Kind] != "":
		f.Fix = fixes[w.in.Kind]
	case !w.text && !w.field.PrimaryKey: // a key wants more than a column: values, and a constraint
		f.SQL = []string{"ALTER TABLE " + w.in.quoted + " ADD COLUMN " + c.quoteColumn(w.field.DBName) + " " + w.target}
	}
	c.add(f)
}

// typeRules say what may be wrong with the type of a column. The first that is broken
// is reported.
var typeRules = []struct {
	problem Problem
	broken  func(w *wantedColumn, col *tableColumn) bool
}{
	{NarrowColumn, func(w *wantedColumn, col *tableColumn) bool {
		return col.class == classNarrow || col.class == classFloat || w.text && col.class == classText && !col.longEnough()
	}},
	{WrongType, func(w *wantedColumn, col *tableColumn) bool {
		return col.class == classOther || !w.text && col.class == classText
	}},
	{Sign, func(w *wantedColumn, col *tableColumn) bool {
		return col.class == classWide && (w.unsigned && !col.unsigned() || w.signed && col.unsigned())
	}},
}

func (c *checker) checkType(w *wantedColumn, at place) error {
	if w.filled && at.col.Generated {
		c.add(w.finding(WrongType, at.col.Type+", generated", w.target+" that can be written", "drop its expression: every create fails"))
		return nil
	}
	for _, rule := range typeRules {
		if rule.broken(w, at.col) {
			fix, sql, err := c.changeType(at, w.target)
			c.add(w.finding(rule.problem, at.col.Type, w.target, fix, sql...))
			return err
		}
	}
	return nil
}

func (c *checker) checkCounter(w *wantedColumn, at place) error {
	if !w.filled || at.col.Counter == "" {
		return nil
	}
	fix, sql, err := c.database.uncount(c, at, w.target)
	if err != nil || fix == "" && len(sql) == 0 { // as of a counter that is at its end
		return err
	}
	switch _, tagged := w.field.TagSettings["SNOWFLAKE"]; {
	case !w.field.AutoIncrement:
	case tagged:
		fix += "; and add autoIncrement:false to the tag, or GORM makes it count again"
	default: // of WithIntegerKeys, which goes by what GORM counts
		fix += "; AutoMigrate leaves it so, but lets new tables count"
	}
	c.add(w.finding(Counted, at.col.Counter, "no counting", fix, sql...))
	return nil
}

// checkRowID finds a key on SQLite that could be the rowid, but is not.
func (c *checker) checkRowID(w *wantedColumn, at place) error {
	key := w.field.PrimaryKey && len(w.field.Schema.PrimaryFields) == 1 && (w.filled || ours(w.field))
	if !key || w.text || !at.RowID || at.col.class != classWide || !at.alone(at.col) {
		return nil
	}
	fix, _, err := c.database.statements(c, []typeChange{{place: at}}, nil, "integer")
	c.add(w.finding(NoRowID, at.col.Type+", with an index of its own", "INTEGER PRIMARY KEY, in these words and without DESC",
		"call gormplugin.UseRowIDs before AutoMigrate makes the table; for this one, "+fix))
	return err
}

// checkIndexes finds unique indexes on expressions, once for each table that the
// plugin fills.
func (c *checker) checkIndexes(w *wantedColumn, at place) error {
	if !w.filled || at.indexed {
		return nil
	}
	at.indexed = true
	var names []string
	err := c.ask(at.table, c.database.expressions).Scan(&names).Error
	for _, name := range names {
		c.add(w.finding(ExpressionIndex, "unique index "+name, "unique indexes on columns, which the model declares",
			"look the row up yourself before the upsert, or store what the expression says in a column of its own, with uniqueIndex").ofTable())
	}
	return err
}
