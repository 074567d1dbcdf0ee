package main

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // which needs no C, so that the command is one file

	"github.com/snowkey/snowkey/core/keysql"
)

// dbVariable names a database as -db does. A list of processes does not show it.
const dbVariable = "SNOWKEY_DB"

var errNoDatabase = errors.New("no database: want -db, or " + dbVariable + " in the environment")

// keyword matches the beginning of a connection string of libpq that is no URL.
var keyword = regexp.MustCompile(`^\s*\w+\s*=`)

const wantURL = "want a URL such as postgres://user@host/database, mysql://user@host/database or sqlite:path/of/file"

// A location is what -db names, without a connection.
type location struct {
	*url.URL
	password string
	keywords string // of libpq, as in "host=db dbname=shop", which the URL is made of
}

// locate returns what -db or its variable names. No error of it repeats the text, which may have
// a password that the parser did not find.
func (o *options) locate() (location, error) {
	text := cmp.Or(o.db, os.Getenv(dbVariable))
	if text == "" {
		return location{}, usageError{errNoDatabase}
	}
	if keyword.MatchString(text) {
		config, err := pgx.ParseConfig(text)
		if err != nil {
			return location{}, usagef("-db: %w", errors.Unwrap(err)) // which does not repeat the text
		}
		u := &url.URL{Scheme: "postgres", User: url.User(config.User), Host: config.Host, Path: "/" + config.Database}
		return location{u, config.Password, text}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return location{}, usagef("-db is no URL: %s", wantURL)
	}
	l := location{URL: u}
	l.password, _ = u.User.Password()
	return l, nil
}

// String returns the location without the password and without parameters, which may have one too.
func (l location) String() string {
	if l.Opaque != "" {
		return l.Scheme + ":" + l.Opaque
	}
	return l.Scheme + "://" + l.Host + l.Path
}

// hide returns err without the password, and after the location.
func (l location) hide(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if l.password != "" {
		text = strings.NewReplacer(l.password, "xxxxx", url.QueryEscape(l.password), "xxxxx").Replace(text)
	}
	return hidden{fmt.Sprintf("%s: %s", l, text), err}
}

// A hidden error is one whose text had a password.
type hidden struct {
	text string
	error
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// sqlDialect returns the dialect of a database, and an error for a location that is none.
func (l location) sqlDialect() (keysql.Dialect, error) {
	switch l.Scheme {
	case "postgres", "postgresql":
		return keysql.PostgreSQL, nil
	case "mysql", "mariadb":
		return keysql.MySQL, nil
	case "sqlite":
		return keysql.SQLite, nil
	}
	return 0, usagef("-db %.20s: is no SQL database: %s", l.Scheme, wantURL)
}

// A database is an open pool.
type database struct {
	*sql.DB
	location
	dialect keysql.Dialect
}

// open connects to the database that -db names.
func (o *options) open(ctx context.Context) (*database, error) {
	l, err := o.locate()
	if err != nil {
		return nil, err
	}
	d := &database{location: l}
	if d.dialect, err = l.sqlDialect(); err != nil {
		return nil, err
	}
	switch d.dialect {
	case keysql.PostgreSQL:
		config, err := pgx.ParseConfig(cmp.Or(l.keywords, l.URL.String()))
		if err != nil {
			return nil, usageError{l.hide(errors.Unwrap(err))} // which does not repeat the URL
		}
		d.DB = stdlib.OpenDB(*config)
	case keysql.MySQL:
		connector, err := mysqlConnector(l)
		if err != nil {
			return nil, usageError{l.hide(err)}
		}
		d.DB = sql.OpenDB(connector)
	case keysql.SQLite:
		path := cmp.Or(l.Opaque, l.Path)
		if _, err := os.Stat(path); err != nil { // SQLite would make it
			return nil, l.hide(err)
		}
		d.DB, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw&_pragma=busy_timeout(10000)")
		if err != nil {
			return nil, l.hide(err)
		}
	}
	reach, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := d.PingContext(reach); err != nil {
		_ = d.Close()
		return nil, l.hide(err)
	}
	return d, nil
}

// each calls scan for each row of a query.
func (d *database) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := d.QueryContext(ctx, query, args...)
	if err != nil {
		return d.hide(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return d.hide(err)
		}
	}
	return d.hide(rows.Err())
}

// mysqlConnector returns the connector of a URL. It takes the driver's parameters, and
// socket, the path of a socket in place of the host.
func mysqlConnector(l location) (driver.Connector, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = l.User.Username(), l.password, strings.TrimPrefix(l.Path, "/")
	config.Net, config.Addr = "tcp", l.Host
	if l.Port() == "" {
		config.Addr = cmp.Or(l.Host, "127.0.0.1") + ":3306"
	}
	config.Params = map[string]string{}
	for name := range l.Query() {
		config.Params[name] = l.Query().Get(name)
	}
	if socket, ok := config.Params["socket"]; ok {
		config.Net, config.Addr = "unix", socket
		delete(config.Params, "socket")
	}
	config, err := mysql.ParseDSN(config.FormatDSN()) // which reads the parameters
	if err != nil {
		return nil, err
	}
	config.ParseTime, config.Logger = true, &mysql.NopLogger{} // the errors say the same
	return mysql.NewConnector(config)
}

// confirm asks before something is written. Without a terminal only -yes
// answers.
func (o *options) confirm(ctx context.Context, question string) error {
	if o.yes {
		return nil
	}
	_, _ = fmt.Fprintf(os.Stderr, "%s [y/N] ", question)
	answer, failed := make(chan string, 1), make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && line == "" {
			failed <- err
			return
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: nothing was changed", errInterrupted)
	case err := <-failed:
		if errors.Is(err, io.EOF) {
			return usagef("nobody can answer, and nothing was changed: -yes answers")
		}
		return err
	case text := <-answer:
		if text != "y" && text != "yes" {
			return errors.New("nothing was changed")
		}
		return nil
	}
}
