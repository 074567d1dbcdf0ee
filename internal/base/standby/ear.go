package standby

import (
	"bytes"
	"database/sql"
	"io"
	"reflect"
	"runtime"
	"sync/atomic"
)

// A sound is what the driver has shown during a commit.
type sound int

const (
	unheard sound = iota // the driver hides warnings
	nothing              // there was no warning
	warning
)

// An ear listens for warnings of the server.
type ear struct {
	conn   *sql.Conn
	hears  bool
	warned atomic.Bool
}

// listen traces what pgx receives on the connection, until stop. The package of pgx is not
// imported, see package dialect. lib/pq passes warnings to a function that only its own package
// can set.
func listen(conn *sql.Conn) *ear {
	e := &ear{conn: conn}
	e.with(func(frontend reflect.Value) {
		// There is one tracer, which the program may have set.
		if f := reflect.Indirect(frontend).FieldByName("tracer"); f.Kind() == reflect.Pointer && !f.IsNil() {
			return
		}
		m := frontend.MethodByName("Trace")
		if t := m.Type(); t.NumIn() == 2 && t.In(0) == reflect.TypeFor[io.Writer]() && t.In(1).Kind() == reflect.Struct {
			m.Call([]reflect.Value{reflect.ValueOf(e), reflect.Zero(t.In(1))})
			e.hears = true
		}
	})
	return e
}

// stop ends the trace and returns what was heard.
func (e *ear) stop() sound {
	if !e.hears {
		return unheard
	}
	e.with(func(frontend reflect.Value) {
		if f, ok := reflect.TypeAssert[untracer](frontend); ok {
			f.Untrace()
		}
	})
	if e.warned.Load() {
		return warning
	}
	return nothing
}

// An untracer is a *pgproto3.Frontend.
type untracer interface{ Untrace() }

// Write is called with one or more messages of either direction.
func (e *ear) Write(trace []byte) (int, error) {
	if bytes.Contains(trace, []byte("NoticeResponse")) {
		e.warned.Store(true)
	}
	return len(trace), nil
}

// with calls f with the *pgproto3.Frontend of an open connection of pgx. pgx closes a connection
// in a goroutine of its own, which uses the frontend without a lock, but not before IsClosed
// reports true. The names of the methods are constants, without which the linker would keep
// every method of every type.
func (e *ear) with(f func(frontend reflect.Value)) {
	// Raw may meet a connection that is being closed, see discard in package sqlrow.
	defer func() {
		err := recover()
		if _, ok := err.(runtime.Error); err != nil && !ok {
			panic(err) // of the driver
		}
	}()
	_ = e.conn.Raw(func(c any) error {
		conn := result(reflect.ValueOf(c).MethodByName("Conn"))
		if !conn.IsValid() {
			return nil
		}
		pgConn := result(conn.MethodByName("PgConn"))
		if !pgConn.IsValid() {
			return nil
		}
		if c, ok := reflect.TypeAssert[interface{ IsClosed() bool }](pgConn); !ok || c.IsClosed() {
			return nil
		}
		frontend := result(pgConn.MethodByName("Frontend"))
		if !frontend.IsValid() || !frontend.MethodByName("Trace").IsValid() {
			return nil
		}
		if _, ok := reflect.TypeAssert[untracer](frontend); ok {
			f(frontend)
		}
		return nil
	})
}

// result calls a method without arguments and returns its only result, or the zero Value if
// there is no such method or the result is nil.
func result(m reflect.Value) reflect.Value {
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return reflect.Value{}
	}
	v := m.Call(nil)[0]
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return reflect.Value{}
	}
	return v
}
