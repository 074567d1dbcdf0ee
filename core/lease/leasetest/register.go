package leasetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A RegisterHarness is a register under test.
type RegisterHarness struct {
	// Open returns another handle on the register, as Harness.Open does.
	Open func(t *testing.T) leasestore.Register

	// Namespace begins the name of every namespace, as Harness.Namespace does.
	Namespace string

	// Delete deletes a row by hand. If it is nil, the subtests that need it are skipped.
	Delete func(t *testing.T, s leasestore.Space, worker int64)
}

// RunRegister certifies a register, and the store that [leasestore.FromRegister] makes of it when the
// answers to its swaps are lost or late, or when swaps are performed late, twice or never. Each
// claim about it is a subtest of t, which calls open for an empty register. Run certifies the
// Store over it.
func RunRegister(t *testing.T, open func(t *testing.T) RegisterHarness) {
	t.Helper()
	for _, claim := range registerClaims {
		t.Run(claim.name, func(t *testing.T) {
			h := open(t)
			r := &registerSuite{T: t, h: h, space: leasestore.Space{Namespace: h.Namespace + "register", Datacenter: 3, Workers: 8, Layout: layout}}
			r.a, r.b = h.Open(t), h.Open(t)
			claim.check(r)
		})
	}
}

var registerClaims = []struct {
	name  string
	check func(r *registerSuite)
}{
	{"MakeMakesAllRowsOnce", makeMakesAllRowsOnce},
	{"MakeKeepsTheFirstLayout", makeKeepsTheFirstLayout},
	{"SwapWritesEveryField", swapWritesEveryField},
	{"SwapComparesEveryField", swapComparesEveryField},
	{"SwapComparesTheLayout", swapComparesTheLayout},
	{"SwapThatComesTwiceIsDoneOnce", swapThatComesTwiceIsDoneOnce},
	{"OneOfIdenticalSwapsIsDone", oneOfIdenticalSwapsIsDone},
	{"SwapOfAMissingRowIsRefused", swapOfAMissingRowIsRefused},
	{"ReadShowsEachSwapAtOnce", readShowsEachSwapAtOnce},
	{"ReadShowsTheRowsThatAreAskedFor", readShowsTheRowsThatAreAskedFor},
	{"FindShowsAFreeRow", findShowsAFreeRow},
	{"DoneContextSwapsNothing", doneContextSwapsNothing},
	{"SwapAnsweredLateIsUnknown", swapAnsweredLateIsUnknown},
	{"SwapDoneLateHarmsNobody", faultHarmsNobody(doneLate)},
	{"SwapDoneTwiceHarmsNobody", faultHarmsNobody(doneTwice)},
	{"SwapLostHarmsNobody", faultHarmsNobody(lost)},
	{"SwapWhoseAnswerIsLostHarmsNobody", faultHarmsNobody(answerLost)},
	{"RetirementThatIsRepeatedIsDone", retirementThatIsRepeatedIsDone},
	{"RecordsAreKept", recordsAreKept}, // history.go
}

// A registerSuite is the state of one subtest.
type registerSuite struct {
	*testing.T
	h     RegisterHarness
	a, b  leasestore.Register
	space leasestore.Space
}

// read returns the view of some rows through a handle.
func (r *registerSuite) read(from leasestore.Register, workers []int64) leasestore.View {
	r.Helper()
	v, err := from.Read(r.Context(), r.space, workers)
	if err != nil {
		r.Fatalf("Read(%v) = error %v; want rows", workers, err)
	}
	return v
}

// seen returns a row of the space, which it makes.
func (r *registerSuite) seen(worker int64) leasestore.Seen {
	r.Helper()
	if err := r.a.Make(r.Context(), r.space); err != nil {
		r.Fatalf("Make(%+v) = error %v; want the rows made", r.space, err)
	}
	v := r.read(r.a, []int64{worker})
	if len(v.Rows) != 1 || v.Rows[0].Row.Worker != worker {
		r.Fatalf("Read(worker %d) = %+v; want its row", worker, v)
	}
	return v.Rows[0]
}

