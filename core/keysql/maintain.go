package keysql

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/types"
)

// Create returns the statements that make the partitions of a span of time, less those that
// exist, which is what the query of [Partitions.Existing] returned. If the last one that exists
// ends before the span begins, the partitions between are made too.
//
// On PostgreSQL there is one statement per partition. It makes the partition beside the table and
// attaches it, which blocks no reader and no writer; two programs that run it wait for each
// other, and a partition that is there is left alone. On MySQL it is one statement: it divides
// the table, which copies it and blocks writers, or makes the partitions from pmax, which copies
// the rows that are in pmax, or adds them if there is no such partition. If two programs run it,
// the second gets an error of a partition that exists twice and has changed nothing.
//
// It returns a [*core.ValueError] where List does, and before anything is sent if the table has
// a foreign key on MySQL, if a bound is not one of the layout, or if a partition that exists has
// a part of a new one.
func (p Partitions) Create(existing []Existing, from, until time.Time) ([]string, error) {
	all, err := p.read(existing)
	if err != nil {
		return nil, err
	}
	if end, ok := p.endOf(all); ok && end.Before(from) {
		from = end
	}
	list, err := p.List(from, until)
	if err != nil {
		return nil, err
	}
	var missing []Partition
	for _, n := range list {
		found := false
		for _, h := range all {
			overlaps := !h.rest && h.first <= int64(n.Last) && int64(n.First) <= h.last
			// The first of MySQL begins with all that is older.
			same := h.last == int64(n.Last) && (h.first == int64(n.First) || h.first == math.MinInt64)
			if overlaps && !same {
				return nil, invalid("partition "+h.name, fmt.Sprintf("a part of %s, of the keys %d to %d", n.Name, n.First, n.Last),
					"partitions that begin and end where those of this period and zone do; begin after it")
			}
			found = found || overlaps
		}
		if !found {
			missing = append(missing, n)
		}
	}
	switch {
	case len(missing) == 0:
		return nil, nil
	case p.postgreSQL():
		var statements []string
		for _, n := range missing {
			statements = append(statements, p.attach(n))
		}
		return statements, nil
	}
	return []string{p.divide(all, missing)}, nil
}

// endOf returns when the last partition ends, unless it holds everything to come.
func (p Partitions) endOf(all []held) (end time.Time, ok bool) {
	last := int64(math.MinInt64)
	for _, h := range all {
		if !h.rest {
			last = max(last, h.last)
		}
	}
	if last == math.MinInt64 || last == math.MaxInt64 {
		return end, false
	}
	// The beginning of the next period, to the tick.
	l := p.column.layout
	return l.Parts(types.Snowflake(last + 1)).Time.Add(l.Unit - 1), true
}

// attach makes a partition. CREATE TABLE … PARTITION OF is shorter, but waits for every reader
// of the table, with all later ones behind it. The lock excludes another run until this one has
// ended, and neither readers nor writers.
func (p Partitions) attach(n Partition) string {
	return fmt.Sprintf(`DO $snowkey$ BEGIN
LOCK TABLE %[1]s IN SHARE UPDATE EXCLUSIVE MODE;
IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = '%[1]s'::regclass AND inhrelid = to_regclass('%[2]s')) THEN
CREATE TABLE %[2]s (LIKE %[1]s INCLUDING ALL EXCLUDING IDENTITY);
ALTER TABLE %[1]s ATTACH PARTITION %[2]s FOR VALUES FROM (%[3]d) TO (%[4]s);
END IF;
END $snowkey$`, p.quoted(), p.sibling(n.Name), n.First, after(n.Last))
}

// divide makes partitions on MySQL.
func (p Partitions) divide(all []held, missing []Partition) string {
	rest := "pmax"
	format := "ALTER TABLE " + p.quoted() + " PARTITION BY RANGE (" + p.key() + ") (%s)"
	switch i := slices.IndexFunc(all, func(h held) bool { return h.rest }); {
	case i >= 0:
		rest = all[i].name
		format = "ALTER TABLE " + p.quoted() + " REORGANIZE PARTITION " + MySQL.Quote(rest) + " INTO (%s)"
	case len(all) > 0:
		rest = ""
		format = "ALTER TABLE " + p.quoted() + " ADD PARTITION (%s)"
	}
	var ranges []string
	for _, n := range missing {
		ranges = append(ranges, "PARTITION "+MySQL.Quote(n.Name)+" VALUES LESS THAN ("+after(n.Last)+")")
	}
	if rest != "" && missing[len(missing)-1].Last < math.MaxInt64 {
		ranges = append(ranges, "PARTITION "+MySQL.Quote(rest)+" VALUES LESS THAN MAXVALUE")
	}
	return fmt.Sprintf(format, strings.Join(ranges, ",\n"))
}

// A Plan is what a table's partitions need.
type Plan struct {
	Create []string // statements that make the partitions ahead
	Old    []string // names of partitions whose keys are all too old
	Drop   []string // statements that remove these and their rows, oldest first
}

// Maintain returns what a table needs at a time, such as the present: the partition of now and
// the given number ahead of it, and which partitions that exist are wholly before the number of
// periods to keep, that of now not counted; 0 keeps all. A partition that is there and holds the keys of now
// may have any length. After the statements of Create have run, a plan for the same time has none. Run it
// more often than the partitions ahead last.
//
// Drop is for a reader to run. On PostgreSQL a statement detaches a partition and drops it, and waits for
// the readers of the table.
//
// It returns a [*core.ValueError] where Create does, for fewer than one ahead, and for a negative
// number to keep.
func (p Partitions) Maintain(existing []Existing, now time.Time, ahead, keep int) (Plan, error) {
	if err := cmp.Or(checkCount("partitions ahead", ahead, 1), checkCount("partitions to keep", keep, 0)); err != nil {
		return Plan{}, err
	}
	all, err := p.read(existing)
	if err != nil {
		return Plan{}, err
	}
	civil := p.every.civilAt(now, p.zone)
	from, until := now, start(p.every.add(civil, ahead+1), p.zone)
	key := int64(p.column.layout.Min(now))
	for _, h := range all {
		// Such as the first one after Convert, which may last longer than a period.
		if end, ok := p.endOf([]held{h}); ok && h.first <= key && key <= h.last {
			from = end
		}
	}
	plan := Plan{}
	if from.Before(until) {
		if plan.Create, err = p.Create(existing, from, until); err != nil {
			return Plan{}, err
		}
	}
	if keep == 0 {
		return plan, nil
	}
	slices.SortFunc(all, func(a, b held) int { return strings.Compare(a.name, b.name) })
	first := p.column.layout.Min(start(p.every.add(civil, -keep), p.zone))
	for _, h := range all {
		if h.rest || h.last >= int64(first) {
			continue
		}
		plan.Old = append(plan.Old, h.name)
		if p.postgreSQL() {
			plan.Drop = append(plan.Drop, "DO $snowkey$ BEGIN\nALTER TABLE "+p.quoted()+" DETACH PARTITION "+p.sibling(h.name)+";\nDROP TABLE "+p.sibling(h.name)+";\nEND $snowkey$")
		} else {
			plan.Drop = append(plan.Drop, "ALTER TABLE "+p.quoted()+" DROP PARTITION "+MySQL.Quote(h.name))
		}
	}
	return plan, nil
}
