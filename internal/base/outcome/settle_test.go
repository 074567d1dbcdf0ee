package outcome

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
	"github.com/snowkey/snowkey/types"
)

// begin begins transactions of db.
func begin(db *sql.DB) func(context.Context, *sql.TxOptions) (Tx, error) {
	return func(ctx context.Context, opts *sql.TxOptions) (Tx, error) {
		tx, err := db.BeginTx(ctx, opts)
		if err != nil {
			return nil, err
		}
		return tx, nil
	}
}

func TestRowIsLookedForByQuotedNames(t *testing.T) {
	for _, c := range []struct {
		at         KeyColumn
		text, lock string
	}{
		{KeyColumn{Dialect: dialect.SQLite, Table: "orders", Column: "id"}, `SELECT 1 FROM "orders" WHERE "id" = ?`, `INSERT INTO "orders" ("id") SELECT "id" FROM "orders" WHERE 0`},
		{KeyColumn{Dialect: dialect.PostgreSQL, Table: "shop.orders", Column: "key"}, `SELECT 1 FROM "shop"."orders" WHERE "key" = $1`, ""},
		{KeyColumn{Dialect: dialect.MySQL, Table: "shop.orders", Column: "id"}, "SELECT 1 FROM `shop`.`orders` WHERE `id` = ? LOCK IN SHARE MODE", ""},
	} {
		if got := c.at.text(); got != c.text {
			t.Errorf("text(%v) = %q; want %q", c.at, got, c.text)
		}
		if text, key := (Proof{KeyColumn{Text: true}, 7}).value(), (Proof{c.at, 7}).value(); text != "7" || key != types.Snowflake(7) {
			t.Errorf("value() = %#v of a text, %#v of a key; want \"7\" and 7", text, key)
		}
		if got := c.at.lock(); c.lock != "" && got != c.lock {
			t.Errorf("lock(%v) = %q; want %q", c.at, got, c.lock)
		}
	}
}

// TiDB has no shared locks.
func TestRowIsLookedForWithoutALockWhereThereIsNone(t *testing.T) {
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const plain = "SELECT 1 FROM `orders` WHERE `id` = ?"
	mock.ExpectBegin()
	mock.ExpectQuery(plain + " LOCK IN SHARE MODE").WillReturnError(drivererrors.MySQL(1235))
	mock.ExpectQuery(plain).WillReturnRows(sqlmock.NewRows([]string{"1"}).AddRow(1))
	mock.ExpectRollback()
	d := Pending{Database: &Database{Begin: begin(db)}, Proofs: []Proof{{KeyColumn{Dialect: dialect.MySQL, Table: "orders", Column: "id"}, 7}}}
	if s, err := d.look(t.Context()); err != nil || !s.Found {
		t.Errorf("look() = %+v, %v; want the row", s, err)
	}
}

func TestDatabasesThatOnlySpeakLikePostgreSQLAreTold(t *testing.T) {
	for version, want := range map[string]bool{
		"PostgreSQL 15.8 (Debian 15.8-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit":         true,
		"PostgreSQL 17.0 on x86_64-windows, compiled by msvc-19.40.33813, 64-bit":                                                   true,
		"PostgreSQL 9.6.24, compiled by Visual C++ build 1800, 64-bit":                                                              true,
		"PostgreSQL 18beta1 on aarch64-linux-gnu, compiled by gcc-12.2.0, 64-bit":                                                   true,
		"PostgreSQL 16.2 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.3.0, 64-bit":                       true,
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)":                   false,
		"PostgreSQL 15.2-YB-2.23.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6, 64-bit":                           false,
		"PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.12103": false,
		"PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v0.26.0)":                                                        false,
		"PostgreSQL 13.14.0-RisingWave-1.10.0":                                                                                      false,
		"PostgreSQL 16":                                                                                                             false,
		"PostgreSQL 14.1":                                                                                                           false,
		"":                                                                                                                          false,
	} {
		if got := postgresVersion.MatchString(version); got != want {
			t.Errorf("postgresVersion matches %q = %v; want %v", version, got, want)
		}
	}
}

