package core

// A Worker gives a Generator its worker number: the bits that keep the IDs of
// two processes apart. Two live processes must never have the same number in the
// same datacenter; everything that this package guarantees between processes
// rests on that.
//
// There is no default, and no number is derived from a MAC or IP address, a
// process ID or a hash of the host name: such numbers repeat, and with them the
// keys. The interface is implemented by this module only.
type Worker interface {
	// number returns the worker number; New checks it against the layout.
	number() int64
}

// StaticWorker is a fixed worker number, 0..1<<Layout.WorkerBits-1, that the
// operator guarantees to be given to one process at a time. New refuses a number
// outside the layout.
func StaticWorker(n int64) Worker { return staticWorker(n) }

type staticWorker int64

func (n staticWorker) number() int64 { return int64(n) }
