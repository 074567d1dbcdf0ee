package outcome

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// settleTimeout bounds how long a context without a deadline allows to find out what became of a
// call. It is longer than a server takes to restart or a network to recover.
const settleTimeout = time.Minute

// A Pending is a transaction or statement whose COMMIT was sent, or may have been, and was not
// answered, or not for certain.
type Pending struct {
	*Database
	Xact   Xact // or none
	Proofs []Proof
	// Answered: the server has reported the commit, which a failover may lose.
	Answered bool
}

// Settle finds out what became of the transaction: Committed, RolledBack, or InDoubt with the
// reason. It looks until it knows, but no longer than a second after ctx ends.
//
// On PostgreSQL the ID of the transaction decides, if it is known and this is still the run of the
// server that has given it out, see [Xact]. Otherwise its rows do.
//
// The keys exist before the rows, and nothing else uses them, so a row that is there proves
// that the transaction is committed. A missing row alone proves nothing, because the COMMIT may
// be late, on a network or waiting for a disk. The transaction must therefore be over before
// the row is looked for. MySQL and SQLite answer both at once, because the look waits for the
// lock that the transaction holds. On PostgreSQL a look lists the transactions that may be the
// one in doubt, and when none of them is left, one more look decides. A look in the same
// transaction would not do: under REPEATABLE READ it sees what was stored before the list was
// made.
func (d Pending) Settle(ctx context.Context) (End, error) {
	switch {
	case d.Xact == Xact{} && len(d.Proofs) == 0 && !d.Answered:
		return InDoubt, ErrNoProof
	case d.OneConnection && !d.Answered:
		return InDoubt, ErrOneConn
	}
	var open []string
	listed := false
	o := InDoubt
	err := d.Ask(ctx, func(s Look) (known bool, err error) {
		switch {
		case s.Found:
			o = Committed
			return true, nil
		case errors.Is(s.Proves, ErrReplica):
			return false, s.Proves
		case d.Answered:
			return true, errGone
		case s.Proves != nil:
			return true, s.Proves
		case s.over, listed && len(open) == 0:
			o = RolledBack
			return true, nil
		case listed:
			open = slices.DeleteFunc(open, func(t string) bool { return !slices.Contains(s.open, t) })
		default:
			listed, open = true, s.open
		}
		if len(open) == 0 {
			return false, nil // the next look comes after their end
		}
		return false, ErrOpen
	})
	if err != nil {
		return InDoubt, err
	}
	return o, nil
}

// Ask looks until judge knows the outcome, or returns why it does not. If judge returns no
// error, the next look follows at once.
func (d Pending) Ask(ctx context.Context, judge func(Look) (known bool, err error)) error {
	_, limited := ctx.Deadline()
	ctx, cancel := Outlast(ctx)
	defer cancel()
	if !limited {
		ctx, cancel = context.WithTimeout(ctx, settleTimeout)
		defer cancel()
	}
	for n := 1; ; n++ {
		s, err := d.lookInTime(ctx)
		known := false
		switch {
		case err == nil:
			known, err = judge(s)
		case !passes(err):
			known = true
			if !IsAnswer(err) {
				err = fmt.Errorf("%w: %w", ErrUnknownDatabase, err)
			}
		}
		switch {
		case err == nil && known:
			return nil
		case err == nil:
			continue
		}
		if known || wait.Sleep(ctx, delay(n)) != nil {
			return fmt.Errorf("looking for the row: %w", err)
		}
	}
}

// lookInTime looks, and waits for no part of the look longer than ctx.
func (d Pending) lookInTime(ctx context.Context) (Look, error) {
	if d.Cancels == CancelsAll {
		return d.look(ctx)
	}
	return Call(ctx, 0, func() (Look, error) { return d.look(ctx) }, nil)
}

// passes reports whether another look may succeed after err. A database that has refused will
// refuse again, and errors of anything but a database, a network or a driver stay.
func passes(err error) bool {
	if dialect.Refused(err) {
		return false
	}
	return IsAnswer(err) || dialect.BadConnection(err) || errors.Is(err, standby.ErrSlow) ||
		errors.As(err, new(net.Error)) || errors.Is(err, context.Canceled) // net.ErrClosed and context.DeadlineExceeded are a net.Error
}

