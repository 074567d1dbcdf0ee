// Package servertest tells a test where its server is. It is the one home of
// the rule, for all modules of this repository:
//
//   - An environment variable names the server; without it, a default on this
//     machine does.
//   - A server that does not answer there skips the test aloud: whoever has no
//     PostgreSQL at hand can still run everything else.
//   - Where the variable CI is set, to anything but "", "0" or "false", the test
//     fails instead. A skip there would turn a broken machine into a green run.
//   - MySQL has no default, and is not in CI yet: where its variable is not set, its
//     tests are skipped aloud in CI as well.
//   - A value that is no address at all fails the test everywhere. Somebody
//     meant a server, and a skip would hide the typing error.
//
// What "answers" means differs. Redis must reply to PING and ZooKeeper to srvr,
// so that a stranger on the port is found out here and not in the middle of a
// test. PostgreSQL and MariaDB must accept a connection; that it is the right
// server, and lets the user in, is for the driver to say, in the test's own
// first statement.
//
// No message of this package holds a DSN: it may have a password in it. Messages
// name the variable and the address.
//
// A test that needs a server of its own, to stop it or to take its data away, starts
// one on a [Port].
//
// The package imports only the standard library, so that it adds nothing to any
// go.mod. Its functions keep no state and may be called concurrently, each from
// the goroutine of its test, as [testing.TB] demands.
package servertest
