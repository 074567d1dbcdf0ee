package leasetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// The oracle is package lease: its functions define what an operation does to a row, and a
// store's answers and rows must agree with them in every field.

// definite reports whether err means that the operation was not performed.
func definite(err error) bool {
	return errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLost) ||
		errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

// errHeld is the error of apply for a row that is not free.
var errHeld = errors.New("the row is not free")

// apply returns row as a request performed at now leaves it, or the refusal.
func apply(request any, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
	switch r := request.(type) {
	case leasestore.Claim:
		if next, ok := r.Apply(row, now); ok {
			return next, nil
		}
		return leasestore.Row{}, errHeld
	case leasestore.Renewal:
		return r.Apply(row, now)
	case leasestore.Release:
		return r.Apply(row)
	case leasestore.Fencing:
		return r.Apply(row), nil
	}
	return leasestore.Row{}, fmt.Errorf("a %T changes no row", request)
}

// A trial is an operation that was performed while nothing else happened.
type trial struct {
	request any
	space   leasestore.Space
	worker  int64 // of a renewal or release
	gone    error // if no such row exists: the error of the request

	rows             []leasestore.Row  // before it
	earliest, latest leasestore.Millis // the store's clock was within these
	reply            leasestore.Reply
	err              error
}

func newTrial(request any) trial {
	switch r := request.(type) {
	case leasestore.Claim:
		return trial{request: r, space: r.Space}
	case leasestore.Renewal:
		return trial{request: r, space: r.Space, worker: r.Worker, gone: r.Lost(leasestore.Gone)}
	case leasestore.Release:
		return trial{request: r, space: r.Space, worker: r.Worker, gone: r.Lost(leasestore.Gone)}
	default:
		return trial{request: r, space: r.(leasestore.Fencing).Space}
	}
}

// do performs one operation by itself. It fails if the reply, the error or any row of the space
// differs from what package lease defines.
func (h handle) do(request any) (leasestore.Reply, error) {
	s := h.s
	s.Helper()
	t := newTrial(request)
	before, earliest := s.rows(t.space)
	t.reply, t.err = h.call(request)
	after, latest := s.rows(t.space)
	t.earliest, t.latest, s.last = earliest-slack, latest+slack, after
	at := t.clock()

	did := describe(request, t.reply, t.err)
	t.rows = slices.Clone(before)
	if !s.made[keyOf(t.space)] {
		if len(before) > 0 {
			s.Errorf("Rows before the first claim in %+v = %+v; want none", t.space, before)
		}
		if t.gone == nil {
			t.rows = newRows(t.space)
		}
	}
	if at < t.earliest || at > t.latest {
		s.Errorf("%s; want the store's clock during the call, %d..%d", did, t.earliest, t.latest)
	}
	refusal := s.refusal(t, at)
	if refusal != nil || t.err != nil {
		if !sameError(t.err, refusal) {
			s.Errorf("%s, of %+v; want error %v", did, before, refusal)
		}
		if !slices.Equal(after, before) {
			s.Errorf("after %s, Rows = %+v; want as before, %+v", did, after, before)
		}
		return t.reply, t.err
	}
	s.made[keyOf(t.space)] = true
	if _, ok := s.layouts[t.space.Namespace]; !ok {
		s.layouts[t.space.Namespace] = t.space.Layout
	}
	if want := t.done(); want != "" {
		s.Errorf("%s, of %+v; want %s", did, before, want)
	}
	if !slices.Equal(after, t.rows) {
		s.Errorf("after %s, Rows = %+v; want %+v", did, after, t.rows)
	}
	return t.reply, t.err
}

// clock returns the store's clock at the time of t, if the reply or the error shows it, and
// otherwise the latest possible time, because rows lapse as time goes by.
func (t trial) clock() leasestore.Millis {
	var full *leasestore.NoFreeWorkerError
	var skew *leasestore.ClockSkewError
	switch {
	case t.err == nil && t.reply != leasestore.Reply{}:
		return t.reply.Now
	case errors.As(t.err, &full) && !full.Earliest.IsZero():
		return leasestore.MillisOf(full.Earliest.Add(-full.Wait))
	case errors.As(t.err, &skew):
		return leasestore.MillisOf(skew.Store)
	}
	return t.latest
}

// refusal returns the error that t must have, or nil if it must succeed.
func (s *suite) refusal(t trial, at leasestore.Millis) error {
	if t.gone != nil {
		i := t.index(t.worker)
		if i < 0 {
			return t.gone
		}
		_, err := apply(t.request, t.rows[i], at)
		return err
	}
	c, claims := t.request.(leasestore.Claim)
	if claims {
		if err := c.Check(at); err != nil {
			return err
		}
	}
	if stored, ok := s.layouts[t.space.Namespace]; ok && stored != t.space.Layout {
		return &leasestore.LayoutError{Namespace: t.space.Namespace, Stored: stored, Own: t.space.Layout}
	}
	if claims {
		_, err := c.Choose(t.rows, at, func(int) int { return 0 })
		return err
	}
	return nil
}

// index returns the position of a worker's row, or -1 if there is none.
func (t trial) index(worker int64) int {
	return slices.IndexFunc(t.rows, func(r leasestore.Row) bool { return r.Worker == worker })
}

// done sets t.rows to what they must be after t has succeeded. It returns what the reply should
// have been, or "" if it is right.
func (t trial) done() (want string) {
	worker := t.worker
	switch r := t.request.(type) {
	case leasestore.Fencing:
		for i, row := range t.rows {
			t.rows[i] = r.Apply(row)
		}
		return ""
	case leasestore.Claim:
		worker = t.reply.Row.Worker
	}
	i := t.index(worker)
	if i < 0 {
		return "a row of the space"
	}
	before := t.rows[i]
	next, err := apply(t.request, before, t.reply.Now)
	if err != nil {
		return "another row: " + err.Error()
	}
	t.rows[i] = next
	reply := leasestore.Reply{Row: next, Before: before.Until, Now: t.reply.Now}
	if _, ok := t.request.(leasestore.Release); ok {
		return "" // which has no reply
	}
	if t.reply != reply {
		return fmt.Sprintf("%+v", reply)
	}
	return ""
}

// sameError reports whether err is, or wraps, an error of the type of want that equals it.
func sameError(err, want error) bool {
	if err == nil || want == nil {
		return err == nil && want == nil
	}
	found := reflect.New(reflect.TypeOf(want))
	if !errors.As(err, found.Interface()) {
		return false
	}
	got := found.Elem().Interface()
	switch got := got.(type) {
	case *leasestore.NoFreeWorkerError:
		slices.Sort(got.Ahead)
	case *leasestore.ClockSkewError: // a store may add to Local the time for which the claim has waited
		var own *leasestore.ClockSkewError
		if errors.As(want, &own) && got.Local.Sub(own.Local).Abs() < 10*callTimeout {
			own.Local = got.Local
		}
	}
	return reflect.DeepEqual(got, want)
}
