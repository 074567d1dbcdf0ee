// Package copies tests what copies of a database do to keys and to the tables of snowkey:
// dumps and their restore, logical replication, binary logs, change data capture, and the CSV
// that analysts read. It starts the servers whose settings no shared server has.
package copies
