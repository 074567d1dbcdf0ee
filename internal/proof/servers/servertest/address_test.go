package servertest

import (
	"errors"
	"net"
	"testing"
)

func TestAddressIsTheOneThatTheDriverDials(t *testing.T) {
	for _, test := range []struct {
		name    string
		parse   func(string) (net.Addr, error)
		value   string
		network string
		target  string
	}{
		{"postgresAddress", postgresAddress, postgreSQL.fallback, "tcp", "127.0.0.1:5432"},
		{"postgresAddress", postgresAddress, "postgresql://joe:p%40ss@db:6000/x?sslmode=disable", "tcp", "db:6000"},
		{"postgresAddress", postgresAddress, "postgres://db/x", "tcp", "db:5432"},
		{"postgresAddress", postgresAddress, "postgres://[::1]/x", "tcp", "[::1]:5432"},
		{"mariaAddress", mariaAddress, mariaDB.fallback, "tcp", "127.0.0.1:3306"},
		{"mariaAddress", mariaAddress, "joe:p@ss/w(o)rd@tcp(db:3307)/x", "tcp", "db:3307"},
		{"mariaAddress", mariaAddress, "joe@tcp(db)/x", "tcp", "db:3306"},
		{"mariaAddress", mariaAddress, "joe@tcp([::1])/x", "tcp", "[::1]:3306"},
		{"mariaAddress", mariaAddress, "joe@tcp/x", "tcp", "127.0.0.1:3306"},
		{"mariaAddress", mariaAddress, "/x", "tcp", "127.0.0.1:3306"},
		{"mariaAddress", mariaAddress, "joe@unix(/run/mysqld/mysqld.sock)/x", "unix", "/run/mysqld/mysqld.sock"},
		{"mariaAddress", mariaAddress, "joe@unix/x", "unix", "/tmp/mysql.sock"},
		{"plainAddress", plainAddress, redis.fallback, "tcp", "127.0.0.1:6379"},
		{"plainAddress", plainAddress, zooKeeper.fallback, "tcp", "127.0.0.1:2181"},
		{"plainAddress", plainAddress, etcd.fallback, "tcp", "127.0.0.1:2379"},
		{"plainAddress", plainAddress, "[::1]:6379", "tcp", "[::1]:6379"},
	} {
		addr, err := test.parse(test.value)
		if err != nil || addr.Network() != test.network || addr.String() != test.target {
			t.Errorf("%s(%q) = %v, %v; want %s %s", test.name, test.value, addr, err, test.network, test.target)
		}
	}
}

func TestMalformedAddressIsRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		parse func(string) (net.Addr, error)
		value string
		want  error
	}{
		{"postgresAddress", postgresAddress, "", errNoURL},
		{"postgresAddress", postgresAddress, "host=db port=5432", errNoURL},
		{"postgresAddress", postgresAddress, "mysql://db/x", errNoURL},
		{"postgresAddress", postgresAddress, "postgres:///x", errNoURL},
		{"postgresAddress", postgresAddress, "postgres://db:port/x", errNoURL},
		{"mariaAddress", mariaAddress, "joe@tcp(db:3306)", errNoDatabase},
		{"mariaAddress", mariaAddress, "joe@tcp(db:3306/x", errNoNetwork},
		{"mariaAddress", mariaAddress, "joe@tcp)/x", errNoNetwork},
		{"mariaAddress", mariaAddress, "joe@db:3306/x", errNoNetwork},
		{"mariaAddress", mariaAddress, "joe@tcp(a:b:c)/x", errNoNetwork},
		{"plainAddress", plainAddress, "db", errNoPort},
		{"plainAddress", plainAddress, ":6379", errNoPort},
		{"plainAddress", plainAddress, "db:", errNoPort},
		{"plainAddress", plainAddress, "db:redis", errNoPort},
		{"plainAddress", plainAddress, "db:65536", errNoPort},
		{"plainAddress", plainAddress, "a:1,b:2", errNoPort},
		{"plainAddress", plainAddress, "a,b:2", errNoPort},
		{"plainAddress", plainAddress, "redis://db:6379", errNoPort},
		{"plainAddress", plainAddress, "joe@db:6379", errNoPort},
	} {
		if addr, err := test.parse(test.value); addr != nil || !errors.Is(err, test.want) {
			t.Errorf("%s(%q) = %v, %v; want nil, %v", test.name, test.value, addr, err, test.want)
		}
	}
}
