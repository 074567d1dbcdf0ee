package servertest

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An address is where to dial: a [net.Addr] before any name is resolved.
type address struct{ network, target string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.target }

// What is wrong with a value. None repeats the value or an error of a parser. Those of
// net/url quote the whole URL, password included.
var (
	errNoURL      = errors.New("is no postgres:// URL with a host")
	errNoDatabase = errors.New("has no /database after the address")
	errNoNetwork  = errors.New("has no tcp(host:port) or unix(/path) before the database")
	errNoPort     = errors.New("is no host:port")
)

// postgresAddress reads only the URL form. The other form, host=… port=…, has its own quoting
// rules, and one form is enough.
func postgresAddress(dsn string) (net.Addr, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Hostname() == "" {
		return nil, errNoURL
	}
	port := u.Port()
	if port == "" {
		port = "5432"
	}
	return address{"tcp", net.JoinHostPort(u.Hostname(), port)}, nil
}

// mariaAddress reads [user[:password]@][network[(address)]]/database[?params] as the
// driver does. The last '/' ends the address. The last '@' before it ends the
// credentials. A password may hold either.
func mariaAddress(dsn string) (net.Addr, error) {
	slash := strings.LastIndexByte(dsn, '/')
	if slash < 0 {
		return nil, errNoDatabase
	}
	where := dsn[strings.LastIndexByte(dsn[:slash], '@')+1 : slash]
	network, target, bracket := strings.Cut(where, "(")
	target, closed := strings.CutSuffix(target, ")")
	if bracket != closed {
		return nil, errNoNetwork
	}
	switch network {
	case "tcp", "":
		if target == "" {
			target = "127.0.0.1:3306"
		}
		if _, _, err := net.SplitHostPort(target); err != nil {
			target += ":3306"
		}
		if _, _, err := net.SplitHostPort(target); err != nil {
			return nil, errNoNetwork
		}
		return address{"tcp", target}, nil
	case "unix":
		if target == "" {
			target = "/tmp/mysql.sock"
		}
		return address{"unix", target}, nil
	}
	return nil, errNoNetwork
}

// plainAddress reads host:port. One address only: a list would need a rule for
// which of them has to answer.
func plainAddress(value string) (net.Addr, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil || host == "" || strings.ContainsAny(host, ",/@") {
		return nil, errNoPort
	}
	// net.Dial takes service names too. But "user:password" is not an address, and
	// an error that repeats it would show a password.
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, errNoPort
	}
	return address{"tcp", value}, nil
}