// Where several servers take writes, a look has not waited for a transaction on another.
func TestAbsenceProvesNothingWhereSeveralServersTakeWrites(t *testing.T) {
	single := map[string]string{"version": "8.4.2", "version_comment": "MySQL Community Server - GPL", "read_only": "OFF", "innodb_read_only": "OFF"}
	for _, c := range []struct {
		name   string
		change map[string]string
		want   error
	}{
		{"MySQL", nil, nil},
		{"MariaDB", map[string]string{"version": "10.11.6-MariaDB", "wsrep_on": "OFF", "wsrep_provider": "none"}, nil},
		{"MariaDB 12", map[string]string{"read_only": "OFF"}, nil},
		{"Percona XtraDB, not clustered", map[string]string{"wsrep_on": "ON", "wsrep_provider": "none"}, nil},
		{"Galera, without its library", map[string]string{"wsrep_on": "ON", "wsrep_provider": ""}, nil},
		{"Galera, off", map[string]string{"wsrep_on": "OFF", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}, nil},
		{"Galera", map[string]string{"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"}, ErrServers},
		{"Group replication, one primary", map[string]string{"group_replication_single_primary_mode": "ON", "group_replication_group_name": "a"}, nil},
		{"Group replication, several", map[string]string{"group_replication_single_primary_mode": "OFF", "group_replication_group_name": "a"}, ErrServers},
		{"Group replication, never begun", map[string]string{"group_replication_single_primary_mode": "OFF", "group_replication_group_name": ""}, nil},
		{"Primary of Aurora", map[string]string{"read_only": "0"}, nil},
		{"Replica", map[string]string{"read_only": "ON"}, ErrReplica},
		{"Replica, MariaDB 12", map[string]string{"read_only": "NO_LOCK"}, ErrReplica},
		{"Aurora's reader", map[string]string{"innodb_read_only": "1"}, ErrReplica},
		{"TiDB", map[string]string{"version": "8.0.11-TiDB-v7.5.0"}, ErrServers},
		{"Vitess", map[string]string{"version": "8.0.30-Vitess"}, ErrServers},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, mock, err := sqlmock.New()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			rows := sqlmock.NewRows([]string{"Variable_name", "Value"})
			for _, from := range []map[string]string{single, c.change} {
				for name, value := range from {
					rows.AddRow(name, value) // the later one counts
				}
			}
			mock.ExpectBegin()
			mock.ExpectQuery("SHOW VARIABLES").WillReturnRows(rows)
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := aloneMySQL(t.Context(), tx); !errors.Is(err, c.want) {
				t.Errorf("aloneMySQL(%v) = %v; want %v", c.change, err, c.want)
			}
			mock.ExpectQuery("SHOW VARIABLES").WillReturnRows(sqlmock.NewRows([]string{"Variable_name", "Value"}).AddRow("version", "8.4.2"))
			mock.ExpectQuery("SHOW VARIABLES").WillReturnError(io.EOF)
			if none, lost := aloneMySQL(t.Context(), tx), aloneMySQL(t.Context(), tx); none != nil || !errors.Is(lost, io.EOF) {
				t.Errorf("aloneMySQL(few variables, answer lost) = %v, %v; want nil, EOF", none, lost)
			}
		})
	}
}

// A connection may have chosen another database, which has a table of the same name.
func TestARowMayBeInAnotherDatabaseOfMySQL(t *testing.T) {
	const many = maxNames + 1
	for name, c := range map[string]struct {
		table, typ string
		databases  int
		here       bool
		answer     error // of the look for the row; nil: it is there
		others     bool
		want       error
	}{
		"no other table":              {table: "orders", typ: "BASE TABLE", databases: 1, here: true},
		"another, without the row":    {table: "orders", typ: "BASE TABLE", databases: 1, answer: sql.ErrNoRows, others: true},
		"another, with the row":       {table: "orders", typ: "BASE TABLE", databases: 1, others: true, want: ErrNames},
		"another that is hidden":      {table: "orders", typ: "BASE TABLE", databases: 1, answer: drivererrors.MySQL(1142), others: true, want: ErrNames},
		"another without the column":  {table: "orders", typ: "BASE TABLE", databases: 1, answer: drivererrors.MySQL(1054)},
		"another that is gone":        {table: "orders", typ: "BASE TABLE", databases: 1, answer: drivererrors.MySQL(1146)},
		"another, database gone":      {table: "orders", typ: "BASE TABLE", databases: 1, answer: drivererrors.MySQL(1049)},
		"another, and no answer":      {table: "orders", typ: "BASE TABLE", databases: 1, answer: driver.ErrBadConn, want: driver.ErrBadConn},
		"too many":                    {table: "orders", typ: "BASE TABLE", databases: many, others: true, want: ErrNames},
		"a view":                      {table: "orders", typ: "VIEW", databases: 1, here: true, want: ErrHidden},
		"a name with its database":    {table: "shop0.orders", typ: "BASE TABLE", databases: 1},
		"a view in another database":  {table: "shop1.orders", typ: "VIEW", databases: 1},
		"a view in the same database": {table: "SHOP0.orders", typ: "VIEW", databases: 1, want: ErrHidden},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		tables := sqlmock.NewRows([]string{"table_schema", "table_type", "here"})
		for n := range c.databases {
			tables.AddRow(fmt.Sprint("shop", n), c.typ, c.here)
		}
		mock.ExpectBegin()
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		mock.ExpectQuery("information_schema.tables").WithArgs("orders").WillReturnRows(tables)
		look := mock.ExpectQuery("SELECT 1 FROM `shop0`.`orders`").WithArgs(7)
		switch rows := sqlmock.NewRows([]string{"1"}); c.answer {
		case nil:
			look.WillReturnRows(rows.AddRow(1))
		case sql.ErrNoRows:
			look.WillReturnRows(rows)
		default:
			look.WillReturnError(c.answer)
		}
		others, err := elsewhereMySQL(t.Context(), tx, []Proof{{KeyColumn{Dialect: dialect.MySQL, Table: c.table, Column: "id"}, 7}})
		if others != c.others || !errors.Is(err, c.want) {
			t.Errorf("%s: elsewhereMySQL() = %t, %v; want %t, %v", name, others, err, c.others, c.want)
		}
		_ = db.Close()
	}
}