func (r *registerSuite) swap(by leasestore.Register, from leasestore.Seen, to leasestore.Row, want bool) {
	r.Helper()
	if done, err := by.Swap(r.Context(), r.space, from, to); done != want || err != nil {
		r.Errorf("Swap(%+v, %+v) = %t, error %v; want %t", from.Row, to, done, err, want)
	}
}

// wantRow fails unless the row is stored.
func (r *registerSuite) wantRow(after string, want leasestore.Row) {
	r.Helper()
	if got := r.read(r.b, []int64{want.Worker}); len(got.Rows) != 1 || got.Rows[0].Row != want {
		r.Errorf("after %s, Read = %+v; want %+v", after, got.Rows, want)
	}
}

// held returns row as a write that changes every field leaves it.
func held(row leasestore.Row) leasestore.Row {
	return leasestore.Row{
		Worker: row.Worker, Epoch: row.Epoch + 1, Owner: token(), Nonce: token(),
		Until: row.Until + 1<<41, Renewals: row.Renewals + 1, Holder: `host "7", of a, b`,
	}
}

func makeMakesAllRowsOnce(r *registerSuite) {
	for _, look := range []func() (leasestore.View, error){
		func() (leasestore.View, error) { return r.a.Read(r.Context(), r.space, nil) },
		func() (leasestore.View, error) {
			return r.a.Find(r.Context(), r.space, leasestore.Hint{Owner: token()})
		},
	} {
		if v, err := look(); err != nil || v.Made || len(v.Rows) > 0 || v.Layout != "" {
			r.Errorf("before Make: %+v, error %v; want nothing there", v, err)
		}
	}
	seen := r.seen(5)
	v := r.read(r.b, nil)
	for i, got := range v.Rows {
		if want := (leasestore.Row{Worker: int64(i)}); got.Row != want {
			r.Errorf("row %d after Make = %+v; want %+v", i, got.Row, want)
		}
	}
	if !v.Made || v.Layout != layout || len(v.Rows) != int(r.space.Workers) {
		r.Errorf("Read after Make = %+v; want it made, with the layout and %d rows", v, r.space.Workers)
	}
	to := held(seen.Row)
	r.swap(r.a, seen, to, true)
	if err := r.b.Make(r.Context(), r.space); err != nil {
		r.Errorf("Make of what is there = error %v; want nil", err)
	}
	r.wantRow("a second Make", to)
}

func makeKeepsTheFirstLayout(r *registerSuite) {
	r.seen(0)
	other := r.space
	other.Layout = otherLayout
	_ = r.b.Make(r.Context(), other) // which may return an error or not
	if v := r.read(r.b, nil); v.Layout != layout || len(v.Rows) != int(r.space.Workers) {
		r.Errorf("Read after Make with another layout = %+v; want layout %q", v, layout)
	}
}

func swapWritesEveryField(r *registerSuite) {
	seen := r.seen(5)
	to := held(seen.Row)
	r.swap(r.a, seen, to, true)
	r.wantRow("Swap", to)
	given := to
	given.Owner, given.Holder, given.Until = "", "", 1 // which is lower
	given.Renewals++
	r.swap(r.b, r.seen(5), given, true)
	r.wantRow("Swap to a row that is nobody's", given)
	for _, other := range r.read(r.a, nil).Rows {
		if other.Row.Worker != 5 && other.Row != (leasestore.Row{Worker: other.Row.Worker}) {
			r.Errorf("after Swap of row 5, another is %+v; want it as made", other.Row)
		}
	}
}

// swapComparesEveryField sends a late request to a row in which a single field has changed.
func swapComparesEveryField(r *registerSuite) {
	first := r.seen(5)
	r.swap(r.a, first, held(first.Row), true)
	for field, change := range map[string]func(row *leasestore.Row){
		"Epoch":    func(row *leasestore.Row) { row.Epoch++ },
		"Owner":    func(row *leasestore.Row) { row.Owner = token() },
		"Nonce":    func(row *leasestore.Row) { row.Nonce = token() },
		"Until":    func(row *leasestore.Row) { row.Until++ },
		"Renewals": func(row *leasestore.Row) { row.Renewals++ },
	} {
		seen := r.seen(5)
		to := seen.Row
		change(&to)
		r.swap(r.b, seen, to, true)
		late := held(seen.Row)
		r.swap(r.a, seen, late, false)
		r.wantRow("a late Swap of a row with another "+field, to)
	}
}

