package lease

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
)

// A Lease is a worker number that no other lease of its namespace and datacenter uses for
// the same time. It is the [core.Worker] of one generator. It keeps the number in the
// background, and gets another when that is lost. Acquire makes it; the zero value is of
// no use. It is safe for concurrent use, and must not be copied.
//
// Close the generator, which closes its lease. Call Lease.Close only if no generator was
// made with the lease, as when core.New has failed.
type Lease struct {
	store  Store
	config Config
	begin  time.Time // monotonic time is counted from here

	protocol *protocol     // belongs to Acquire, then to run, then to Close
	stop     func()        // ends run
	stopped  chan struct{} // closed when it has ended

	closed   chan struct{} // closed when closeErr is set
	closeErr error

	mu      sync.Mutex // guards what follows; never held during a call of the store
	closing bool
	binding *core.Binding     // nil: no generator yet
	term    *core.Reservation // the generator's, nil: none
	end     Millis            // of the term that Close has sealed; 0: there was none
	from    Millis            // of the row, if held
	renewed time.Duration     // Status.Renewed, by the monotonic clock
	status  Status

	// What report remembers; it belongs to who has protocol.
	failing time.Duration // when the first of the failures in a row was
	logged  time.Duration // when one was last logged
	begun   bool          // the limit has passed from
}

var _ core.Worker = (*Lease)(nil)

// A Status is what a lease knows about itself at one moment.
type Status struct {
	// Held says that the lease has a worker number. If not, it is claiming one.
	Held   bool
	Worker int64
	Epoch  int64     // the fencing number: it is greater for each later holder of the worker number
	Limit  time.Time // every ID so far has a time before this; Next waits if it gets there

	// Renewed is when the last claim or renewal was confirmed, by this process's clock.
	Renewed time.Time

	// Err is why the last request failed; nil if it did not. It is a [*AheadError] if the
	// store has renewed the lease, but no more time can be reserved.
	Err error

	// Claims and Renewals count the confirmed ones. Failures counts the requests that
	// failed, whose outcome is unknown, or that were of no use. Losses counts the worker
	// numbers lost.
	Claims, Renewals, Failures, Losses uint64
}

// firstAttempts is how often Acquire tries at least before it returns a temporary error,
// such as a broken connection.
const firstAttempts = 4

// Acquire claims a worker number from store and keeps it until Close. Put the lease into
// core.Config.Worker. Acquire uses ctx no longer once it has returned.
//
// Errors:
//
//   - A [*NoFreeWorkerError] if none is free, after Config.AcquireWait.
//   - The store's error, or a [*ClockSkewError], if the store cannot be reached or the
//     clocks are too far apart. Acquire then tries a few times, and until
//     Config.AcquireWait is over.
//   - An error that matches [ErrPermanent], at once. It is a [*LayoutError] for a
//     namespace that belongs to another layout, and a [*ValueError] for a setting out of
//     range. A store marks others with [Permanent], such as missing tables.
//   - If ctx ends, one that matches ctx.Err() and the last error of the store.
func Acquire(ctx context.Context, store Store, config Config) (*Lease, error) {
	if store == nil {
		return nil, &ValueError{Name: "store", Value: "nil", Want: "a Store"}
	}
	lossy := losesWrites(store)
	config, settings, err := config.resolve(lossy)
	if err != nil {
		return nil, err
	}
	l := &Lease{
		store:    store,
		config:   config,
		begin:    time.Now(),
		protocol: newProtocol(settings, token, rand.Float64),
		stopped:  make(chan struct{}),
		closed:   make(chan struct{}),
	}
	if lossy && config.LossGuard == 0 {
		config.Logger.Warn("lease: the loss guard is off, and the store may forget what it has acknowledged: IDs may then repeat")
	}
	if err := l.acquire(ctx); err != nil {
		return nil, fmt.Errorf("lease: no worker number claimed: %w", err)
	}
	running, stop := context.WithCancel(context.Background())
	l.stop = stop
	go l.run(running)
	return l, nil
}

