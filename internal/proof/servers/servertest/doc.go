// Package servertest tells a test where its server is. All modules of this repository
// use it. The rules:
//
//   - An environment variable names the server. Without it, a default on this machine
//     does.
//   - If no server answers there, the test is skipped with a message. The other tests
//     still run.
//   - If the variable CI is set, to anything but "", "0" or "false", the test fails
//     instead. A skip there would hide a broken machine.
//   - MySQL has no default. Without its variable, its tests are skipped in CI too:
//     .ci/run gets a MySQL from a source that may not have it, and says so then.
//   - A value that is not an address fails the test everywhere. A skip would hide the
//     typing error.
//
// A server must accept a connection. Whether it is the right one, and lets the user in, shows in the first
// request of the test.
//
// No message of this package holds a DSN, which may contain a password. Messages name
// the variable and the address.
//
// A test that stops a server, or takes its data away, starts one of its own on a
// [Port]. [StartPostgreSQL] and [StartMariaDB] start one for a test that needs other settings.
//
// The package imports only the standard library, so it adds nothing to any go.mod. Its
// functions are safe for concurrent use. Call each from the goroutine of its test, as
// [testing.TB] demands.
package servertest