func swapComparesTheLayout(r *registerSuite) {
	seen := r.seen(5)
	other := r.space
	other.Layout = otherLayout
	if done, err := r.a.Swap(r.Context(), other, seen, held(seen.Row)); done || err != nil {
		r.Errorf("Swap under another layout = %t, error %v; want false", done, err)
	}
	r.wantRow("a Swap under another layout", seen.Row)
}

func swapThatComesTwiceIsDoneOnce(r *registerSuite) {
	seen := r.seen(5)
	to := held(seen.Row)
	r.swap(r.a, seen, to, true)
	r.swap(r.b, seen, to, false) // perhaps from a copy of the process
	r.wantRow("a Swap that came twice", to)
}

func oneOfIdenticalSwapsIsDone(r *registerSuite) {
	const copies, rounds = 6, 8
	var handles []leasestore.Register
	for range copies {
		handles = append(handles, r.h.Open(r.T))
	}
	for range rounds {
		seen := r.seen(5)
		to := held(seen.Row)
		done, errs := make([]bool, copies), make([]error, copies)
		atOnce(copies, func(i int) { done[i], errs[i] = handles[i].Swap(r.Context(), r.space, seen, to) })
		n := 0
		for i := range done {
			if done[i] {
				n++
			}
		}
		if n != 1 {
			r.Errorf("%d of %d identical swaps at once are done, errors %v; want 1", n, copies, errs)
		}
		r.wantRow("identical swaps", to)
	}
}

func swapOfAMissingRowIsRefused(r *registerSuite) {
	if r.h.Delete == nil {
		r.Skip("SKIPPED: RegisterHarness.Delete is not set")
	}
	seen, fresh := r.seen(5), r.seen(6)
	r.swap(r.a, seen, held(seen.Row), true)
	seen = r.seen(5)
	r.h.Delete(r.T, r.space, 5)
	r.swap(r.a, seen, held(seen.Row), false)
	if err := r.a.Make(r.Context(), r.space); err != nil {
		r.Errorf("Make = error %v; want nil", err)
	}
	if v := r.read(r.b, []int64{5, 6}); len(v.Rows) != 1 || v.Rows[0].Row != fresh.Row {
		r.Errorf("Read after row 5 was deleted = %+v; want row 6 alone", v)
	}
}

func readShowsEachSwapAtOnce(r *registerSuite) {
	for i := range 20 {
		by, other := r.a, r.b
		if i%2 == 0 {
			by, other = r.b, r.a
		}
		seen := r.seen(5)
		to := held(seen.Row)
		r.swap(by, seen, to, true)
		if v := r.read(other, []int64{5}); len(v.Rows) != 1 || v.Rows[0].Row != to {
			r.Errorf("Read after a Swap by another = %+v; want %+v", v.Rows, to)
		}
	}
}

func readShowsTheRowsThatAreAskedFor(r *registerSuite) {
	r.seen(0)
	for _, workers := range [][]int64{{0}, {7}, {1, 3, 5}, {0, 1, 2, 3, 4, 5, 6, 7}, {6, 8, 99}} {
		var want, got []int64
		for _, worker := range workers {
			if worker < r.space.Workers {
				want = append(want, worker)
			}
		}
		v := r.read(r.a, workers)
		for _, seen := range v.Rows {
			got = append(got, seen.Row.Worker)
		}
		if !slices.Equal(got, want) || !v.Made || v.Layout != layout {
			r.Errorf("Read(%d) = %+v; want the rows of %d, the layout, and that they are made", workers, v, want)
		}
	}
}

// findShowsAFreeRow: all rows but one are held, which Find, or eventually Read, must show.
func findShowsAFreeRow(r *registerSuite) {
	r.seen(0)
	for worker := range r.space.Workers {
		if worker != 4 {
			seen := r.seen(worker)
			r.swap(r.a, seen, held(seen.Row), true)
		}
	}
	c := leasestore.Claim{Space: r.space, Owner: token(), Nonce: token(), Window: minute, Skew: 10 * minute}
	c.Now = r.read(r.a, []int64{0}).Now
	if reply, err := leasestore.FromRegister(r.b).Claim(r.Context(), c); err != nil || reply.Row.Worker != 4 {
		r.Errorf("Claim when row 4 alone is free = %+v, error %v; want it", reply, err)
	}
}