// IsAnswer reports whether err comes from a database.
func IsAnswer(err error) bool {
	for range dialect.Answers(err) {
		return true
	}
	return false
}

// A Look is the result of one look at a transaction in doubt.
type Look struct {
	Found bool // one of its rows is stored: it is committed
	// If no row was found, Proves is nil, or says why that proves nothing even if the
	// transaction is over: ErrReplica or ErrServers.
	Proves error
	// over means that the transaction has ended. Until then missing rows prove nothing, because
	// the COMMIT may be on its way.
	over bool
	// Others means that other databases of MySQL have tables of that name, which do not have
	// the row either.
	Others bool
	// open lists the transactions of PostgreSQL that may be the one in doubt. If it is not
	// among them, it had ended before the list was made, but after its rows were looked for.
	open []string
}

// look looks for the rows of a transaction in doubt, and whether the transaction is over.
// Without rows it only ensures what this server has committed.
//
// It runs in a transaction on another connection, since the driver has reported the broken one.
// A proxy that sends reads to replicas sends a transaction that may write to the primary. A row
// that a replica has is committed.
//
// On PostgreSQL a row that is found may still be lost, see [standby.Ensure].
func (d Pending) look(ctx context.Context) (s Look, err error) {
	tx, err := d.Begin(ctx, nil)
	if err != nil {
		return s, err
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing, or has ended
	if d.Xact != (Xact{}) {
		switch state, err := d.Xact.state(ctx, tx); {
		case err != nil:
			return s, err
		case state == xactCommitted:
			err = standby.Ensure(ctx, tx)
			return Look{Found: err == nil}, err
		case state == xactAborted:
			return Look{over: true}, nil
		case state != "":
			return Look{open: []string{state}}, nil
		}
	}
	for _, p := range d.Proofs {
		if p.Dialect == dialect.SQLite {
			if _, err := tx.ExecContext(ctx, p.lock()); err != nil {
				return s, err
			}
		}
		var one int
		err := tx.QueryRowContext(ctx, p.text(), p.value()).Scan(&one)
		if dialect.Unsupported(err) {
			// TiDB has no shared locks. A row that is read without one is committed, and a missing
			// row proves nothing there, see aloneMySQL.
			err = tx.QueryRowContext(ctx, p.unlocked(), p.value()).Scan(&one)
		}
		switch {
		case err == nil:
			if dialect.TraitsOf(p.Dialect).Standby {
				err = standby.Ensure(ctx, tx)
			}
			return Look{Found: err == nil}, err
		case !errors.Is(err, sql.ErrNoRows):
			return s, err
		}
	}
	switch {
	case len(d.Proofs) == 0 && !d.Answered:
		err = errElsewhere
	case len(d.Proofs) == 0:
		err = standby.Ensure(ctx, tx) // only PostgreSQL's commits are cut off
		s.Found = err == nil
	case d.Proofs[0].Dialect == dialect.PostgreSQL:
		s.open, err = openPostgreSQL(ctx, tx, d.Proofs)
	case d.Proofs[0].Dialect == dialect.MySQL:
		s.over = true
		if err = aloneMySQL(ctx, tx); err == nil {
			s.Others, err = elsewhereMySQL(ctx, tx, d.Proofs)
		}
	default:
		s.over, err = true, hiddenSQLite(ctx, tx, d.Proofs)
	}
	for _, why := range []error{ErrReplica, ErrServers, errElsewhere, ErrHidden, ErrNames} {
		if errors.Is(err, why) {
			s.Proves, err = err, nil
		}
	}
	return s, err
}

// text returns the statement that looks for the row. The caller has checked the names.
//
// On MySQL it waits for the transaction that has inserted the row, if that is open, and sees
// the latest row at any isolation level.
func (p KeyColumn) text() string {
	if p.Dialect != dialect.MySQL {
		return p.unlocked()
	}
	// Without a lock, a session under READ UNCOMMITTED would see a row that is rolled back a moment
	// later. A shared one needs no privilege but SELECT.
	return p.unlocked() + " LOCK IN SHARE MODE"
}

// unlocked is text without waiting.
func (p KeyColumn) unlocked() string {
	d := p.Dialect
	return "SELECT 1 FROM " + d.Quote(p.Table) + " WHERE " + d.Quote(p.Column) + " = " + d.Placeholder(1)
}

// lock returns a statement for SQLite that writes nothing, and waits for the lock on the file
// that a transaction holds from its first write until its end.
func (p KeyColumn) lock() string {
	table, key := p.Dialect.Quote(p.Table), p.Dialect.Quote(p.Column)
	return "INSERT INTO " + table + " (" + key + ") SELECT " + key + " FROM " + table + " WHERE 0"
}

// openPostgreSQL lists the transactions that may be the one in doubt.
//
// That one has inserted rows. It holds a lock on each of their tables from then on, also while
// it waits for a synchronous standby, until its commit is visible. CREATE INDEX CONCURRENTLY
// waits for writers by the same locks, and every user may read them. A lock on any of the
// tables counts, because a savepoint of the caller may have undone some of the rows together
// with their lock.
//
// It also tells whether a row that is not found may be stored all the same: ErrHidden or ErrNames.
func openPostgreSQL(ctx context.Context, tx Tx, proofs []Proof) ([]string, error) {
	names, tables := make([]any, len(proofs)), make([]string, len(proofs))
	for i, p := range proofs {
		names[i] = dialect.PostgreSQL.Quote(p.Table)
		tables[i] = fmt.Sprintf("(CAST(pg_catalog.to_regclass(%s) AS OID), %t)", dialect.PostgreSQL.Placeholder(i+1), !strings.Contains(p.Table, "."))
	}
	var (
		version, open, hidden string
		recovers              bool
	)
	err := tx.QueryRowContext(ctx, `WITH looked (relation, bare) AS (VALUES `+strings.Join(tables, ", ")+`)
		SELECT version(), pg_catalog.pg_is_in_recovery(), coalesce((
		SELECT string_agg(DISTINCT virtualtransaction, ' ') FROM pg_catalog.pg_locks
		WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_catalog.pg_backend_pid()
		AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
		AND relation IN (SELECT relation FROM looked)), ''), coalesce((
		SELECT min(CASE
			WHEN bare AND EXISTS (SELECT FROM pg_catalog.pg_class o WHERE o.relname = c.relname AND o.oid <> c.oid AND o.relkind IN ('r', 'p', 'v', 'f')) THEN 'names'
			WHEN c.relkind = 'v' OR c.relhasrules OR pg_catalog.row_security_active(c.oid) THEN 'rows' END)
		FROM looked JOIN pg_catalog.pg_class c ON c.oid = relation), '')`, names...).Scan(&version, &recovers, &open, &hidden)
	switch {
	case err != nil:
		return nil, err
	case !postgresVersion.MatchString(version):
		return nil, fmt.Errorf("%w: %s", ErrServers, version)
	case recovers:
		return nil, ErrReplica
	case hidden == "names":
		return nil, ErrNames
	case hidden != "":
		return nil, ErrHidden
	}
	return strings.Fields(open), nil
}

// postgresVersion matches PostgreSQL itself, with or without the name of its builder. Databases
// that only speak its protocol, and keep locks elsewhere, have other versions: "CockroachDB CCL
// v24…", "PostgreSQL 15.2-YB-2.23…", "PostgreSQL 8.0.2 …, Redshift 1.0".
var postgresVersion = regexp.MustCompile(`^(?:PostgreSQL|EnterpriseDB) [0-9]+(?:\.[0-9]+)*(?:devel|(?:alpha|beta|rc)[0-9]+)?[ ,].*compiled by .*-bit$`)

// aloneMySQL returns nil if a missing row proves that its transaction was rolled back: the look
// has waited for the transaction only if it ran on this server.
func aloneMySQL(ctx context.Context, tx Tx) error {
	v := map[string]string{}
	err := dialect.Each(ctx, tx, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		v[strings.ToLower(name)] = strings.ToUpper(value)
		return err
	}, "SHOW VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'read_only', 'innodb_read_only',"+
		" 'wsrep_on', 'wsrep_provider', 'group_replication_single_primary_mode', 'group_replication_group_name')")
	if err != nil {
		return err
	}
	on := func(name string) bool { value, set := v[name]; return set && value != "OFF" && value != "0" }
	switch {
	case v["wsrep_on"] == "ON" && v["wsrep_provider"] != "NONE" && v["wsrep_provider"] != "":
		return fmt.Errorf("%w: wsrep_on is ON", ErrServers)
	case v["group_replication_single_primary_mode"] == "OFF" && v["group_replication_group_name"] != "":
		return fmt.Errorf("%w: group_replication_single_primary_mode is OFF", ErrServers)
	case likeMySQL.MatchString(v["version"] + " " + v["version_comment"]):
		return fmt.Errorf("%w: %s", ErrServers, strings.ToLower(v["version"]))
	case on("read_only"), on("innodb_read_only"):
		return ErrReplica
	}
	return nil
}

