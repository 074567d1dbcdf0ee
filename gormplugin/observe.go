package gormplugin

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/readback"
	"github.com/snowkey/snowkey/types"
)

// The callbacks by which a transaction of InTx is known. Without an InTx they do nothing.
const (
	identifyName = "snowflake:identify" // before updates and deletes; creates have ensure
	observeName  = "snowflake:observe"  // after all statements
)

// A server is what the plugin has learned of the one behind a database.
type server struct {
	identifies atomic.Bool // it has told the ID of a transaction
	anonymous  atomic.Bool // it tells none
}

// watchStatements registers these callbacks.
func (in *installation) watchStatements(db *gorm.DB) (err error) {
	all := db.Callback()
	if all.Update().Get("gorm:update") != nil {
		err = all.Update().Before("gorm:update").Register(identifyName, in.identify)
	}
	if all.Delete().Get("gorm:delete") != nil {
		err = errors.Join(err, all.Delete().Before("gorm:delete").Register(identifyName, in.identify))
	}
	return errors.Join(err,
		all.Create().After("*").Register(observeName, in.observe),
		all.Query().After("*").Register(observeName, in.observe),
		all.Update().After("*").Register(observeName, in.observe),
		all.Delete().After("*").Register(observeName, in.observe),
		all.Row().After("*").Register(observeName, in.observe),
		all.Raw().After("*").Register(observeName, in.observe),
	)
}

// identify notes the ID of the transaction of an InTx before GORM first writes in it, and refuses
// to write in one that is over, where MySQL would commit the statement by itself.
func (in *installation) identify(db *gorm.DB) {
	r := in.plugin.recordOf(db.Statement.ConnPool)
	if r == nil || db.Error != nil || db.DryRun {
		return
	}
	err := broken(r)
	if err == nil && in.traits.Identifies && !in.server.anonymous.Load() && r.Unidentified() {
		err = in.readID(db.Statement, r)
	}
	_ = db.AddError(err)
}

// readID reads the ID of the transaction, under a savepoint until the server has told one.
func (in *installation) readID(stmt *gorm.Statement, r *outcome.Record) error {
	ctx, tx := stmt.Context, bare(stmt.ConnPool)
	read := func() error {
		begin := time.Now()
		x, err := outcome.Identify(ctx, tx)
		if err == nil {
			r.Identify(x)
		}
		stmt.Logger.Trace(ctx, begin, func() (string, int64) { return outcome.IdentifyText, 1 }, err)
		return err
	}
	if in.server.identifies.Load() {
		return read()
	}
	err := underSavepoint(ctx, tx, "snowkey_transaction", read)
	switch {
	case err == nil:
		in.server.identifies.Store(true)
	case dialect.NoFunction(err), dialect.Denied(err):
		in.server.anonymous.Store(true)
		return nil
	}
	return err
}

// observe notes what a statement has done to the transaction of an InTx.
func (in *installation) observe(db *gorm.DB) {
	stmt := db.Statement
	r := in.plugin.recordOf(stmt.ConnPool)
	if r == nil || db.DryRun {
		return
	}
	if db.Error != nil {
		if in.traits.EndsSilently && dialect.Retryable(db.Error) && r.Broken() == nil {
			r.Break(db.Error, db.Error)
		}
		return
	}
	text := strings.TrimSpace(stmt.SQL.String())
	switch {
	case text == "", begins(text, "SELECT") && !strings.Contains(text, ";"), noteSavepoint(r, text):
		return
	case begins(text, "INSERT INTO") && !strings.Contains(text, ";"), begins(text, "UPDATE") && !setsKey(stmt):
	default: // a delete, or what is not known; a look at the rows costs one round trip
		r.Suspect()
	}
	r.Wrote()
	if r.Broken() != nil {
		r.Stray()
	}
}

// noteSavepoint notes a statement about a savepoint, and reports whether text is one that it knows.
func noteSavepoint(r *outcome.Record, text string) bool {
	words := strings.Fields(strings.ToLower(text))
	name := words[len(words)-1]
	if strings.Contains(name, ";") {
		return false
	}
	switch strings.Join(words[:len(words)-1], " ") {
	case "savepoint":
		r.Savepoint(name)
	case "rollback to savepoint", "rollback to":
		return r.RollbackTo(name)
	case "release savepoint", "release":
		r.Release(name)
	default:
		return false
	}
	return true
}

// begins reports whether text begins with words, in any case.
func begins(text, words string) bool {
	return len(text) > len(words) && strings.EqualFold(text[:len(words)], words) && text[len(words)] <= ' '
}

// setsKey reports whether an UPDATE may set a primary key.
func setsKey(stmt *gorm.Statement) bool {
	set, known := stmt.Clauses["SET"].Expression.(clause.Set)
	return !known || stmt.Schema == nil || slices.ContainsFunc(set, func(a clause.Assignment) bool {
		f := stmt.Schema.LookUpField(a.Column.Name)
		return f == nil || f.PrimaryKey
	})
}

// note notes in r a row that the statement has inserted, by which an InTx can tell what became of
// its transaction.
func (in *installation) note(c *creation, r *outcome.Record) {
	if len(c.columns) == 0 || c.rows.len() == 0 || !c.columns[0].field.PrimaryKey || !in.traits.Valid() {
		return
	}
	table := readback.TableNameOf(c.table())
	column := outcome.KeyColumn{Dialect: in.traits.Dialect, Table: table.Name, Column: c.columns[0].field.DBName, Text: c.columns[0].key.Text()}
	// These names are written in quotes.
	for _, name := range []string{table.Schema, table.Name, column.Column} {
		if strings.ContainsAny(name, "\"`.") {
			return
		}
	}
	if table.Schema != "" {
		column.Table = table.Schema + "." + table.Name
	}
	r.Add(column, c.inserted())
}

// inserted returns the key of a row that was not stored before the statement, or 0. The key of an
// upsert that is still the fresh one was inserted. Without an upsert all rows were, and so was a
// key that the caller has set, unless other rows may share it because it is one of several columns.
func (c *creation) inserted() types.Snowflake {
	complete := c.stmt.RowsAffected >= int64(c.rows.len())
	switch {
	case !complete && (c.kind == inserts || c.kind == byKey):
		return 0 // a trigger may have left rows out
	case c.kind == inserts:
		key := c.keyAt(c.rows.len() - 1)
		if len(c.stmt.Schema.PrimaryFields) > 1 && !slices.Contains(c.fresh, key) {
			key = 0
		}
		return key
	case c.kind == byKey && c.sent == nil:
		c.record() // nothing has changed the keys since
	case c.rows.len()*len(c.columns) != len(c.sent):
		return 0 // see reconcile and dropUpsert
	}
	for i, fresh := range slices.Backward(c.freshRows()) {
		if fresh && c.columns[0].get(c.stmt.Context, c.rows.at(i)) == c.sentAt(i, 0) {
			return c.keyAt(i)
		}
	}
	return 0
}

// keyAt returns the key of row i, or 0 if its field does not hold one.
func (c *creation) keyAt(i int) types.Snowflake {
	key := &c.columns[0]
	switch v := key.get(c.stmt.Context, c.rows.at(i)).value(key.key).(type) {
	case int64:
		return types.Snowflake(v)
	case string: // another form, such as one with zeros before it, would not be found
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && strconv.FormatInt(n, 10) == v {
			return types.Snowflake(n)
		}
	}
	return 0
}
