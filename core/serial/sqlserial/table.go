package sqlserial

import (
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// texts are the statements of one Store.
type texts struct {
	define     string // INSERT
	guard      string // UPDATE of the row that is locked to add a series
	addGuard   string // INSERT of that row
	all        string // SELECT series, definition
	rows       string // SELECT, see Store.Rows
	definition string // SELECT
	lock       string // the same, and locks the row
	date       string // raises the last date of a series, and returns it
	next       string // takes one number, see textsOf
	look       string // SELECT last, closed; locks the row
	insert     string
	update     string
	last       string // SELECT, without a lock
	event      string // INSERT
	events     string // SELECT
}

func textsOf(d sqlstore.Dialect, names []string) texts {
	counters, series, events := names[0], names[1], names[2]
	lock := " FOR UPDATE"
	if d == dialect.SQLite {
		lock = "" // the transaction has locked the file
	}
	last := "SELECT last, closed FROM " + counters + " WHERE series = ? AND period = ?"
	t := texts{
		guard:    "UPDATE " + series + " SET last_date = last_date + 1 WHERE series = ''",
		addGuard: "INSERT INTO " + series + " (series, definition) VALUES ('', 'no series: one program at a time adds one')",
		all:      "SELECT series, definition FROM " + series + " ORDER BY series",
		rows: "SELECT s.series, s.definition, c.period, c.last, c.closed FROM " + series + " s LEFT JOIN " + counters +
			" c ON c.series = s.series WHERE s.series <> '' ORDER BY s.series, c.period",
		define:     d.Bind("INSERT INTO " + series + " (series, definition) VALUES (?, ?)"),
		definition: d.Bind("SELECT definition FROM " + series + " WHERE series = ?"),
		lock:       d.Bind("SELECT definition FROM " + series + " WHERE series = ?" + lock),
		look:       d.Bind(last + lock),
		last:       d.Bind(last),
		insert:     d.Bind("INSERT INTO " + counters + " (series, period, last, closed) VALUES (?, ?, ?, ?)"),
		update:     d.Bind("UPDATE " + counters + " SET last = ?, closed = ? WHERE series = ? AND period = ? AND last = ? AND closed = ?"),
		event:      d.Bind("INSERT INTO " + events + " (series, period, position, what, happened, last, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"),
		events:     d.Bind("SELECT what, happened, last, reason FROM " + events + " WHERE series = ? AND period = ? ORDER BY position"),
	}
	// date and next return a number, by RETURNING or as the last insert ID of the connection, which
	// MySQL and MariaDB send with the answer.
	//
	// next is a single statement that inserts or updates, and not an UPDATE followed by an INSERT if
	// it has met no row. On MySQL an UPDATE that meets no row locks the gap, as one of another
	// transaction may do, and then each INSERT waits for the other: a deadlock. On the other
	// databases two transactions would both take the first number of a period.
	//
	// On MySQL even INSERT … ON DUPLICATE KEY UPDATE alone deadlocks when a transaction that has
	// inserted the row is rolled back, because all that wait for the row inherit a lock on the gap,
	// and then none of them may insert. The statement therefore locks the row of the series first,
	// which always exists, so that one transaction at a time reaches the counter.
	switch d {
	case dialect.MySQL:
		t.date = "UPDATE " + series + " SET last_date = LAST_INSERT_ID(GREATEST(last_date, ?)) WHERE series = ?"
		// 0 if the period gives no number, since no series has the number 0. The argument of each
		// LAST_INSERT_ID has a column in it, because TiDB calls it once, when it plans the statement, if
		// the argument is constant: the answer then has 0 for the first number, or the first number where
		// the period gives none.
		t.next = "INSERT INTO " + counters + " (series, period, last)" +
			" SELECT s.series, ?, LAST_INSERT_ID(? + 0 * s.last_date) FROM " + series + " AS s WHERE s.series = ? FOR UPDATE" +
			" ON DUPLICATE KEY UPDATE last = last + (LAST_INSERT_ID(IF(closed = 0 AND last < ?, last + 1, 0)) > 0)"
	default:
		greatest := "greatest"
		if d == dialect.SQLite {
			greatest = "max"
		}
		t.date = d.Bind("UPDATE " + series + " SET last_date = " + greatest + "(last_date, ?) WHERE series = ? RETURNING last_date")
		// No row if the period gives no number.
		t.next = d.Bind("INSERT INTO " + counters + " AS c (period, last, series) VALUES (?, ?, ?)" +
			" ON CONFLICT (series, period) DO UPDATE SET last = c.last + 1 WHERE c.closed = 0 AND c.last < ? RETURNING last")
	}
	return t
}

// create returns the statements that create the tables.
func create(d sqlstore.Dialect, names []string) []string {
	anyText := ""
	if d == dialect.MySQL { // whose tables hold ASCII otherwise
		anyText = " CHARACTER SET utf8mb4"
	}
	return []string{
		sqlrow.CreateTable(d, names[1],
			"series VARCHAR(64) NOT NULL PRIMARY KEY",
			"definition VARCHAR(400) NOT NULL",
			"last_date BIGINT NOT NULL DEFAULT 0"),
		sqlrow.CreateTable(d, names[0],
			"series VARCHAR(64) NOT NULL",
			"period VARCHAR(8) NOT NULL",
			"last BIGINT NOT NULL",
			"closed SMALLINT NOT NULL DEFAULT 0",
			"PRIMARY KEY (series, period)"),
		sqlrow.CreateTable(d, names[2],
			"series VARCHAR(64) NOT NULL",
			"period VARCHAR(8) NOT NULL",
			"position BIGINT NOT NULL",
			"what SMALLINT NOT NULL",
			"happened BIGINT NOT NULL",
			"last BIGINT NOT NULL",
			"reason VARCHAR(255)"+anyText+" NOT NULL",
			"PRIMARY KEY (series, period, position)"),
	}
}