// token returns 128 random bits as 32 hexadecimal digits.
func token() string {
	var b [16]byte
	_, _ = crand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// acquire makes the first claim.
func (l *Lease) acquire(ctx context.Context) error {
	var last error
	giveUp := l.config.AcquireWait // after the lease was made; unless it is negative
	for attempts := 0; ; {
		if err := ctx.Err(); err != nil {
			return join(err, last)
		}
		a := l.next()
		if a.wait > 0 {
			sleep(ctx, a.wait)
			continue
		}
		o := l.request(ctx, a)
		if o.failed == nil {
			return l.heed(o)
		}
		last = o.failed
		switch wait := l.config.AcquireWait; {
		case errors.Is(last, ErrPermanent):
			return last
		case errors.Is(last, ErrNoFreeWorker):
			attempts = 0 // the store is there
			if wait >= 0 {
				if l.monotonic() >= giveUp {
					return last
				}
				l.protocol.hurry(giveUp)
			}
		default:
			if attempts++; attempts >= firstAttempts && wait >= 0 {
				if l.monotonic() >= giveUp {
					return last
				}
				l.protocol.hurry(giveUp)
			}
		}
		_ = l.heed(o) // the failure: nothing to refuse
	}
}

// join returns the error of a context and, if there is one, what failed before.
func join(ended, last error) error {
	if last == nil || errors.Is(last, ended) {
		return ended
	}
	return fmt.Errorf("%w; before that: %w", ended, last)
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// run keeps the row until ctx ends. Acquire starts it, Close ends it.
func (l *Lease) run(ctx context.Context) {
	defer close(l.stopped)
	warned := false
	for ctx.Err() == nil {
		a := l.next()
		switch p := l.protocol; {
		case a.lost != nil:
			_ = l.heed(outcome{seal: true, lost: a.lost}) // nothing to refuse
		case a.wait > 0:
			low := p.held && p.failures > 0 && p.limit-MillisOf(l.now()) < p.settings.Window/renewPart
			if low && !warned {
				l.config.Logger.Warn("lease: the reserved time is nearly used up, and the store has not confirmed more: no ID will have a time at the limit or after it",
					"worker", p.row.Worker, "limit", p.limit.Time())
			}
			warned = low
			sleep(ctx, a.wait)
		default:
			o := l.request(ctx, a)
			if o.failed != nil && ctx.Err() != nil {
				return // it is Close that has ended the request
			}
			if err := l.heed(o); err != nil {
				l.refuse(ctx, o, err)
			}
		}
	}
}

// next asks the protocol what to do now.
func (l *Lease) next() action {
	l.mu.Lock()
	var id Millis
	if l.term != nil {
		id = MillisOf(l.term.Next())
	}
	l.mu.Unlock()
	return l.protocol.next(MillisOf(l.now()), l.monotonic(), id)
}

// request sends the request of a and returns what follows from the answer.
func (l *Lease) request(ctx context.Context, a action) outcome {
	ctx, cancel := context.WithTimeout(ctx, l.protocol.deadline())
	defer cancel()
	var reply Reply
	var err error
	if a.claim != nil {
		reply, err = l.store.Claim(ctx, *a.claim)
	} else {
		reply, err = l.store.Renew(ctx, *a.renewal)
	}
	return l.protocol.done(reply, err, l.monotonic())
}

// heed tells the generator, the status and the log what follows from an answer. If the
// generator refuses the worker number, heed returns why.
func (l *Lease) heed(o outcome) error {
	l.mu.Lock()
	err := l.tell(o)
	l.note(o)
	l.mu.Unlock()
	l.report(o)
	if errors.Is(err, core.ErrClosed) { // it is about to call Close
		return nil
	}
	return err
}

// refuse gives back a row whose worker number the generator has refused. Another
// generator of this process has that number. The lease then claims again, but not at
// once. It most likely gets another number.
func (l *Lease) refuse(ctx context.Context, o outcome, reason error) {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return // Close gives it back
	}
	var end Millis
	if l.term != nil {
		end = MillisOf(l.term.Seal())
	}
	l.term = nil
	l.status.Held, l.status.Err = false, reason
	l.mu.Unlock()
	r, _ := l.protocol.release(end)
	// Close, which ends ctx, has nothing left to give back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.protocol.deadline())
	defer cancel()
	err := l.store.Release(ctx, r)
	l.protocol.failures = o.recovered // the claim was no success after all
	l.protocol.claimFailed(reason, l.monotonic())
	l.config.Logger.Error("lease: gave a worker number back that this process has already; claiming another",
		"worker", r.Worker, "epoch", r.Epoch, "reason", reason, "error", err)
}

// tell tells the generator. It requires mu.
func (l *Lease) tell(o outcome) error {
	switch {
	case o.install:
		l.term, l.from = nil, o.from
		if l.binding == nil || l.closing {
			return nil
		}
		return l.reserve(l.binding, o.worker, o.from, o.until)
	case o.extend && l.term != nil && !l.closing:
		return l.term.Extend(o.until.Time())
	case o.seal:
		if l.term != nil {
			l.term.Seal()
		}
		l.term = nil
	}
	return nil
}

// reserve installs a term in the generator of b. It requires mu.
func (l *Lease) reserve(b *core.Binding, worker int64, from, until Millis) (err error) {
	l.term, err = b.Reserve(worker, from.Time(), until.Time())
	return err
}

// note keeps the status. It requires mu.
func (l *Lease) note(o outcome) {
	s := &l.status
	s.Err = o.failed
	if o.failed != nil {
		s.Failures++
	}
	switch {
	case o.lost != nil:
		s.Held, s.Err = false, o.lost
		s.Losses++
		return
	case o.install:
		s.Held, s.Worker, s.Epoch = true, o.worker, l.protocol.row.Epoch
		s.Claims++
	case o.extend:
		s.Renewals++
	default:
		return
	}
	s.Limit, s.Renewed = o.until.Time(), l.now()
	l.renewed = l.monotonic()
}

// logEvery is how long a failure may follow a logged one without being logged. With
// windows of up to a minute, attempts are less than half a minute apart. After an
// ErrLayout the pause is half a window to one and a half.
const logEvery = 30 * time.Second

// report writes to the log, and calls Config.OnLost.
func (l *Lease) report(o outcome) {
	log := l.config.Logger
	if worker := l.protocol.row.Worker; o.lowered > 0 {
		log.Error("lease: the store has reserved less than it had confirmed: somebody has lowered the row, or the store has lost writes; it is set right",
			"worker", worker, "missing", o.lowered.Duration())
	} else if o.extend && o.recovered > 0 {
		log.Info("lease: renewed again", "worker", worker, "failures", o.recovered, "until", o.until.Time())
	}
	if o.extend && !l.begun && o.until > l.protocol.from {
		l.begun = true
		log.Info("lease: IDs may begin", "worker", l.protocol.row.Worker, "from", l.protocol.from.Time(), "until", o.until.Time())
	}
	n := l.protocol.failures
	if o.failed != nil && n == 1 {
		l.failing = l.monotonic()
	}
	switch since := l.monotonic() - l.failing; {
	case o.install:
		log := log.With("worker", o.worker, "epoch", l.protocol.row.Epoch, "failures", o.recovered)
		if l.begun = o.from < o.until; l.begun {
			log.Info("lease: claimed a worker number", "from", o.from.Time(), "until", o.until.Time())
		} else {
			log.Info("lease: claimed a worker number; IDs begin when a renewal has reserved time for them", "from", o.from.Time())
		}
	case o.lost != nil:
		log.Error("lease: lost the worker number; claiming another", "worker", o.lost.Worker, "epoch", o.lost.Epoch, "reason", string(o.lost.Reason))
		if f := l.config.OnLost; f != nil {
			// Not in this goroutine, which has a row to claim. A callback that waits, as
			// one that closes the generator, would wait for itself.
			go f(o.lost)
		}
	case o.failed == nil || n&(n-1) != 0 && l.monotonic()-l.logged < logEvery:
		// One failure is like the next. The first, second, fourth and so on are logged,
		// and one from time to time.
	default:
		l.logged = l.monotonic()
		log := log.With("failures", n, "for", since, "error", o.failed)
		switch held := log.With("worker", l.protocol.row.Worker, "limit", l.protocol.limit.Time()); {
		case o.extend:
			held.Error("lease: renewed, but no more time can be reserved: no ID will have a time at the limit or after it")
		case l.protocol.held:
			held.Warn("lease: not renewed")
		case errors.Is(o.failed, ErrPermanent):
			log.Error("lease: cannot claim a worker number")
		default:
			log.Warn("lease: cannot claim a worker number")
		}
	}
}

// Bind installs the worker number in the generator of b. core.New calls it. One lease
// serves one generator, which must have the lease's layout and datacenter. Otherwise the
// IDs of two processes would not be kept apart.
func (l *Lease) Bind(b *core.Binding) error {
	if got, own := fingerprint(b.Layout()), fingerprint(l.config.Layout); got != own {
		return &ValueError{Name: "core.Config.Layout", Value: got, Want: own + ", as Config.Layout of the lease"}
	}
	if got, own := b.Datacenter(), l.config.Datacenter; got != own {
		return &ValueError{Name: "core.Config.Datacenter", Value: fmt.Sprint(got), Want: fmt.Sprintf("%d, as Config.Datacenter of the lease", own)}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing:
		return ErrClosed
	case l.binding != nil:
		return ErrBound
	}
	if l.status.Held {
		if err := l.reserve(b, l.status.Worker, l.from, MillisOf(l.status.Limit)); err != nil {
			return err
		}
	}
	l.binding = b
	return nil
}

// Close ends the lease. Call Generator.Close instead, which calls it. The generator
// returns [core.ErrClosed] from then on. The worker number is given back, and anyone may
// claim it at once. If ctx has ended already, nothing is sent.
//
// Close returns when ctx ends at the latest. Its request takes at most a quarter of the
// window. If it fails, the number is simply not free before Status.Limit.
//
// If the number was lost, Close gives nothing back and returns no error. Closing twice is
// harmless: the second call returns what the first did, when that is done.
func (l *Lease) Close(ctx context.Context) error {
	l.mu.Lock()
	first := !l.closing
	l.closing = true
	// Before anything else, and without waiting for run. The row may only be given back
	// once no ID of it can come.
	if first && l.binding != nil {
		l.binding.Close()
	}
	if first && l.term != nil {
		l.end = MillisOf(l.term.Seal())
	}
	l.mu.Unlock()
	if first {
		l.closeErr = l.giveBack(ctx)
		close(l.closed)
		return l.closeErr
	}
	select {
	case <-l.closed:
	case <-ctx.Done():
		select {
		case <-l.closed: // a result is better than none, and not left to chance
		default:
			return l.notGivenBack(ctx.Err())
		}
	}
	return l.closeErr
}

// giveBack ends run and releases the row.
func (l *Lease) giveBack(ctx context.Context) error {
	l.stop()
	select {
	case <-l.stopped:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return l.notGivenBack(err)
	}
	l.mu.Lock()
	end := l.end
	l.mu.Unlock()
	r, held := l.protocol.release(end)
	if !held {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.protocol.deadline())
	defer cancel()
	err := l.store.Release(ctx, r)
	log := l.config.Logger.With("worker", r.Worker, "epoch", r.Epoch)
	switch {
	case errors.Is(err, ErrLost):
		log.Warn("lease: the worker number was lost already when it was to be given back", "error", err)
	case err != nil:
		err = l.notGivenBack(err)
		log.Warn("lease: the worker number was perhaps not given back", "error", err)
		return err
	default:
		log.Info("lease: gave the worker number back", "end", r.End.Time())
	}
	l.mu.Lock()
	l.status.Held = false
	l.mu.Unlock()
	return nil
}

// notGivenBack returns the error of Close.
func (l *Lease) notGivenBack(err error) error {
	s := l.Status()
	if !s.Held {
		return fmt.Errorf("lease: closed while claiming: %w", err)
	}
	return fmt.Errorf("lease: worker %d was perhaps not given back; it is free at %s then: %w", s.Worker, s.Limit.Format(time.RFC3339Nano), err)
}

// Status returns the state of the lease, for health checks and metrics.
func (l *Lease) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// Check returns nil if the lease has a worker number, IDs that are reserved, and a store
// that renews it. It is for readiness probes. The error says what is missing, with
// values, and wraps Status.Err. It is ErrClosed after Close.
//
// A renewal is due after a quarter of the window. The lease counts as not renewed after
// three quarters: IDs may end within the last one. With the loss guard it also has no
// reserved IDs in the first moments after a claim.
//
// Check does no I/O, and is safe for concurrent use. If ctx has ended, the error matches
// ctx.Err().
func (l *Lease) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("lease: not checked: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, window := l.status, l.protocol.settings.Window.Duration()
	if l.closing {
		return ErrClosed
	}
	var problem string
	next := l.now()
	if from := l.from.Time(); from.After(next) {
		next = from
	}
	switch age := l.monotonic() - l.renewed; {
	case !s.Held:
		problem = "no worker number is held"
	case !s.Limit.After(next):
		problem = fmt.Sprintf("worker %d: no ID is reserved: the next would have the time %s, the limit is %s",
			s.Worker, next.UTC().Format(time.RFC3339Nano), s.Limit.Format(time.RFC3339Nano))
	case errors.Is(s.Err, ErrAhead):
		problem = fmt.Sprintf("worker %d: no more IDs than to %s", s.Worker, s.Limit.Format(time.RFC3339Nano))
	case age > window*3/4:
		problem = fmt.Sprintf("worker %d: last renewed %s ago: want at most %s, three quarters of the window", s.Worker, age, window*3/4)
	default:
		return nil
	}
	if s.Err != nil {
		return fmt.Errorf("lease: %s: %w", problem, s.Err)
	}
	return errors.New("lease: " + problem)
}

// Namespace returns Config.Namespace.
func (l *Lease) Namespace() string { return l.config.Namespace }

// WallClock returns Config.Now: the generator reads the same clock.
func (l *Lease) WallClock() func() time.Time { return l.config.Now }

// now returns the wall clock.
func (l *Lease) now() time.Time {
	if l.config.Now != nil {
		return l.config.Now()
	}
	return time.Now()
}

// monotonic returns how much time has passed since the lease was made.
func (l *Lease) monotonic() time.Duration { return time.Since(l.begin) }
