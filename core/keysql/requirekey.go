package keysql

import (
	"fmt"
	"strings"
)

// RequireKey returns the statements that make MySQL, MariaDB or SQLite refuse an INSERT of a row
// whose key is missing, NULL, zero or negative, by a trigger that has the name of the table with
// _key. Without it such a row gets 0 from MySQL outside of its strict modes, and the number after
// the greatest key from AUTO_INCREMENT and from an INTEGER PRIMARY KEY of SQLite, which may be the
// next key of a generator. Running the statements again changes nothing. MySQL with a binary log
// wants log_bin_trust_function_creators, or the privilege SUPER, for CREATE TRIGGER.
//
// The table may be in a schema or database, as in shop.orders. RequireKey returns a
// [*core.ValueError] for PostgreSQL, where a primary key without a DEFAULT refuses rows without a
// key and [Default] gives them one; for the dialects of warehouses; and for a name that is empty or
// contains a quotation mark.
func RequireKey(d Dialect, table, column string) ([]string, error) {
	for part := range strings.SplitSeq(table, ".") {
		if err := checkName("table name", part); err != nil {
			return nil, err
		}
	}
	if err := checkName("column name", column); err != nil {
		return nil, err
	}
	const text = "snowkey: the row has no key; take one from a generator"
	key := "NEW." + MySQL.Quote(column) // SQLite takes backticks too
	trigger, on, body := MySQL.Quote(table+"_key"), MySQL.Quote(table), ""
	switch d {
	case MySQL:
		body = fmt.Sprintf("IF %s IS NULL OR %[1]s <= 0 THEN\n  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '%s';\nEND IF", key, text)
	case SQLite:
		// Before the INSERT, SQLite shows -1 for the key that it is going to choose. Its
		// documentation calls that undefined; tests hold it to it.
		on = MySQL.Quote(table[strings.LastIndexByte(table, '.')+1:]) // in the trigger's schema
		body = fmt.Sprintf("WHEN %s IS NULL OR %[1]s <= 0 BEGIN\n  SELECT RAISE(ABORT, '%s');\nEND", key, text)
	default:
		return nil, invalid("dialect", d.String(), "MySQL or SQLite; on PostgreSQL see Default")
	}
	return []string{
		"DROP TRIGGER IF EXISTS " + trigger,
		fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW\n%s", trigger, on, body),
	}, nil
}
