package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// reportsIn returns the lines of a replica.
func reportsIn(t *testing.T, lines *bytes.Buffer) []report {
	t.Helper()
	var all []report
	for decoder := json.NewDecoder(bytes.NewReader(lines.Bytes())); decoder.More(); {
		var r report
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("decoding %q: %v", lines, err)
		}
		all = append(all, r)
	}
	return all
}

// A releasing store keeps what was reported when it was asked to release.
type releasing struct {
	lease.Store
	lines  *bytes.Buffer
	before string
	end    leasestore.Millis
}

func (s *releasing) Release(ctx context.Context, r leasestore.Release) error {
	s.before, s.end = s.lines.String(), r.End
	return s.Store.Release(ctx, r)
}

func TestJournalReportsAReservationBeforeTheLeaseUsesItAndItsEndBeforeAnotherCan(t *testing.T) {
	var lines bytes.Buffer
	store := &releasing{Store: leasetest.NewMemory(nil), lines: &lines}
	l, err := lease.Acquire(t.Context(), journal{Store: store, to: newReporter(&lines)}, lease.Config{
		Namespace: "test",
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	claimed := reportsIn(t, &lines)
	if got := l.Status(); len(claimed) != 1 || claimed[0].What != reserved || claimed[0].Worker != got.Worker ||
		claimed[0].Epoch != got.Epoch || claimed[0].Until != leasestore.MillisOf(got.Limit) || claimed[0].From == 0 {
		t.Fatalf("reports after Acquire = %+v; want the one reservation of %+v", claimed, got)
	}
	keys, err := core.New(core.Config{Worker: l})
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.Next(t.Context())
	if err != nil || !covered([]reservation{claimed[0].reservation}, id) {
		t.Errorf("Next() = %s (%s), %v; want an ID in %+v", id, decoded(id), err, claimed[0])
	}
	if err := keys.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines.Reset()
	lines.WriteString(store.before)
	all := reportsIn(t, &lines)
	if last := all[len(all)-1]; len(all) != 2 || last.Until != store.end || last.Epoch != claimed[0].Epoch || last.Until >= claimed[0].Until {
		t.Errorf("reports before Release = %+v; want a second one with the end %d, earlier than reserved", all, store.end)
	}
}

func TestJournalReportsRenewals(t *testing.T) {
	var lines bytes.Buffer
	store := leasetest.NewMemory(nil)
	j := journal{Store: store, to: newReporter(&lines)}
	space := leasestore.Space{Namespace: "test", Workers: 4, Layout: "any"}
	claim := leasestore.Claim{Space: space, Owner: "a", Nonce: "b", Window: 1000, Now: leasestore.MillisOf(noon), Skew: 1 << 60}
	reply, err := j.Claim(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	row := reply.Row
	reply, err = j.Renew(t.Context(), leasestore.Renewal{
		Space: space, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce},
		Nonce: "c", Until: row.Until, Window: 5000, Now: claim.Now, Skew: 1 << 60,
	})
	if err != nil {
		t.Fatal(err)
	}
	all := reportsIn(t, &lines)
	want := reservation{Worker: row.Worker, Epoch: row.Epoch, Until: reply.Row.Until}
	if len(all) != 2 || all[1].What != reserved || all[1].reservation != want {
		t.Errorf("reports = %+v; want a second one, %+v", all, want)
	}
}

func TestAReservationThatCannotBeReportedIsNotUsed(t *testing.T) {
	j := journal{Store: leasetest.NewMemory(nil), to: newReporter(closed{})}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := lease.Acquire(ctx, j, lease.Config{Namespace: "test", Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Acquire() = %v; want %v", err, fs.ErrClosed)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestAReportKeepsEveryBitOfAnID(t *testing.T) {
	var lines bytes.Buffer
	sent := report{What: wrote}
	sent.IDs = append(sent.IDs, id(t, 7, 42), 1<<63-1)
	if err := newReporter(&lines).send(sent); err != nil {
		t.Fatal(err)
	}
	got := reportsIn(t, &lines)
	if len(got) != 1 || len(got[0].IDs) != 2 || got[0].IDs[0] != sent.IDs[0] || got[0].IDs[1] != sent.IDs[1] {
		t.Errorf("%s is read as %+v; want %+v", &lines, got, sent)
	}
}
