// Package alternatives has schedules that break other ways to make keys, for docs/alternatives.md,
// which names the tests.
//
// The tests here need no server and no library of others. What they cannot run is written anew
// after its description, as far as the schedule needs, with a clock that the test sets. Libraries
// of others run in internal/proof/lab/bench, and servers in internal/proof/servers/suites,
// internal/proof/robust/fire and core/lease/redislease.
//
// Each test shows that the repair beside it holds on the same schedule.
package alternatives
