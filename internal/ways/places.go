package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
)

// places are the servers: a schema and a database of the program's own, and three servers
// of Redis that it has started.
type places struct {
	postgres, mariaDB *sql.DB
	redis             []*redis.Client
	redisTasks        []int
	trips             atomic.Int64 // over all connections
	closers           []func(context.Context) error
}

const connections = 64

func newPlaces(ctx context.Context) (p *places, err error) {
	p = new(places)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(context.WithoutCancel(ctx)))
		}
	}()
	name := "ways_" + strings.ToLower(rand.Text())
	if err := p.openPostgres(ctx, name); err != nil {
		return p, fmt.Errorf("PostgreSQL: %w", err)
	}
	if err := p.openMariaDB(ctx, name); err != nil {
		return p, fmt.Errorf("MariaDB: %w", err)
	}
	for range 3 {
		if err := p.startRedis(ctx); err != nil {
			return p, fmt.Errorf("redis: %w", err)
		}
	}
	return p, nil
}

func (p *places) close(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(p.closers) {
		errs = append(errs, c(ctx))
	}
	return errors.Join(errs...)
}

func (p *places) openPostgres(ctx context.Context, name string) error {
	dsn := os.Getenv("SNOWKEY_POSTGRES_DSN")
	if dsn == "" {
		dsn = "postgres://root@127.0.0.1:5432/test?sslmode=disable"
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	c.DialFunc = p.dial
	c.RuntimeParams["search_path"], c.RuntimeParams["application_name"] = name, name
	p.postgres = p.pool(stdlib.OpenDB(*c), "DROP SCHEMA "+name+" CASCADE")
	_, err = p.postgres.ExecContext(ctx, "CREATE SCHEMA "+name)
	return err
}

func (p *places) openMariaDB(ctx context.Context, name string) error {
	dsn := os.Getenv("SNOWKEY_MARIADB_DSN")
	if dsn == "" {
		dsn = "root@tcp(127.0.0.1:3306)/test?parseTime=true"
	}
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return errors.Join(err, admin.Close())
	}
	p.closers = append(p.closers, func(ctx context.Context) error {
		_, err := admin.ExecContext(ctx, "DROP DATABASE "+name)
		return errors.Join(err, admin.Close())
	})
	c.DBName, c.InterpolateParams = name, true
	c.DialFunc = p.dial
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	p.mariaDB = p.pool(sql.OpenDB(connector), "")
	return p.mariaDB.PingContext(ctx)
}

// pool bounds a pool, and closes it at the end, after the statement remove.
func (p *places) pool(db *sql.DB, remove string) *sql.DB {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	p.closers = append(p.closers, func(ctx context.Context) error {
		var err error
		if remove != "" {
			_, err = db.ExecContext(ctx, remove)
		}
		return errors.Join(err, db.Close())
	})
	return db
}

// warm opens all connections of the pools, so that none is opened while something is
// measured: its thread would come with what it has used before.
func (p *places) warm(ctx context.Context) error {
	for _, db := range []*sql.DB{p.postgres, p.mariaDB} {
		var open []*sql.Conn
		var errs []error
		for range connections {
			c, err := db.Conn(ctx)
			if err != nil {
				errs = append(errs, err)
				break
			}
			open = append(open, c)
		}
		for _, c := range open {
			errs = append(errs, c.Close())
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// startRedis starts a server that keeps nothing on disk.
func (p *places) startRedis(ctx context.Context) error {
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := free.Close(); err != nil {
		return err
	}
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", os.TempDir()) //nolint:noctx // it ends in close
	if err := server.Start(); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: connections, Dialer: p.dial})
	p.redis = append(p.redis, client)
	p.closers = append(p.closers, func(context.Context) error {
		err := errors.Join(client.Close(), server.Process.Kill())
		_ = server.Wait() // it was killed
		return err
	})
	p.redisTasks = append(p.redisTasks, server.Process.Pid)
	for range 100 {
		if err = client.Ping(ctx).Err(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

func (p *places) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countingConn{Conn: c, trips: &p.trips}, nil
}

// A countingConn counts a round trip for each read that follows a write.
type countingConn struct {
	net.Conn
	trips *atomic.Int64
	wrote atomic.Bool
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *countingConn) Read(b []byte) (int, error) {
	if c.wrote.CompareAndSwap(true, false) {
		c.trips.Add(1)
	}
	return c.Conn.Read(b)
}
