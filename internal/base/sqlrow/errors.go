package sqlrow

import (
	"errors"
	"regexp"

	"github.com/snowkey/snowkey/internal/base/errtext"
)

var (
	// ErrCommit means that COMMIT was sent and has failed, so that it is unknown whether the
	// transaction was committed. The body has returned before.
	ErrCommit = errors.New("commit, outcome unknown")

	// ErrConflict is returned by a body to begin anew, because a row was changed after it was read.
	ErrConflict = errors.New("another process was first")

	// ErrReadOnly means that the database is a replica, a file without write permission, or a
	// connection that was made read-only.
	ErrReadOnly = errors.New("the database is read-only; use the primary, writable")

	// ErrDolt means that the server is Dolt, which commits both of two transactions that make the
	// same change to a row, so that numbers would repeat. It is permanent.
	ErrDolt = errors.New("the server is Dolt, which merges two equal updates of a row and commits both; use MySQL, MariaDB, PostgreSQL or SQLite")

	// ErrNotDurable means that the SQLite database would forget what it acknowledges: the package
	// comment has the conditions. It is permanent.
	ErrNotDurable = errors.New("the database does not keep what it acknowledges")

	// ErrReplaced means that the SQLite file or its write-ahead log was removed or replaced. Every
	// transaction is refused until the process is restarted.
	ErrReplaced = errors.New("the database file or its write-ahead log was removed or replaced while the process ran")
)

// errConnect is wrapped by errors of the pool.
var errConnect = errors.New("connect")

// errLocked means that another transaction has the lock of the folder.
var errLocked = errors.New("another connection or program has the folder locked; if it keeps the lock, use a folder of its own")

// credentials matches the places where drivers and their wrappers put a password into an error: a
// URL, a key with a value, and the DSN of the MySQL driver. A password that was not escaped is torn:
// with a space, net/url quotes the whole URL, and lib/pq takes the rest for a key; with a slash,
// net/url takes what is before it for a port.
var credentials = regexp.MustCompile(`(?i)` +
	`(parse "[^\s/:@"]*://[^\s/:@"]*:)(?:[^"\\]|\\.)*@|` +
	`(invalid port )"(?:[^"\\]|\\.)*"|` +
	`(missing "=" after )"(?:[^"\\]|\\.)*"|` +
	`(://[^\s/:@]*:)\S*@|` +
	`((?:pass(?:word|wd)?|pwd)["']?\s*[=:]\s*)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s&;,]+)|` +
	`([^\s:"'` + "`" + `]+:)\S*@(?:tcp|unix)`)

// redact returns err without the passwords in its text. The DSN is not known here, so passwords are
// found by their context.
func redact(err error) error {
	text := err.Error()
	clean := credentials.ReplaceAllStringFunc(text, func(found string) string {
		if found == "password: YES)" || found == "password: NO)" { // MySQL: whether one was sent
			return found
		}
		return credentials.ReplaceAllString(found, "$1$2$3$4$5$6***")
	})
	if clean != text {
		return errtext.Reword(clean, err)
	}
	return err
}
