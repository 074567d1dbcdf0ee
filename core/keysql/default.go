package keysql

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
)

// Default returns the statements that install a function id_next() on PostgreSQL, for rows that
// bring no key, such as those that people insert by hand:
//
//	ALTER TABLE orders ALTER COLUMN id SET DEFAULT public.id_next()
//
// It makes the keys of a generator with the datacenter and the worker. Take that number out of
// use before, by Retire of package lease or as a fixed number that no process gets, and use it for
// one function in one database alone. Then no key equals one of a generator or an earlier one of
// the function, however many sessions call it, and whether their statements end, fail, are
// canceled or are killed:
//
//   - The locks of a call last for microseconds. A transaction that stays open blocks no other.
//   - The time of a key comes from the database's clock, to 16 ms or a tick. When the clock steps
//     back, or keys of more than 16 ms are drawn at once, the function counts on from its last key.
//   - After a crash of the database, the key of a committed row does not come again if commits wait
//     for the disk (synchronous_commit). One that was only read may, if the clock was set back and is
//     behind it, and so may one whose transaction did not commit.
//   - A failover to a replica that lacks commits and a restore take away the sequence's last numbers.
//     Stop the old server, and let no row in before the clock has passed the greatest key.
//   - Past the end of the layout id_next() fails.
//
// The function counts in the sequence snowkey_next beside it, which must not be set by hand.
// Running the statements again does not change the sequence; tables of another layout need another
// schema. The schema must exist. If a wrong clock has taken the sequence far ahead, drop the
// sequence and run the statements with another number.
//
// Every role that may use the schema may call the function, which runs with the privileges of the
// role that created it. Its advisory locks have the classid 1936617335 in pg_locks; a session that
// takes one blocks all keys.
//
// It returns a [*core.ValueError] for other dialects, for which see [RequireKey]; for a layout that
// [New] refuses, or with shards, since a default sees nothing of the row whose shard it should have;
// for a number outside the layout; and for a schema that is empty or contains a dot,
// a dollar sign, a backslash or a quotation mark.
func Default(d Dialect, l core.Layout, datacenter, worker int64, schema string) ([]string, error) {
	id, err := New(d, l, "id")
	if err != nil {
		return nil, err
	}
	if d != PostgreSQL {
		return nil, invalid("dialect", d.String(), "PostgreSQL; elsewhere rows bring keys of a generator, and RequireKey refuses others")
	}
	if l.ShardBits > 0 {
		return nil, invalid("Layout.ShardBits", strconv.Itoa(l.ShardBits), "0: a default does not know the shard of its row, which brings a key of a generator")
	}
	if schema == "" || strings.ContainsAny(schema, ".\"`'$\\\x00") { // it stands in texts, too
		return nil, invalid("schema", strconv.Quote(schema), "a name without dots, dollar signs, backslashes and quotation marks")
	}
	fixed, err := l.Compose(core.Parts{Time: l.Epoch, Datacenter: datacenter, Worker: worker})
	if v := (*core.ValueError)(nil); errors.As(err, &v) {
		return nil, invalid(strings.ToLower(strings.TrimPrefix(v.Name, "Parts.")), v.Value, v.Want)
	}
	slack := int64(16 * time.Millisecond / l.Unit)
	replacer := strings.NewReplacer(
		"{sequence}", d.Quote(schema+".snowkey_next"),
		"{function}", d.Quote(schema+".id_next"),
		"{last}", strconv.FormatInt(1<<(l.TimeBits+l.SequenceBits)-1, 10),
		"{now}", id.syntax.tick(id.layout, "clock_timestamp()"),
		"{slack}", strconv.FormatInt(slack, 10),
		"{more}", strconv.FormatInt(slack+1, 10),
		"{size}", strconv.FormatInt(1<<l.SequenceBits, 10),
		"{ones}", strconv.FormatInt(1<<l.SequenceBits-1, 10),
		"{bits}", strconv.Itoa(l.SequenceBits),
		"{shift}", strconv.Itoa(id.timeShift()),
		"{worker}", strconv.FormatInt(int64(fixed), 10),
	)
	return []string{replacer.Replace(createSequence), replacer.Replace(createNext)}, nil
}

// The sequence does not belong to a table, because TRUNCATE … RESTART IDENTITY would set it back.
// Its first number is 1, because 0 is no key.
const createSequence = `CREATE SEQUENCE IF NOT EXISTS {sequence} AS bigint MINVALUE 1 MAXVALUE {last} CACHE 1 NO CYCLE`

// The sequence counts ticks and sequence numbers as one number, and a key is that number with the
// worker put in between. nextval returns each number once. It would return one again after a
// setval to a number that another session has passed, so no session may call nextval between the
// look at last_value and setval: setval has the lock exclusively, and nextval shares it.
//
// A lock must end with the call, since the transaction may stay open, and however the call ends.
// Unlocking in an exception handler is not enough: a second cancellation interrupts the handler,
// and the session keeps the lock. These are therefore locks of a subtransaction, which an
// exception always rolls back, and with it PostgreSQL releases the locks. Sequences and variables
// do not roll back.
//
// Numbers ahead of the clock, too, come from setval, which writes to the log in this transaction,
// so that its commit waits for the log. nextval writes for 32 numbers at once, maybe in another
// transaction, and if that does not commit before a crash, the numbers come again. For those that
// the clock has reached it does no harm: the clock has passed them when the server is up again.
//
// The product with tick fails beyond 63 bits, where a shift would go past the end unseen.
const createNext = `CREATE OR REPLACE FUNCTION {function}() RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tick CONSTANT bigint := {now};
  lock CONSTANT bigint := (1936617335::bigint << 32) | '{sequence}'::regclass::oid::bigint;
  n bigint;
BEGIN
  BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock);
    n := nextval('{sequence}');
    RAISE SQLSTATE 'SNOWK'; -- ends the lock
  EXCEPTION WHEN SQLSTATE 'SNOWK' THEN
  END;
  IF n < (tick - {slack}) * {size} OR n >= (tick + {more}) * {size} THEN
    BEGIN
      PERFORM pg_advisory_xact_lock(lock);
      SELECT setval('{sequence}', greatest(last_value + 1, tick * {size})) INTO n FROM {sequence};
      RAISE SQLSTATE 'SNOWK';
    EXCEPTION WHEN SQLSTATE 'SNOWK' THEN
    END;
  END IF;
  RETURN ((n >> {bits}) << {shift}) | {worker} | (n & {ones});
END
$$`
