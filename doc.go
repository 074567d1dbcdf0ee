// Package snowkey is the root of a module that gives rows their primary keys before
// they are inserted. It holds no code: import the packages that you need.
//
// A key is a 64-bit Snowflake ID: a timestamp, a worker number and a sequence number.
// No two calls return the same key, and no server is asked for it.
//
// What do you have?
//
//   - GORM: [github.com/snowkey/snowkey/gormplugin]. After
//     db.Use(gormplugin.New(gen)) every create sets the keys, down the associations.
//   - sqlx: [github.com/snowkey/snowkey/sqlxhelper] inserts a row, many rows, or rows
//     with their children. With many rows for PostgreSQL, add
//     [github.com/snowkey/snowkey/sqlxhelper/pgxcopy], a module of its own.
//   - database/sql or another library: [github.com/snowkey/snowkey/core] has the
//     generator, its layouts, and the policies for a clock that steps back.
//   - Several processes: [github.com/snowkey/snowkey/core/lease] gives each of them a
//     worker number. The numbers are kept in your database
//     ([github.com/snowkey/snowkey/core/lease/sqllease]), in files on one host
//     ([github.com/snowkey/snowkey/core/lease/filelease]), in Redis
//     ([github.com/snowkey/snowkey/core/lease/redislease]), in etcd
//     ([github.com/snowkey/snowkey/core/lease/etcdlease]) or in ZooKeeper
//     ([github.com/snowkey/snowkey/core/lease/zklease]). The last three are modules of
//     their own.
//   - Keys that are small and dense, from a table:
//     [github.com/snowkey/snowkey/core/segment] gives out ranges of numbers.
//   - A test: [github.com/snowkey/snowkey/core/coretest] has the same keys in each run, a
//     clock to move, and a store of leases that fails when told.
//   - A table and no Go: [github.com/snowkey/snowkey/core/keysql] writes SQL that takes
//     keys apart.
//   - A field of a struct, a JSON document, a URL: [github.com/snowkey/snowkey/types]
//     has the ID as a value.
//
// The README shows how they go together, and the folder examples has whole programs.
package snowkey
