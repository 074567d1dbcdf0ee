package leasetest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A wrongRegister is a Memory with one mistake. A method that is nil is correct.
type wrongRegister struct {
	*leasetest.Memory
	read func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, workers []int64) (leasestore.View, error)
	make func(m *leasetest.Memory, ctx context.Context, s leasestore.Space) error
	swap func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error)

	caught string // a subtest that fails
}

func (r wrongRegister) Read(ctx context.Context, s leasestore.Space, workers []int64) (leasestore.View, error) {
	if r.read != nil {
		return r.read(r.Memory, ctx, s, workers)
	}
	return r.Memory.Read(ctx, s, workers)
}

func (r wrongRegister) Make(ctx context.Context, s leasestore.Space) error {
	if r.make != nil {
		return r.make(r.Memory, ctx, s)
	}
	return r.Memory.Make(ctx, s)
}

func (r wrongRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	if r.swap != nil {
		return r.swap(r.Memory, ctx, s, from, to)
	}
	return r.Memory.Swap(ctx, s, from, to)
}

// swapAs swaps if same, in place of the correct comparison, reports that the row is unchanged.
func swapAs(same func(row, from, to leasestore.Row) bool) func(*leasetest.Memory, context.Context, leasestore.Space, leasestore.Seen, leasestore.Row) (bool, error) {
	return func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
		v, err := m.Read(ctx, s, []int64{to.Worker})
		if err != nil {
			return false, err
		}
		if len(v.Rows) == 0 || !same(v.Rows[0].Row, from.Row, to) {
			return false, nil
		}
		return m.Swap(ctx, s, v.Rows[0], to)
	}
}

var wrongRegisters = map[string]wrongRegister{
	"right": {},
	"compares the epoch alone": {
		swap:   swapAs(func(row, from, _ leasestore.Row) bool { return row.Epoch == from.Epoch }),
		caught: "SwapComparesEveryField",
	},
	"compares the count of writes alone": {
		swap:   swapAs(func(row, from, _ leasestore.Row) bool { return row.Renewals == from.Renewals }),
		caught: "SwapComparesEveryField",
	},
	"takes a second swap for the first": {
		swap:   swapAs(func(row, from, to leasestore.Row) bool { return row == from || row == to }),
		caught: "SwapThatComesTwiceIsDoneOnce",
	},
	"swaps whatever is there": {
		swap:   swapAs(func(_, _, _ leasestore.Row) bool { return true }),
		caught: "SwapDoneLateHarmsNobody",
	},
	"swaps under any layout": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			s.Layout = "epoch 2020-01-01T00:00:00Z, unit 1ms, bits 41/5/5/12"
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapComparesTheLayout",
	},
	"takes a second swap back, and says that it is done": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			if v, err := m.Read(ctx, s, []int64{to.Worker}); err == nil && len(v.Rows) > 0 && v.Rows[0].Row == to {
				return m.Swap(ctx, s, v.Rows[0], from.Row)
			}
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapDoneTwiceHarmsNobody",
	},
	"takes a swap whose answer was lost back when it is asked again": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			if v, err := m.Read(ctx, s, []int64{to.Worker}); err == nil && len(v.Rows) > 0 && v.Rows[0].Row == to {
				return m.Swap(ctx, s, v.Rows[0], from.Row)
			}
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapWhoseAnswerIsLostHarmsNobody",
	},
	"calls a swap refused whose answer was late": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			done, err := m.Swap(ctx, s, from, to)
			if _, limited := ctx.Deadline(); limited && err == nil {
				<-ctx.Done()
				return false, nil
			}
			return done, err
		},
		caught: "SwapAnsweredLateIsUnknown",
	},
	"calls a swap done whose answer never came": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			if _, limited := ctx.Deadline(); limited {
				<-ctx.Done()
				return true, nil
			}
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapAnsweredLateIsUnknown",
	},
	"says that each claim is done": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			if from.Row.Epoch < to.Epoch && to.Owner != "" {
				return true, nil
			}
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapLostHarmsNobody",
	},
	"writes the row of a swap that comes late": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			done, err := m.Swap(ctx, s, from, to)
			if err == nil && !done && ctx.Done() == nil { // the caller has stopped waiting
				m.Set(s, to)
			}
			return done, err
		},
		caught: "SwapDoneLateHarmsNobody",
	},
	"makes a row that is missing": {
		make: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space) error {
			err := m.Make(ctx, s)
			for worker := range s.Workers {
				if v, _ := m.Read(ctx, s, []int64{worker}); len(v.Rows) == 0 {
					m.Set(s, leasestore.Row{Worker: worker})
				}
			}
			return err
		},
		caught: "SwapOfAMissingRowIsRefused",
	},
	"forgets the holder's name": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			to.Holder = ""
			return m.Swap(ctx, s, from, to)
		},
		caught: "SwapWritesEveryField",
	},
	"records a swap that it has refused": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			done, err := m.Swap(ctx, s, from, to)
			if v, _ := m.Read(ctx, s, []int64{to.Worker}); !done && from.Record != "" && len(v.Rows) == 1 {
				v.Rows[0].Record = from.Record
				_, _ = m.Swap(ctx, s, v.Rows[0], v.Rows[0].Row)
			}
			return done, err
		},
		caught: "RecordsAreKept",
	},
	"keeps no time after the year 9999": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			to.Until = min(to.Until, 253_402_300_799_999)
			return m.Swap(ctx, s, from, to)
		},
		caught: "RetirementThatIsRepeatedIsDone",
	},
	"reads all rows, whichever it is asked for": {
		read: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, _ []int64) (leasestore.View, error) {
			return m.Read(ctx, s, nil)
		},
		caught: "ReadShowsTheRowsThatAreAskedFor",
	},
	"writes although its context has ended": {
		swap: func(m *leasetest.Memory, ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
			done, err := m.Swap(context.WithoutCancel(ctx), s, from, to)
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return done, err
		},
		caught: "DoneContextSwapsNothing",
	},
}

// A child process runs the suite over one of them.
func TestRegisterVariant(t *testing.T) {
	name := os.Getenv("LEASETEST_REGISTER")
	if name == "" {
		name = "right"
	}
	leasetest.RunRegister(t, func(*testing.T) leasetest.RegisterHarness {
		r := wrongRegisters[name]
		r.Memory = &leasetest.Memory{}
		return leasetest.RegisterHarness{
			Open:   func(*testing.T) leasestore.Register { return r },
			Delete: func(_ *testing.T, s leasestore.Space, worker int64) { r.Memory.Delete(s, worker) },
		}
	})
}

func TestSuiteCatchesEveryWrongRegister(t *testing.T) {
	failed := regexp.MustCompile(`--- FAIL: TestRegisterVariant/(\w+)`)
	for name, r := range wrongRegisters {
		if r.caught == "" {
			continue
		}
		child := exec.Command(os.Args[0], "-test.run=^TestRegisterVariant$", "-test.v")
		child.Env = append(os.Environ(), "LEASETEST_REGISTER="+name)
		out, err := child.CombinedOutput()
		var names []string
		for _, match := range failed.FindAllSubmatch(out, -1) {
			names = append(names, string(match[1]))
		}
		if err == nil || !slices.Contains(names, r.caught) {
			t.Errorf("a register that %s fails %q, %v; want %s among them\n%s", name, names, err, r.caught, out)
		}
	}
}
