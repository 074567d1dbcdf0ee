package keysql

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Convert returns the statements that give partitions to a table on PostgreSQL, while programs
// read and write it. The table becomes the first partition, with all keys before the first period
// that begins after by, and ahead more follow it. Run all of them before that period begins:
//
//  1. A constraint keeps later keys out of the table, and is then validated, which reads the
//     table and blocks nobody. Until step 2, a key of a later period is an error. The first statement
//     is refused, and changes nothing, if that period has begun by the clock of the database, or if
//     the table has such a key.
//  2. In one transaction, the table is renamed to orders_p0 and a new one of its old name is made
//     like it and takes it as a partition, without reading it. Writers wait for that moment; it
//     gives up after five seconds if it cannot lock the table, and can be run again.
//  3. The partitions ahead are made.
//
// Each statement does nothing if it was run before, so that a run that has ended in the middle is
// gone on with by running all again, for the same time.
//
// Owner, privileges, defaults, constraints, indexes and foreign keys of the table go over, and
// the indexes of the new table get new names. What would stay behind is an error of steps 1 and 2 that
// names it, and changes nothing: foreign keys to the table, triggers, views, policies, identity
// columns, privileges on columns, and publications. Remove it before and make it again after.
//
// [Partitions.Unconvert] takes it back. On MySQL, Create does it. Convert returns a [*core.ValueError] there, and where List does.
func (p Partitions) Convert(by time.Time, ahead int) ([]string, error) {
	list, err := p.convertible(by, ahead)
	if err != nil {
		return nil, err
	}
	old := p.prefix() + "0"
	statements := []string{
		fmt.Sprintf(restrict, p.quoted(), PostgreSQL.Quote(old), p.key(), list[0].First, "'"+old+"'", list[0].From.UTC().Format(time.RFC3339), stays),
		fmt.Sprintf(validate, p.quoted(), PostgreSQL.Quote(old)),
		fmt.Sprintf(become, p.quoted(), p.sibling(old), PostgreSQL.Quote(old), p.key(), list[0].First, stays),
	}
	for _, n := range list {
		statements = append(statements, p.attach(n))
	}
	return statements, nil
}

// Unconvert returns the statement that takes back what statements of [Partitions.Convert] have done, all of
// them or some, for the same time. It is refused, and changes nothing, when a partition after the first has
// rows. Writers wait for it, as for step 2. It returns a [*core.ValueError] where Convert does.
func (p Partitions) Unconvert(by time.Time) (string, error) {
	list, err := p.convertible(by, 1)
	if err != nil {
		return "", err
	}
	old := p.prefix() + "0"
	return fmt.Sprintf(unconvert, p.quoted(), p.sibling(old), PostgreSQL.Quote(old), p.key(), list[0].First, PostgreSQL.Quote(p.table[strings.LastIndexByte(p.table, '.')+1:])), nil
}

// convertible returns the partitions after the first one of a table that is converted.
func (p Partitions) convertible(by time.Time, ahead int) ([]Partition, error) {
	if !p.postgreSQL() {
		return nil, invalid("dialect", "MySQL", "PostgreSQL; on MySQL, Create divides a table")
	}
	if err := checkCount("partitions ahead", ahead, 1); err != nil {
		return nil, err
	}
	civil := p.every.civilAt(by, p.zone)
	begin := start(p.every.add(civil, 1), p.zone)
	list, err := p.List(begin, start(p.every.add(civil, 1+ahead), p.zone))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("time", by.Format(time.RFC3339), "a time after which the layout has keys")
	}
	return list, nil
}