// maxNames bounds in how many tables of one name a row is looked for.
const maxNames = 100

// elsewhereMySQL looks for rows in the tables of that name in other databases, because the
// transaction may have chosen another one by USE. It returns nil if none has them, and whether
// there are such tables. A row that is found there proves nothing, because another database may
// have keys of its own.
func elsewhereMySQL(ctx context.Context, tx Tx, proofs []Proof) (others bool, err error) {
	for _, p := range proofs {
		schema, table, qualified := strings.Cut(p.Table, ".")
		if !qualified {
			table = p.Table
		}
		var names []string
		err := dialect.Each(ctx, tx, func(rows *sql.Rows) error {
			var name, typ string
			var here bool
			err := rows.Scan(&name, &typ, &here)
			switch {
			case err != nil:
				return err
			case qualified && !strings.EqualFold(name, schema):
			case strings.Contains(typ, "VIEW"):
				return ErrHidden
			case !qualified && !here:
				names = append(names, name)
			}
			return nil
		}, "SELECT table_schema, table_type, table_schema = COALESCE(DATABASE(), '') FROM information_schema.tables WHERE table_name = ?", table)
		switch {
		case err != nil:
			return false, err
		case len(names) > maxNames:
			return true, ErrNames
		}
		for _, name := range names {
			var one int
			text := KeyColumn{Dialect: dialect.MySQL, Table: name + "." + table, Column: p.Column}.text()
			switch err := tx.QueryRowContext(ctx, text, p.value()).Scan(&one); {
			case dialect.NoColumn(err), dialect.NoTable(err): // it takes no such rows
				continue
			case err == nil, dialect.Denied(err):
				return true, ErrNames
			case !errors.Is(err, sql.ErrNoRows):
				return false, err
			}
			others = true
		}
	}
	return others, nil
}

// hiddenSQLite returns nil if a missing row proves that it is not stored. A name without a
// schema may be that of a table in a file that only some connections have attached, or of a
// view.
func hiddenSQLite(ctx context.Context, tx Tx, proofs []Proof) error {
	for _, p := range proofs {
		table, main := strings.CutPrefix(p.Table, "main.")
		var isTable bool
		err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE)"+
			" AND (?2 OR NOT EXISTS (SELECT 1 FROM sqlite_temp_master WHERE name = ?1 COLLATE NOCASE))", table, main).Scan(&isTable)
		if err != nil {
			return err
		}
		if !isTable {
			return ErrHidden
		}
	}
	return nil
}

// likeMySQL matches databases that speak like MySQL and have other locks or several servers.
var likeMySQL = regexp.MustCompile(`TIDB|VITESS|PLANETSCALE|OCEANBASE|MEMSQL|SINGLESTORE|DOLT|POLARDB|TDSQL|STARROCKS|DORIS`)