// On MySQL one look tells, because it waits for the transaction.
func TestALookAtMySQLSaysWhatItProves(t *testing.T) {
	for name, c := range map[string]struct {
		readOnly string
		others   int
		want     Look
	}{
		"alone":     {"OFF", 0, Look{over: true}},
		"another":   {"OFF", 1, Look{over: true, Others: true}},
		"a replica": {"ON", 0, Look{over: true, Proves: ErrReplica}},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		none := func() *sqlmock.Rows { return sqlmock.NewRows([]string{"1"}) }
		mock.ExpectBegin()
		mock.ExpectQuery("SELECT 1 FROM `orders`").WillReturnRows(none())
		mock.ExpectQuery("SHOW VARIABLES").WillReturnRows(sqlmock.NewRows([]string{"Variable_name", "Value"}).AddRow("version", "8.4.2").AddRow("read_only", c.readOnly))
		if c.want.Proves == nil {
			tables := sqlmock.NewRows([]string{"table_schema", "table_type", "here"}).AddRow("shop", "BASE TABLE", true)
			for range c.others {
				tables.AddRow("archive", "BASE TABLE", false)
			}
			mock.ExpectQuery("information_schema.tables").WillReturnRows(tables)
			for range c.others {
				mock.ExpectQuery("SELECT 1 FROM `archive`.`orders`").WillReturnRows(none())
			}
		}
		mock.ExpectRollback()
		d := Pending{Database: &Database{Begin: begin(db)}, Proofs: []Proof{{KeyColumn{Dialect: dialect.MySQL, Table: "orders", Column: "id"}, 7}}}
		if s, err := d.look(t.Context()); err != nil || s.Found || s.over != c.want.over || s.Others != c.want.Others || !errors.Is(s.Proves, c.want.Proves) {
			t.Errorf("look(%s) = %+v, %v; want %+v", name, s, err, c.want)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = db.Close()
	}
}

// A statement of a look whose error was lost would prove that a stored row is not there.
func TestALookThatFailsAtAnyStatementProvesNothing(t *testing.T) {
	type statement struct {
		text    string
		columns []string // of an answer; nil: it is no query
		row     []driver.Value
	}
	none := func(text string) statement { return statement{text, []string{"1"}, nil} }
	state := func(of any) statement {
		return statement{"txid_status", []string{"version", "state"}, []driver.Value{postgres, of}}
	}
	ensure := statement{"pg_logical_emit_message", nil, nil}
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		xact    Xact
		look    []statement
	}{
		"PostgreSQL":            {dialect.PostgreSQL, Xact{}, []statement{none(`SELECT 1 FROM "orders"`), none("pg_locks")}},
		"PostgreSQL, stored":    {dialect.PostgreSQL, Xact{}, []statement{{`SELECT 1 FROM "orders"`, []string{"1"}, []driver.Value{1}}, ensure}},
		"PostgreSQL, committed": {dialect.PostgreSQL, Xact{730, "1 0/70"}, []statement{state(xactCommitted), ensure}},
		"PostgreSQL, unknown":   {dialect.PostgreSQL, Xact{730, "1 0/70"}, []statement{state(nil), none(`SELECT 1 FROM "orders"`), none("pg_locks")}},
		"MySQL": {dialect.MySQL, Xact{}, []statement{
			none("SELECT 1 FROM `orders`"),
			{"SHOW VARIABLES", []string{"Variable_name", "Value"}, []driver.Value{"version", "8.4.2"}},
			{"information_schema.tables", []string{"table_schema", "table_type", "here"}, []driver.Value{"archive", "BASE TABLE", false}},
			none("SELECT 1 FROM `archive`.`orders`"),
		}},
		"SQLite": {dialect.SQLite, Xact{}, []statement{{"INSERT INTO", nil, nil}, none(`SELECT 1 FROM "orders"`), none("SELECT EXISTS")}},
	} {
		for last := range c.look {
			db, mock, err := sqlmock.New()
			if err != nil {
				t.Fatal(err)
			}
			failed := errors.New("failed")
			mock.ExpectBegin()
			for i, s := range c.look[:last+1] {
				switch {
				case s.columns == nil && i == last:
					mock.ExpectExec(s.text).WillReturnError(failed)
				case s.columns == nil:
					mock.ExpectExec(s.text).WillReturnResult(sqlmock.NewResult(0, 0))
				case i == last:
					mock.ExpectQuery(s.text).WillReturnError(failed)
				default:
					answer := sqlmock.NewRows(s.columns)
					if s.row != nil {
						answer.AddRow(s.row...)
					}
					mock.ExpectQuery(s.text).WillReturnRows(answer)
				}
			}
			mock.ExpectRollback()
			d := Pending{Database: &Database{Begin: begin(db), Cancels: CancelsAll}, Xact: c.xact, Proofs: []Proof{{KeyColumn{Dialect: c.dialect, Table: "orders", Column: "id"}, 7}}}
			if o, why := d.Settle(t.Context()); o != InDoubt || !errors.Is(why, failed) {
				t.Errorf("Settle(%s, failed at %s) = %v, %v; want %v, %v", name, c.look[last].text, o, why, InDoubt, failed)
			}
			_ = db.Close()
		}
	}
}

