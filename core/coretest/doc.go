// Package coretest helps to test programs that use snowkey. It has keys that are the same
// in each run, a clock that a test moves, and a store of leases that fails when told.
//
//	clock := coretest.NewClock(monday)
//	gen := coretest.NewGenerator(coretest.Config{Now: clock.Now})
//	err := db.Use(gormplugin.New(gen)) // or sqlxhelper.New(gen)
//
// What a test may need:
//
//   - [Generator] is a source of keys for gormplugin, sqlxhelper and your own code. Its
//     first key is always 132271570944000000, so golden files stay equal. With Config.First
//     it is any other, such as 1.
//     [Generator.Fail] makes it return an error.
//   - [Clock] says what time it is. With it a test makes the orders of last Monday.
//   - [Store] is a [lease.Store] in memory. It can be unreachable, slow, lose replies, or
//     end the leases. Behind it a test has a real [core.Generator] and a real lease.
//   - [AnyKey], [KeyBetween] and [Generator.Key] are arguments for go-sqlmock.
//
// The real generator has no clock to set, since its promise depends on the clock. A test
// that needs both runs in a bubble of [testing/synctest], where time is simulated. The
// time there begins in the year 2000, which is before the epoch of most layouts. Sleep to
// [Start] first; that takes no time:
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
// Keys of a [Generator] repeat in the next process: never store them in a database that
// is kept. The package imports leasetest, and that imports testing. Import it in files
// that end in _test.go only. This repository's own tests check that no other package
// imports it.
package coretest
