package sqlrow

import (
	"errors"
	"regexp"
)

var (
	// ErrCommit means that COMMIT was sent and has failed. Nobody knows whether the
	// transaction is done. The body has returned before.
	ErrCommit = errors.New("commit, outcome unknown")

	// ErrConflict is returned by a body to begin anew: a row was changed after it was
	// read.
	ErrConflict = errors.New("another process was first")

	// ErrReadOnly means that the database takes no writes. It is a replica, a file
	// without write permission, or a connection that was made read-only.
	ErrReadOnly = errors.New("the database is read-only; use the primary, writable")

	// ErrDolt means that the server is Dolt, which commits both of two transactions that
	// make the same change to a row. Numbers would repeat. Trying again does not help.
	ErrDolt = errors.New("the server is Dolt, which merges two equal updates of a row and commits both; use MySQL, MariaDB, PostgreSQL or SQLite")

	// ErrNotDurable means that the SQLite database would forget what it acknowledges. It
	// is in memory, has no journal on disk, is on a file system that other hosts may
	// share, where SQLite's locks do not work, or has a second path, by a hard link or
	// a mount of the file itself. Trying again does not help.
	ErrNotDurable = errors.New("the database does not keep what it acknowledges")

	// ErrReplaced means that the SQLite file is no longer that of the first transaction,
	// or its write-ahead log no longer that of the connection. It was removed or moved,
	// or another was put in its place. Connections that were open before still write
	// into the old one, which no other process reads. So every transaction is refused
	// from then on. Restart the process.
	ErrReplaced = errors.New("the database file or its write-ahead log was removed or replaced while the process ran")
)

// errConnect is in the errors of the pool.
var errConnect = errors.New("connect")

// credentials are the places where drivers and their wrappers put a password into an
// error. They are a URL, a key with a value, and the DSN of the MySQL driver. A password
// that was not escaped is torn. If it has a space, net/url quotes the whole URL. If it
// has a slash, net/url takes what is before the slash for a port. lib/pq takes what is
// after a space for a key.
var credentials = regexp.MustCompile(`(?i)` +
	`(parse "[^\s/:@"]*://[^\s/:@"]*:)(?:[^"\\]|\\.)*@|` +
	`(invalid port )"(?:[^"\\]|\\.)*"|` +
	`(missing "=" after )"(?:[^"\\]|\\.)*"|` +
	`(://[^\s/:@]*:)\S*@|` +
	`((?:pass(?:word|wd)?|pwd)["']?\s*[=:]\s*)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&;,]+)|` +
	`([^\s:"'` + "`" + `]+:)\S*@(?:tcp|unix)`)

// redact returns err with the passwords in its text left out. The DSN is not known here,
// so they are found by where they stand.
func redact(err error) error {
	text := err.Error()
	clean := credentials.ReplaceAllStringFunc(text, func(found string) string {
		if found == "password: YES)" || found == "password: NO)" { // MySQL: whether one was sent
			return found
		}
		return credentials.ReplaceAllString(found, "$1$2$3$4$5$6***")
	})
	if clean != text {
		return &redacted{clean, err}
	}
	return err
}

type redacted struct {
	text string
	err  error
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }
