package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

// options are the flags of all commands. A command has those that it names.
type options struct {
	layout     choice[core.Layout]
	form       choice[form]
	dialect    choice[keysql.Dialect]
	every      choice[keysql.Period]
	epoch      time.Time
	unit       time.Duration
	bits       string
	shardBits  int
	column     string
	worker     string
	datacenter int64
	zone       *time.Location // nil unless it is named
	db         string
	table      string
	namespace  string
	reason     string
	above      string
	from       string
	step       int64
	stride     int64
	offset     int64
	ahead      int
	keep       int
	drop       bool
	leases     string
	full       bool
	all        bool
	json, man  bool
	apply, yes bool
	live       bool

	undo string // what takes statements back, if not what they make is removed
}

// flags returns the flags of a command, which set o.
func (o *options) flags(c command) *flag.FlagSet {
	o.layout = choice[core.Layout]{names: []string{"default", "twitter", "discord", "mastodon", "instagram", "javascript"},
		values: []core.Layout{core.Default(), core.Twitter(), core.Discord(), core.Mastodon(), core.Instagram(), core.JavaScript()}}
	o.dialect = choice[keysql.Dialect]{names: []string{"postgresql", "mysql", "mariadb", "sqlite", "duckdb", "clickhouse", "bigquery"},
		values: []keysql.Dialect{keysql.PostgreSQL, keysql.MySQL, keysql.MySQL, keysql.SQLite, keysql.DuckDB, keysql.ClickHouse, keysql.BigQuery},
		also:   map[string]string{"postgres": "postgresql", "sqlite3": "sqlite"}}
	o.every = choice[keysql.Period]{names: []string{"hour", "day", "week", "month", "year"},
		values: []keysql.Period{keysql.Hour, keysql.Day, keysql.Week, keysql.Month, keysql.Year}}
	o.form = choice[form]{values: forms}
	for _, f := range forms {
		o.form.names = append(o.form.names, f.name)
	}
	var all flag.FlagSet
	all.Var(&o.layout, "layout", "`name` of the layout of the keys, in place of default")
	all.IntVar(&o.shardBits, "shard-bits", 0, "how many `bits` of the sequence, the lowest, name a shard")
	all.StringVar(&o.bits, "bits", "", "`widths` of time, datacenter, worker and sequence in a layout of your own, such as 41/5/5/12")
	all.Func("epoch", "`time` of tick 0, in place of the layout's: such as 2020-01-01T00:00:00Z, or milliseconds since 1970", o.setEpoch)
	all.DurationVar(&o.unit, "unit", 0, "`length` of a tick, in place of the layout's, such as 10ms")
	all.Var(&o.form, "form", "`name` of the form of the keys")
	all.Func("zone", "`name` of the time zone, such as Europe/Berlin, or Local for that of this machine", o.setZone)
	all.BoolVar(&o.json, "json", false, "write objects of JSON, each on a line")
	all.StringVar(&o.worker, "worker", "", "`number` of the worker, which no other running program may have")
	all.Int64Var(&o.datacenter, "datacenter", 0, "`number` of the datacenter")
	all.Var(&o.dialect, "dialect", "`name` of the database that the SQL is for")
	all.Var(&o.every, "every", "`length` of a partition, in the time zone")
	all.StringVar(&o.column, "column", "id", "`name` of the column of keys, such as orders.id, in place of id")
	all.StringVar(&o.db, "db", "", "`URL` of the database, such as postgres://user@host/database, mysql://user@host/database or sqlite:path, or keywords of libpq, such as 'host=db dbname=shop'; "+dbVariable+" in the environment says the same, and shows no password in a list of processes")
	all.StringVar(&o.table, "table", "", "`name` of the table, with its schema, or on Redis, etcd and ZooKeeper of the prefix of the keys, if it is not the usual one")
	all.StringVar(&o.namespace, "namespace", "", "`name` of the namespace, if there are several")
	all.StringVar(&o.reason, "reason", "", "`text` that says why, for people")
	all.StringVar(&o.above, "above", "", "`key` that no key of the worker exceeds, anywhere")
	all.StringVar(&o.from, "from", "", "`URL` of the database of the columns, if it is not that of -db")
	all.Int64Var(&o.step, "step", 1000, "`number` of numbers that a program takes at a time, at least")
	all.Int64Var(&o.stride, "stride", 1, "`distance` of the numbers, such as how many databases share them")
	all.Int64Var(&o.offset, "offset", 0, "`remainder` of the numbers after division by the stride")
	all.IntVar(&o.ahead, "ahead", 3, "`number` of partitions to make after the present one")
	all.IntVar(&o.keep, "keep", 0, "`number` of partitions before the present one that are not old; 0: all")
	all.BoolVar(&o.drop, "drop", false, "remove the old partitions with their rows, too")
	all.StringVar(&o.leases, "leases", "", "`URL` of the store of leases, if it is not that of -db")
	all.BoolVar(&o.full, "full", false, "look at the makers of all keys, and not only of the newest 10,000")
	all.BoolVar(&o.all, "all", false, "look at the type of every integer that is a primary key, or a part of one that others refer to or that is named id, and of every column that refers to one")
	all.BoolVar(&o.apply, "apply", false, "run the statements on the database of -db")
	all.BoolVar(&o.live, "live", false, "take the number from a process that may live, too, which then takes another one")
	all.BoolVar(&o.yes, "yes", false, "answer yes to the question that is asked before something is written")
	all.BoolVar(&o.man, "man", false, "write the manual page of all commands")

	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name := range strings.FieldsSeq(c.flags) {
		f := all.Lookup(name)
		flags.Var(f.Value, f.Name, f.Usage)
	}
	return flags
}

