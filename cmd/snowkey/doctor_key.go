package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// key says who made a key, in which columns it is, and which mistakes make it twice.
func (e *examination) key(ctx context.Context, id types.Snowflake) error {
	l := e.layout()
	parts := l.Parts(id)
	where := "key " + id.String()
	if _, err := l.Compose(parts); err != nil {
		return e.find(sick, where, "it is not a key of the layout", "Another layout has made it, or it was counted.")
	}
	made := fmt.Sprintf("made %s by worker %d of datacenter %d", stamp(parts.Time), parts.Worker, parts.Datacenter)
	if parts.Time.After(e.now) {
		made += ", in the future, so that a clock was wrong, or the layout is another one"
	}
	var spans, then []leasedSpan
	if e.l != nil {
		var err error
		if spans, err = e.holders(ctx, holderKey{parts.Datacenter, parts.Worker}); err != nil {
			return err
		}
		then = at(spans, parts.Time, l.Unit)
		for _, s := range then {
			made += "; the number was leased by " + s.String()
		}
		if len(then) == 0 {
			made += "; no lease had the number then"
		}
	}
	if err := e.find(note, where, made, causes(e.l != nil, spans, then)); err != nil {
		return err
	}
	for _, c := range e.columns {
		table, column := e.quoted(c)
		var n int64
		query := fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = %d", table, column, id)
		if err := e.d.QueryRowContext(ctx, query).Scan(&n); err != nil {
			return e.d.hide(err)
		}
		s, mend := note, ""
		if n > 1 {
			s = sick
			mend = fmt.Sprintf("Give all but one a new key, with the rows that refer to them, and the column a unique index.\n  SELECT * FROM %s WHERE %s = %d;", table, column, id)
		}
		if err := e.find(s, where, fmt.Sprintf("it is in %d rows of %s", n, c), mend); err != nil {
			return err
		}
	}
	return nil
}

// causes returns what makes a second key equal to one, the likeliest first.
func causes(leased bool, spans, then []leasedSpan) string {
	fixed := "a second program with this worker number fixed, by core.StaticWorker, an environment variable or snowkey generate"
	insert := "the same row inserted twice, by a retry or an import: compare the rows"
	copied := "a copy of the process, by a snapshot of its machine or a fork"
	restored := "a store that was restored, or lost writes, without snowkey workers fence"
	elsewhere := "programs with leases in another namespace, table or store, for the same tables"
	var all []string
	switch {
	case !leased:
		all = []string{insert, fixed, "a clock that was set back while a process with a fixed number restarted", copied}
	case len(then) > 1:
		all = []string{"the claims above, which overlap: two namespaces for the same tables, or a store that lost writes", insert, fixed}
	case len(then) == 0 && len(spans) == 0:
		all = []string{fixed, elsewhere, insert}
	case len(then) == 0:
		all = []string{fixed, elsewhere, restored, insert}
	default:
		all = []string{insert, fixed, elsewhere, copied, restored}
	}
	text := "If another row wanted it, the likeliest first:"
	for i, cause := range all {
		text += fmt.Sprintf("\n%d. %s", i+1, cause)
	}
	return strings.TrimSpace(text)
}
