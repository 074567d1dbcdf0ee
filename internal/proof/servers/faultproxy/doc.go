// Package faultproxy loses messages between a client and a database server. A test
// names one message, by its kind, its text or its number, and what becomes of it: the
// connection is cut before or after the message, or the message comes late or never.
//
//	proxy := faultproxy.Start(t, faultproxy.PostgreSQL, "127.0.0.1:5432")
//	db := open(proxy.Addr())
//	hit := proxy.Arm(faultproxy.Fault{
//		On: faultproxy.Running("COMMIT"),
//		Do: faultproxy.CutAfter,
//	})
//
// The proxy reads the messages of PostgreSQL's protocol 3 and of MySQL's protocol, and
// changes none. It does not understand TLS or compression, so clients need
// sslmode=disable or tls=false. A stream that it cannot read fails the test. Of other protocols,
// such as that of Redis, it passes what arrives in one piece.
//
// A fault hits one connection once, unless Again is set. Others pass untouched, among them the
// new ones that a client opens after the fault, except after Silence.
package faultproxy
