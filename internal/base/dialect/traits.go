package dialect

// Traits are the differences between databases that both plugins have to know. Those of only one
// plugin are beside its code.
type Traits struct {
	// Arrays: the rows of an INSERT may be sent as arrays, and by COPY.
	Arrays bool
	// Identifies: transactions have IDs that outlive them, see outcome.Xact.
	Identifies bool
	// EndsSilently: an error may end the transaction, by a deadlock, or by a lock that was not
	// granted in time with innodb_rollback_on_timeout. The database then commits what comes after
	// it by itself, and has nothing against the COMMIT. Others refuse that.
	EndsSilently bool
	// EndsCalls: calls of every driver end with their context. Some drivers of servers wait for
	// one that is silent.
	EndsCalls bool
}

var traits = [...]Traits{
	SQLite:     {EndsCalls: true},
	PostgreSQL: {Arrays: true, Identifies: true},
	MySQL:      {EndsSilently: true},
}

// TraitsOf returns the traits of d. A database that is not Valid has none.
func TraitsOf(d Dialect) Traits {
	if !d.Valid() {
		return Traits{}
	}
	return traits[d]
}