// restrict has the table, the constraint, the key, the first key that it refuses, the constraint's name
// as a text, the time of that key, and stays. The constraint comes before the looks, which its lock keeps
// true, and goes again if they refuse it.
const restrict = `DO $snowkey$ DECLARE r record; def text; t oid := '%[1]s'::regclass; BEGIN
IF (SELECT relkind = 'p' FROM pg_class WHERE oid = t) THEN RETURN; END IF;
SELECT pg_get_constraintdef(oid) INTO def FROM pg_constraint WHERE conrelid = t AND conname = %[5]s;
IF def IS NULL THEN
  ALTER TABLE %[1]s ADD CONSTRAINT %[2]s CHECK (%[3]s < %[4]d) NOT VALID;
  IF clock_timestamp() >= timestamptz '%[6]s' THEN
    RAISE EXCEPTION 'the first partition would end at %[6]s, which has passed: name a later time';
  ELSIF EXISTS (SELECT FROM %[1]s WHERE %[3]s >= %[4]d) THEN
    RAISE EXCEPTION 'the table has keys from %[6]s on, where the first partition would end: name a later time';
  END IF;
%[7]s
ELSIF strpos(def, '%[4]d') = 0 THEN
  RAISE EXCEPTION 'the conversion was begun for another time: %%. Go on with that, or begin anew after: ALTER TABLE %[1]s DROP CONSTRAINT %[2]s', def;
END IF;
END $snowkey$`

// stays refuses what would stay with the old table.
const stays = `SELECT string_agg(what, ', ') AS what INTO r FROM (
SELECT format('foreign key %I of %s', conname, conrelid::regclass) FROM pg_constraint WHERE contype = 'f' AND confrelid = t
UNION ALL SELECT format('trigger %I', tgname) FROM pg_trigger WHERE tgrelid = t AND NOT tgisinternal
UNION ALL SELECT DISTINCT format('view or rule of %s', w.ev_class::regclass) FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = t
UNION ALL SELECT format('policy %I', polname) FROM pg_policy WHERE polrelid = t
UNION ALL SELECT 'row security' FROM pg_class WHERE oid = t AND relrowsecurity
UNION ALL SELECT format('identity column %I', attname) FROM pg_attribute WHERE attrelid = t AND attidentity <> ''
UNION ALL SELECT format('privileges on column %I', attname) FROM pg_attribute WHERE attrelid = t AND attacl IS NOT NULL
UNION ALL SELECT format('publication %I', pubname) FROM pg_publication_rel JOIN pg_publication p ON p.oid = prpubid WHERE prrelid = t
) AS stays (what);
IF r.what IS NOT NULL THEN
  RAISE EXCEPTION 'would stay with the old table: %', r.what;
END IF;`

// validate has the table and the constraint. A block would be a transaction too, so its locks do
// not last longer.
const validate = `DO $snowkey$ BEGIN
IF (SELECT relkind <> 'p' FROM pg_class WHERE oid = '%[1]s'::regclass) THEN
  ALTER TABLE %[1]s VALIDATE CONSTRAINT %[2]s;
END IF;
END $snowkey$`

// become has the table, the old table with its name to be, that name alone, the key, the first key
// that the old table does not hold, and stays.
const become = `DO $snowkey$ DECLARE r record; t oid := '%[1]s'::regclass; BEGIN
SET LOCAL lock_timeout = '5s';
IF (SELECT relkind = 'p' FROM pg_class WHERE oid = t) THEN RETURN; END IF;
LOCK TABLE %[1]s IN ACCESS EXCLUSIVE MODE;
%[6]s
ALTER TABLE %[1]s RENAME TO %[3]s;
CREATE TABLE %[1]s (LIKE %[2]s INCLUDING ALL) PARTITION BY RANGE (%[4]s);
ALTER TABLE %[1]s DROP CONSTRAINT %[3]s;
FOR r IN SELECT conname, pg_get_constraintdef(oid) AS def FROM pg_constraint WHERE contype = 'f' AND conrelid = t LOOP
  EXECUTE format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', '%[1]s', r.conname, r.def);
END LOOP;
ALTER TABLE %[1]s ATTACH PARTITION %[2]s FOR VALUES FROM (MINVALUE) TO (%[5]d);
ALTER TABLE %[2]s DROP CONSTRAINT %[3]s;
FOR r IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who, privilege_type,
  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS option FROM pg_class, aclexplode(relacl) WHERE oid = t LOOP
  EXECUTE format('GRANT %%s ON %%s TO %%s%%s', r.privilege_type, '%[1]s', r.who, r.option);
END LOOP;
SELECT relowner::regrole::text AS who INTO r FROM pg_class WHERE oid = t;
EXECUTE format('ALTER TABLE %%s OWNER TO %%s', '%[1]s', r.who);
END $snowkey$`