func doneContextSwapsNothing(r *registerSuite) {
	seen := r.seen(5)
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	for name, call := range map[string]func() error{
		"Read": func() error { _, err := r.a.Read(ctx, r.space, nil); return err },
		"Find": func() error { _, err := r.a.Find(ctx, r.space, leasestore.Hint{}); return err },
		"Make": func() error { return r.a.Make(ctx, r.space) },
		"Swap": func() error { _, err := r.a.Swap(ctx, r.space, seen, held(seen.Row)); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			r.Errorf("%s with a context that is done = error %v; want it to match context.Canceled", name, err)
		}
	}
	r.wantRow("a Swap with a context that is done", seen.Row)
}

// swapAnsweredLateIsUnknown ends the context of swaps before, while or after the register
// answers. A register that does not know the outcome of the swap by then returns an error. An
// answer without an error must be true even if it comes late, because a holder that is told
// false forgets a nonce that the row may have.
func swapAnsweredLateIsUnknown(r *registerSuite) {
	seen, took := r.seen(2), time.Millisecond
	for i := range 60 {
		to := held(seen.Row)
		ctx, cancel := context.WithTimeout(r.Context(), took*time.Duration(i%6)/3)
		began := time.Now()
		done, err := r.a.Swap(ctx, r.space, seen, to)
		if err == nil {
			took = time.Since(began)
		}
		cancel()
		now := r.seen(2)
		if err == nil && done != (now.Row == to) {
			r.Fatalf("Swap with a context that ends meanwhile = %v, nil, and then the row is %+v; want true if and only if it is %+v", done, now.Row, to)
		}
		seen = now
	}
}

// A faulty is a register whose next swap has a fault.
type faulty struct {
	leasestore.Register
	fault func(f *faulty, swap func() (bool, error)) (bool, error)
	late  []func() (bool, error) // swaps still to be performed
}

var errAnswer = errors.New("leasetest: no answer")

func (f *faulty) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	swap := func() (bool, error) { return f.Register.Swap(context.WithoutCancel(ctx), s, from, to) }
	if fault := f.fault; fault != nil {
		f.fault = nil
		return fault(f, swap)
	}
	return swap()
}

func doneLate(f *faulty, swap func() (bool, error)) (bool, error) {
	f.late = append(f.late, swap)
	return false, errAnswer
}

func doneTwice(_ *faulty, swap func() (bool, error)) (bool, error) {
	_, _ = swap()
	return swap()
}

func lost(*faulty, func() (bool, error)) (bool, error) { return false, errAnswer }

func answerLost(_ *faulty, swap func() (bool, error)) (bool, error) {
	_, _ = swap()
	return false, errAnswer
}

