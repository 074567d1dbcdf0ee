// Package answers has the schedules that break the well-known ways to make keys. Each is
// a test, named after what goes wrong. docs/answers.md takes the ways in turn and names
// the tests.
//
// Everything is played in memory, step by step, with a clock that the test sets. What
// others do is written anew after its description, and only as far as the schedule needs.
// Each test shows that the repair beside it holds on the same schedule.
package answers