// unconvert has what become has, and the table's name alone in place of stays.
const unconvert = `DO $snowkey$ BEGIN
SET LOCAL lock_timeout = '5s';
LOCK TABLE %[1]s IN ACCESS EXCLUSIVE MODE;
IF (SELECT relkind = 'p' FROM pg_class WHERE oid = '%[1]s'::regclass) THEN
  IF EXISTS (SELECT FROM %[1]s WHERE %[4]s >= %[5]d) THEN
    RAISE EXCEPTION 'partitions after the first have rows';
  END IF;
  ALTER TABLE %[1]s DETACH PARTITION %[2]s;
  DROP TABLE %[1]s;
  ALTER TABLE %[2]s RENAME TO %[6]s;
ELSE
  ALTER TABLE %[1]s DROP CONSTRAINT IF EXISTS %[3]s;
END IF;
END $snowkey$`

// Partman returns the statement that hands a table with PARTITION BY RANGE (id) to the extension
// pg_partman, version 4.7 or later, in the schema partman, from the partition of a time on.
// pg_partman takes the key for a number and gives every partition as many keys, which is one hour,
// day or week of UTC. It has no months, years or zones, and makes partitions ahead of the greatest
// key and not of the clock: after a time without rows that is longer than ahead, rows go to
// the default partition.
//
// It returns a [*core.ValueError] for other periods and zones, for a layout whose epoch is not
// the beginning of a period, for a table without its schema, and on MySQL.
func (p Partitions) Partman(from time.Time, ahead int) (string, error) {
	l := p.column.layout
	length := map[Period]time.Duration{Hour: time.Hour, Day: 24 * time.Hour, Week: 7 * 24 * time.Hour}[p.every]
	switch civil := p.every.civilAt(l.Epoch, p.zone); {
	case !p.postgreSQL():
		return "", invalid("dialect", "MySQL", "PostgreSQL, which has pg_partman")
	case length == 0 || length%l.Unit != 0:
		return "", invalid("period", p.every.String(), "Hour, Day or Week in whole ticks: pg_partman counts keys; use Maintain")
	case p.zone.String() != "UTC":
		return "", invalid("zone", p.zone.String(), "UTC: pg_partman counts keys; use Maintain")
	case !start(civil, p.zone).Equal(l.Epoch):
		return "", invalid("Layout.Epoch", l.Epoch.Format(time.RFC3339Nano), "the beginning of a "+p.every.String()+", from which pg_partman counts; use Maintain")
	case p.prefix() == p.table+"_p":
		return "", invalid("table name", strconv.Quote(p.table), "a name with its schema, such as public.orders, as pg_partman wants it")
	}
	if err := checkCount("partitions ahead", ahead, 1); err != nil {
		return "", err
	}
	first := l.Min(start(p.every.civilAt(from, p.zone), p.zone))
	return fmt.Sprintf(`SELECT partman.create_parent(p_parent_table := '%s', p_control := '%s',
p_type := (SELECT CASE WHEN extversion LIKE '4.%%' THEN 'native' ELSE 'range' END FROM pg_extension WHERE extname = 'pg_partman'),
p_interval := '%d', p_premake := %d, p_start_partition := '%d')`,
		p.table, p.key()[1:len(p.key())-1], int64(length/l.Unit)<<p.column.timeShift(), ahead, first), nil
}