// A choice is a flag whose argument is one of its names, which select a value.
type choice[T any] struct {
	names  []string
	values []T
	also   map[string]string // other names of some
	chosen bool
	value  T
}

func (c *choice[T]) String() string    { return "" }
func (c *choice[T]) choices() []string { return c.names }

func (c *choice[T]) Set(name string) error {
	if other, ok := c.also[name]; ok {
		name = other
	}
	at := slices.Index(c.names, name)
	if at < 0 {
		return errors.New("want one of " + strings.Join(c.names, ", "))
	}
	c.chosen, c.value = true, c.values[at]
	return nil
}

func (o *options) setEpoch(text string) (err error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		o.epoch = time.UnixMilli(ms).UTC()
		return nil
	}
	if o.epoch, err = time.Parse(time.RFC3339, text); err != nil {
		return errors.New("want a time such as 2020-01-01T00:00:00Z, or milliseconds since 1970")
	}
	return nil
}

func (o *options) setZone(name string) (err error) {
	if o.zone, err = time.LoadLocation(name); err != nil || name == "" {
		return errors.New("want a zone such as Europe/Berlin, UTC or Local")
	}
	return nil
}

// layoutNamed reports whether a flag says what the layout is.
func (o *options) layoutNamed() bool {
	return o.layout.chosen || o.bits != "" || !o.epoch.IsZero() || o.unit != 0
}

// keyLayout returns the layout that the flags describe.
func (o *options) keyLayout() (core.Layout, error) {
	l := o.layout.value
	switch {
	case o.bits != "" && (o.layout.chosen || o.epoch.IsZero()):
		return l, usagef("-bits %.64q: want -epoch with it, and no -layout", o.bits)
	case o.bits != "":
		l.Unit = time.Millisecond
		if _, err := fmt.Sscanf(o.bits+"\n", "%d/%d/%d/%d\n", &l.TimeBits, &l.DatacenterBits, &l.WorkerBits, &l.SequenceBits); err != nil {
			return l, usagef("-bits %.64q: want four numbers such as 41/5/5/12", o.bits)
		}
	case !o.layout.chosen:
		l = core.Default()
	}
	if !o.epoch.IsZero() {
		l.Epoch = o.epoch
	}
	if o.unit != 0 {
		l.Unit = o.unit
	}
	l.ShardBits = o.shardBits
	if err := l.Validate(); err != nil {
		return l, usageError{err}
	}
	return l, nil
}

// keyColumn returns the column that the flags describe.
func (o *options) keyColumn() (keysql.Column, error) {
	l, err := o.keyLayout()
	if err != nil {
		return keysql.Column{}, err
	}
	switch at, err := o.locate(); {
	case errors.Is(err, errNoDatabase) && !o.dialect.chosen:
		return keysql.Column{}, usagef("-dialect is missing: want one of %s, or -db", strings.Join(o.dialect.names, ", "))
	case errors.Is(err, errNoDatabase) && !o.apply:
	case err != nil:
		return keysql.Column{}, err
	default:
		d, err := at.sqlDialect()
		if err == nil && o.dialect.chosen && d != o.dialect.value {
			err = usagef("-dialect is not that of -db, %s", at)
		}
		if err != nil {
			return keysql.Column{}, err
		}
		o.dialect.value = d
	}
	c, err := keysql.New(o.dialect.value, l, o.column)
	if err != nil {
		return c, usageError{err}
	}
	return c, nil
}
