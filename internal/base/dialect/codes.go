package dialect

// Error numbers of MySQL and MariaDB, by the names in their manuals.
const (
	tooManyConnections   = 1040
	notPrepared          = 1047 // Galera: the node is not in the cluster, or catches up
	serverShutdown       = 1053
	tooGeneral           = 1105 // unknown error; Vitess says it of many
	queryInterrupted     = 1317
	connectionKilled     = 1927
	recordHasChanged     = 1020 // MariaDB with innodb_snapshot_isolation
	lockWaitTimeout      = 1205
	deadlock             = 1213
	duplicateEntry       = 1062
	duplicateEntryIn     = 1586 // names the index
	tableExists          = 1050
	noSuchTable          = 1146
	noSuchDatabase       = 1049
	noDatabaseRight      = 1044
	noTableRight         = 1142
	noColumnRight        = 1143
	noSuchColumn         = 1054
	noSuchIndex          = 1176
	unknownVariable      = 1193
	notSupportedYet      = 1235
	inTransaction        = 1568
	outOfRange           = 1690
	serverReadOnly       = 1290
	transactionReadOnly  = 1792
	rowLoggingOnly       = 1665
	readOnlyMode         = 1836
	transactionRollback  = 3101 // the group replication has rolled it back
	errorDuringCommit    = 1180 // and the reason in words; see Of
	columnCannotBeNull   = 1048
	noDefault            = 1364
	noParentRow          = 1216
	noParentRowIn        = 1452 // names the constraint
	checkViolatedMariaDB = 4025
	checkViolatedMySQL   = 3819
)

// What TiDB says of a transaction that it has rolled back. Its documentation names these
// four as those after which a program runs the whole transaction again.
const (
	tidbForUpdateConflict = 8002
	tidbCommitFailed      = 8022
	tidbSchemaChanged     = 8028
	tidbWriteConflict     = 9007
)

// Result codes of SQLite.
const (
	sqliteError            = 1
	sqliteBusy             = 5
	sqliteReadOnly         = 8
	sqliteInterrupt        = 9
	sqliteFull             = 13
	sqliteTooBig           = 18
	sqliteConstraint       = 19
	sqliteMismatch         = 20
	sqliteLockedShared     = 6 | 1<<8  // SQLITE_LOCKED_SHAREDCACHE
	sqliteNoParent         = 19 | 3<<8 // SQLITE_CONSTRAINT_FOREIGNKEY
	sqliteDuplicateKey     = 19 | 6<<8 // SQLITE_CONSTRAINT_PRIMARYKEY
	sqliteDuplicateInIndex = 19 | 8<<8 // SQLITE_CONSTRAINT_UNIQUE
)
