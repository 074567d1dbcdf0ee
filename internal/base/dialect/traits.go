package dialect

import "slices"

// Traits are the differences between databases that the plugins have to know. What they mean is
// here, once for both.
type Traits struct {
	Dialect
	Dialector string // GORM's name of it

	// Statements.

	// MaxBinds bounds the values in one statement, by the protocol or the build of the driver.
	// Binds bounds those in one of many; it counts values because rows have different widths. It
	// was measured on rows of six columns, 50 for SQLite and 500 for the servers: statements at
	// the bind limit ran at half that speed on PostgreSQL and at three quarters on SQLite.
	MaxBinds, Binds int
	// Ladder bounds the number of statement texts. pgx keeps every text prepared on the server,
	// 512 per connection, and 300 different row counts cost 25 MB in one backend. Only small
	// row counts therefore have texts of their own, and a larger remainder is sent as a
	// multiple of Ladder and a rest. The drivers of the other databases keep no texts.
	Ladder int
	// The longest identifier, in bytes and characters; 0: no limit. PostgreSQL cuts longer ones
	// and goes on.
	MaxBytes, MaxRunes int
	// Arrays: the rows of an INSERT may be sent as arrays, and by COPY.
	Arrays bool
	// Prepares: a statement that is sent more than once is prepared. That must not change how
	// values are sent, since a single row is sent without. pgx, which has several modes on
	// PostgreSQL, keeps prepared by itself what its mode allows.
	Prepares bool
	// Inlines: the driver may write values into the text (interpolateParams). MySQL then takes
	// 2.5 for a decimal, and otherwise for a double. A query tells which: 0.1 + 0.2 is 0.3 in
	// decimals and not in doubles.
	Inlines bool
	// NameIsText: a quoted name of no column is taken for a text.
	NameIsText bool
	// OnDuplicateKey: an upsert is ON DUPLICATE KEY UPDATE, which takes every unique index for
	// a conflict and does not count the inserted rows. GORM writes DO NOTHING as an update that
	// changes nothing.
	OnDuplicateKey bool
	// CountsInserts: after DO NOTHING, RowsAffected is the number of inserted rows.
	CountsInserts bool
	// RowIDs: an integer has 64 bits whatever its type says, and an integer key is the table itself.
	RowIDs bool
	// ForUpdate makes a SELECT see a row that another transaction has stored after this one
	// began, while a plain one on MySQL under REPEATABLE READ sees the past. The insert has
	// locked that row already. A key that is not stored must not be selected so, because that
	// locks the gap where it would be.
	ForUpdate string

	// Transactions and errors.

	// Identifies: transactions have IDs that outlive them, see outcome.Xact.
	Identifies bool
	// Standby: a commit may wait for a synchronous standby, see package standby.
	Standby bool
	// EndsSilently: an error may end the transaction, by a deadlock, or by a lock that was not
	// granted in time with innodb_rollback_on_timeout. The database then commits what comes after
	// it by itself, and has nothing against the COMMIT. SQLite refuses the COMMIT, see EndedBefore,
	// and PostgreSQL every statement.
	EndsSilently bool
	// EndsCalls: calls of every driver end with their context. Some drivers of servers wait for
	// one that is silent.
	EndsCalls bool
	// Uninterrupted: interrupting a statement rolls back the whole transaction, which may be
	// the caller's, and so ctx is checked only between statements. A statement of one chunk is
	// short, and waits for a lock no longer than busy_timeout. This also saves mattn/go-sqlite3
	// a goroutine per statement.
	Uninterrupted bool
	// KeepsRows: a statement that failed may have kept rows, or ended the transaction, because a
	// constraint can be declared ON CONFLICT FAIL or ROLLBACK, and a trigger can RAISE(FAIL). Its
	// error names no index that would tell the row.
	KeepsRows bool
	// BadIsUnsent: a driver that reports a bad connection has sent nothing on it, as
	// database/sql requires.
	BadIsUnsent bool
}

var traits = [...]Traits{
	SQLite: {
		Dialect: SQLite, Dialector: "sqlite", CountsInserts: true, RowIDs: true, MaxBinds: 32766, Binds: 300, Prepares: true, NameIsText: true,
		EndsCalls: true, Uninterrupted: true, KeepsRows: true,
	},
	PostgreSQL: {
		Dialect: PostgreSQL, Dialector: "postgres", CountsInserts: true, MaxBinds: 65535, Binds: 3000, Ladder: 32, MaxBytes: 63, Arrays: true,
		Identifies: true, Standby: true,
	},
	MySQL: {
		Dialect: MySQL, Dialector: "mysql", MaxBinds: 65535, Binds: 3000, MaxRunes: 64, Prepares: true, Inlines: true, OnDuplicateKey: true,
		ForUpdate: " FOR UPDATE", EndsSilently: true, BadIsUnsent: true,
	},
}

// TraitsOf returns the traits of d, which are not to be changed. A database that is not Valid has
// none of them.
func TraitsOf(d Dialect) *Traits {
	if int(d) >= len(traits) {
		d = 0
	}
	return &traits[d]
}

// OfDialector returns the traits of GORM's dialector called name, or those of no dialect.
func OfDialector(name string) *Traits {
	return TraitsOf(Dialect(max(0, slices.IndexFunc(traits[:], func(t Traits) bool { return t.Dialector == name }))))
}