// The COMMIT was answered, so a row that is not there was lost by the server.
func TestARowOfAnAnsweredCommitThatIsGoneIsInDoubt(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	mock.ExpectBegin()
	mock.ExpectQuery(`SELECT 1 FROM "orders"`).WillReturnRows(sqlmock.NewRows([]string{"1"}))
	mock.ExpectQuery("pg_locks").WillReturnRows(sqlmock.NewRows([]string{"version", "recovers", "open", "hidden"}).AddRow(postgres, false, "", ""))
	mock.ExpectRollback()
	d := Pending{Database: &Database{Begin: begin(db), Cancels: CancelsAll}, Answered: true, Proofs: []Proof{{KeyColumn{Dialect: dialect.PostgreSQL, Table: "orders", Column: "id"}, 7}}}
	if o, why := d.Settle(t.Context()); o != InDoubt || !errors.Is(why, errGone) {
		t.Errorf("Settle(answered, row gone) = %v, %v; want %v, %v", o, why, InDoubt, errGone)
	}
}

func TestLookGoesOnAfterWhatPasses(t *testing.T) {
	for err, want := range map[error]bool{
		drivererrors.Postgres("57P03"): true, io.EOF: true, net.UnknownNetworkError("x"): true, net.ErrClosed: true, standby.ErrSlow: true,
		context.DeadlineExceeded: true, context.Canceled: true, drivererrors.Postgres("42501"): false, errors.New("mock"): false,
	} {
		if got := passes(err); got != want {
			t.Errorf("passes(%v) = %v; want %v", err, got, want)
		}
	}
	for failed, unknown := range map[error]bool{drivererrors.Postgres("42501"): false, errors.New("mock"): true} {
		on := &Database{Begin: func(context.Context, *sql.TxOptions) (Tx, error) { return nil, failed }}
		if err := (Pending{Database: on}).Ask(t.Context(), nil); !errors.Is(err, failed) || errors.Is(err, ErrUnknownDatabase) != unknown {
			t.Errorf("Ask(where a look fails with %v) = %v; want it, of no known database: %v", failed, err, unknown)
		}
	}
}