// faultHarmsNobody sends a claim, a renewal and a release whose swap has a fault. At any moment
// there must be at most one holder, which can continue, and a late swap must change nothing.
func faultHarmsNobody(fault func(*faulty, func() (bool, error)) (bool, error)) func(r *registerSuite) {
	return func(r *registerSuite) {
		r.space.Workers = 2
		r.seen(0)
		clock := r.read(r.a, []int64{0}).Now
		f := &faulty{Register: r.a}
		bad, good := leasestore.FromRegister(f), leasestore.FromRegister(r.b)
		late := func(after string) {
			r.Helper()
			before := r.read(r.b, nil)
			for _, swap := range f.late {
				if done, _ := swap(); done {
					r.Errorf("%s: a late swap is done; want it refused", after)
				}
			}
			f.late = nil
			for i, seen := range r.read(r.b, nil).Rows {
				if seen.Row != before.Rows[i].Row {
					r.Errorf("%s: a late swap has made %+v of %+v", after, seen.Row, before.Rows[i].Row)
				}
			}
		}
		newClaim := func() leasestore.Claim {
			return leasestore.Claim{Space: r.space, Owner: token(), Nonce: token(), Window: minute, Now: clock, Skew: 10 * minute}
		}

		// A claim finds out whether it was performed, or uses up one row at most.
		f.fault = fault
		c := newClaim()
		reply, err := bad.Claim(r.Context(), c)
		if err != nil && definite(err) {
			r.Fatalf("Claim whose swap has a fault = error %v; want none that says that it was not done", err)
		}
		late("Claim")
		rows, _, _ := good.Rows(r.Context(), r.space)
		rows = slices.DeleteFunc(rows, func(row leasestore.Row) bool { return row.Owner == "" })
		if len(rows) > 1 || err == nil && (len(rows) != 1 || rows[0] != reply.Row) {
			r.Errorf("rows after Claim = %+v, error %v: %+v; want one", reply, err, rows)
		}
		if err != nil {
			c = newClaim()
			if reply, err = good.Claim(r.Context(), c); err != nil {
				r.Fatalf("the next Claim = error %v; want a row", err)
			}
		}
		l := won(c, reply)

		// A holder that does not know whether it has renewed can renew.
		renewal := func() leasestore.Renewal {
			return leasestore.Renewal{Space: r.space, Worker: l.worker, Epoch: l.epoch, Owner: l.owner, Known: slices.Clone(l.known),
				Nonce: token(), Next: clock, Until: l.until, Window: minute, Now: clock, Skew: 10 * minute}
		}
		f.fault = fault
		first := renewal()
		if reply, err := bad.Renew(r.Context(), first); err == nil {
			l.confirmed(first, reply)
		} else if definite(err) {
			r.Fatalf("Renew whose swap has a fault = error %v; want none that says that it was not done", err)
		} else {
			l.known = append(l.known, first.Nonce)
		}
		second := renewal()
		reply, err = good.Renew(r.Context(), second)
		if err != nil {
			r.Fatalf("Renew after that = error %v; want it done", err)
		}
		l.confirmed(second, reply)
		late("Renew")

		// A release that is performed late gives back nothing that was claimed since.
		f.fault = fault
		if err := bad.Release(r.Context(), l.giveBack(l.from)); err != nil && definite(err) {
			r.Errorf("Release whose swap has a fault = error %v; want none that says that it was not done", err)
		}
		third := renewal()
		if reply, err := good.Renew(r.Context(), third); err == nil { // it was not done
			l.confirmed(third, reply)
			late("Release")
		} else if !errors.Is(err, leasestore.ErrLost) {
			r.Errorf("Renew after a Release = error %v; want it done or lost", err)
		}
	}
}

// retirementThatIsRepeatedIsDone retires a number by a swap with each fault. The next attempt must
// find it retired or retire it, after which a late swap changes nothing.
func retirementThatIsRepeatedIsDone(r *registerSuite) {
	r.seen(0)
	f := &faulty{Register: r.a}
	for worker, fault := range []func(*faulty, func() (bool, error)) (bool, error){doneLate, doneTwice, lost, answerLost} {
		retire := func(over leasestore.Register) error {
			_, err := leasestore.FromRegister(over).Claim(r.Context(), leasestore.Claim{
				Space: r.space, Only: []int64{int64(worker)}, Owner: token(), Nonce: token(), Retire: true,
				Window: minute, Now: r.read(r.a, []int64{0}).Now, Skew: 10 * minute,
			})
			return err
		}
		f.fault = fault
		if err := retire(f); err != nil && definite(err) {
			r.Errorf("Claim with Retire whose swap has a fault = error %v; want none that says that it was not done", err)
		}
		var none *leasestore.NoFreeWorkerError
		if err := retire(r.b); err != nil && (!errors.As(err, &none) || none.Retired != 1) {
			r.Errorf("the next Claim with Retire = error %v; want it done, or the number retired", err)
		}
		row := r.seen(int64(worker)).Row
		for _, swap := range f.late {
			_, _ = swap()
		}
		f.late = nil
		if now := r.seen(int64(worker)).Row; !row.Retired() || now != row {
			r.Errorf("row of a number that was retired twice = %+v, after a late swap %+v; want it retired, and as it was", row, now)
		}
	}
}
