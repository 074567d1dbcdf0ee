package gormplugin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

var sqliteDatabase = database{
	dialect:       dialect.SQLite,
	rowIDs:        true,
	countsInserts: true,
	uniques: `SELECT l.name, COALESCE(k.name, ''), '"' || k.coll || '"', 0, COALESCE((SELECT x.type FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid), ''),
		CASE WHEN l.partial AND ? = 'main' THEN (SELECT m.sql FROM sqlite_master m WHERE m.type = 'index' AND m.name = l.name) ELSE '' END, false,
		l.partial AND ? <> 'main' OR k.cid = -2 OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid AND x.hidden > 1), false, false, false
		FROM pragma_index_list(?, ?) l CROSS JOIN pragma_index_xinfo(l.name, ?) k WHERE l."unique" AND k.key
		ORDER BY l.seq, k.seqno`,
	args: func(t tableName) []any {
		if t.schema == "" {
			t.schema = "main"
		}
		return []any{t.name, t.schema, t.schema, t.schema, t.name, t.schema, t.name, t.schema, t.schema}
	},
	condition: func(text string) string { // from CREATE UNIQUE INDEX … WHERE …
		words := tokensOf(text)
		where := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "WHERE") })
		return strings.Join(words[where+1:], "")
	},
	// The types of SQLite convert values, but in a comparison as in an insert.
	joins: func(*unique) bool { return true },
	joined: func(j *join, rows []int) {
		j.values(rows, nil)
	},
	stores:     func(*uniqueColumn) plainness { return plainText | plainNumbers },
	listSize:   valuesPerArray,
	listed:     sqliteList,
	listPlaces: true,
}

// sqliteList joins the values, sent as JSON, so that SQLite compares them by the rules of
// the column and the texts need not come back.
func sqliteList(l *list, values []any) {
	// The plus takes value's affinity away, with which a number would equal no text. SQLite
	// keeps to the order of a CROSS JOIN.
	l.write(" FROM (SELECT key AS ", placeColumn, ", +value AS ", valueColumn, " FROM json_each(")
	l.AddVar(l, jsonArray(values))
	l.write(")) AS ", valuesName, " CROSS JOIN ")
	l.write(l.table(), " WHERE ")
	l.comparedColumn()
	l.write(" = ", valueColumn)
}

// jsonArray returns plain values as a JSON array.
func jsonArray(values []any) string {
	b := make([]byte, 0, 32*len(values))
	for n, v := range values {
		b = append(b, "[,"[min(n, 1)])
		switch v := v.(type) {
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }) {
				escaped, _ := json.Marshal(v) // of a string: no error
				b = append(b, escaped...)
			} else { // as nearly all are
				b = append(append(append(b, '"'), v...), '"')
			}
		}
	}
	return string(append(b, ']'))
}
