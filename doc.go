// Package snowkey is the root of a module that gives rows their primary keys before they are
// inserted. [Open] makes a generator for the processes that share a database; the packages below
// use it.
//
// A key is a 64-bit Snowflake ID, made of a timestamp, a worker number and a sequence number. No
// two calls return the same key, and no call asks a server for one.
//
//   - [github.com/snowkey/snowkey/gormplugin] sets the keys of every GORM create, and of all
//     rows associated with it.
//   - [github.com/snowkey/snowkey/sqlxhelper] inserts rows, and rows with their children, through
//     sqlx. [github.com/snowkey/snowkey/sqlxhelper/pgxcopy] adds COPY for PostgreSQL.
//   - [github.com/snowkey/snowkey/core] has the generator, its layouts, and the policies for a
//     clock that steps back, for database/sql and other libraries.
//   - [github.com/snowkey/snowkey/core/shard] says in which of several databases a row is, by its
//     key, and merges their pages.
//   - [github.com/snowkey/snowkey/core/lease] gives each of several processes a worker number.
//     Leases are kept in your database or a SQLite file
//     ([github.com/snowkey/snowkey/core/lease/sqllease]), in Redis
//     ([github.com/snowkey/snowkey/core/lease/redislease]), in etcd
//     ([github.com/snowkey/snowkey/core/lease/etcdlease]) or in ZooKeeper
//     ([github.com/snowkey/snowkey/core/lease/zklease]).
//   - [github.com/snowkey/snowkey/core/segment] returns small, dense keys from ranges that a
//     table hands out, and [github.com/snowkey/snowkey/core/serial] readable numbers, such as
//     those of invoices, with or without gaps.
//   - [github.com/snowkey/snowkey/types] has the ID as a value: a field of a struct, in JSON, in
//     a URL.
//   - [github.com/snowkey/snowkey/core/keysql] writes SQL that takes keys apart, for people who
//     read tables without Go.
//   - [github.com/snowkey/snowkey/core/publicid] writes keys as texts that may be shown, because
//     they hide what a key tells.
//   - [github.com/snowkey/snowkey/core/coretest] is for tests: the same keys in every run, a
//     clock to move, and a lease store that fails on demand.
//   - [github.com/snowkey/snowkey/core/otelsnowkey] reports generators, leases, segments and
//     counters as OpenTelemetry metrics.
//   - [github.com/snowkey/snowkey/cmd/snowkey] is a command that takes keys apart and makes them,
//     for people without Go.
//   - [github.com/snowkey/snowkey/cmd/snowkeyvet] is a vet tool that finds mistakes with keys, and
//     moves a program from keys that the database counts.
//
// pgxcopy, otelsnowkey, the commands, redislease, etcdlease and zklease are modules of their own, so
// that what they need does not become a requirement of every user. The README shows how the packages go
// together, and the folder examples has whole programs.
//
// This package is stable.
package snowkey
