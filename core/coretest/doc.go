// Package coretest helps to test programs that use snowkey. It provides keys that are the same
// in every run, a clock that the test moves, and a lease store that fails on demand.
//
//	clock := coretest.NewClock(monday)
//	gen := coretest.NewGenerator(coretest.Config{Now: clock.Now})
//	err := db.Use(gormplugin.New(gen)) // or sqlxhelper.New(gen)
//
// The parts:
//
//   - [Generator] is a source of keys for gormplugin, sqlxhelper and your own code. Its first
//     key is always 132271570944000000, which keeps golden files stable; Config.First selects
//     another one, such as 1. [Generator.Fail] makes it return an error.
//   - [Clock] tells a Generator the time, for a test that needs the orders of last Monday.
//   - [Store] is a [lease.Store] in memory that can be unreachable or slow, lose its replies,
//     or revoke the leases, for a test with a real [core.Generator] and a real lease.
//   - [AnyKey], [KeyBetween] and [Generator.Key] are arguments for go-sqlmock.
//
// A core.Generator has no clock to set, because its promise depends on the real one. Run a
// test that needs to move its time in a bubble of [testing/synctest], where time is simulated.
// A bubble begins in the year 2000, before the epoch of most layouts; sleeping until [Start]
// costs no real time:
//
//	synctest.Test(t, func(t *testing.T) {
//		time.Sleep(time.Until(coretest.Start()))
//		store := coretest.NewStore(nil)
//		worker, err := lease.Acquire(t.Context(), store, lease.Config{Namespace: store.Namespace()})
//		…
//		gen, err := core.New(core.Config{Worker: worker})
//		…
//	})
//
// # Only in tests
//
// Import the package only in files that end in _test.go, because it imports package testing.
// The keys of a [Generator] repeat in the next process, so never store them in a database that
// is kept.
//
// This package is stable.
package coretest
