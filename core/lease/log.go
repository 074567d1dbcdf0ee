package lease

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// logged is what the log of a lease remembers.
type logged struct {
	failing time.Duration // when the first of the failures in a row was
	failure time.Duration // when one was last logged
	begun   bool          // the limit has passed from
	low     bool          // the reserved time is nearly used up
}

// log logs what follows from an answer, and calls Config.OnLost.
func (l *Lease) log(o outcome) {
	switch {
	case o.install:
		l.logClaim(o)
	case o.extend:
		l.logRenewal(o)
	case o.lost != nil:
		l.logLoss(o.lost)
	}
	if o.failed != nil {
		l.logFailure(o)
	}
}

// level returns the level of messages that every start logs. After failures or losses it is
// higher, so that the log also shows the claim that ends them.
func (l *Lease) level() slog.Level {
	if s := l.Status(); s.Failures > 0 || s.Losses > 0 {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (l *Lease) logClaim(o outcome) {
	log := l.config.Logger.With("worker", o.worker, "epoch", l.protocol.row.Epoch, "failures", o.recovered)
	if l.logged.begun = o.from < o.until; l.logged.begun {
		log.Log(context.Background(), l.level(), "lease: claimed a worker number", "from", o.from.Time(), "until", o.until.Time())
	} else {
		log.Log(context.Background(), l.level(), "lease: claimed a worker number; IDs begin when a renewal has reserved time for them", "from", o.from.Time())
	}
}

func (l *Lease) logRenewal(o outcome) {
	p := l.protocol
	log := l.config.Logger.With("worker", p.row.Worker)
	if o.lowered > 0 {
		log.Error("lease: the store has reserved less than it had confirmed: somebody has lowered the row, or the store has lost writes; it is set right",
			"missing", o.lowered.Duration())
	} else if o.recovered > 0 {
		log.Info("lease: renewed again", "failures", o.recovered, "until", o.until.Time())
	}
	if !l.logged.begun && o.until > p.from {
		l.logged.begun = true
		log.Log(context.Background(), l.level(), "lease: time is reserved; IDs begin", "from", p.from.Time(), "until", o.until.Time())
	}
}

func (l *Lease) logLoss(lost *LostError) {
	l.config.Logger.Error("lease: lost the worker number; claiming another", "worker", lost.Worker, "epoch", lost.Epoch, "reason", string(lost.Reason))
	if f := l.config.OnLost; f != nil {
		// Not in this goroutine, which has a row to claim. A callback that waits, as one
		// that closes the generator, would wait for itself.
		go f(lost)
	}
}

// logEvery is how long a failure may follow a logged one without being logged. Pauses
// after a failure are at most half a minute (see maxPause), so a store that refuses is
// logged each minute. After an ErrLayout the pause is half a window to one and a half.
const logEvery = 30 * time.Second

// logFailure logs the first failure in a row, the second, the fourth and so on, and one
// from time to time. One failure is like the next.
func (l *Lease) logFailure(o outcome) {
	p, now := l.protocol, l.monotonic()
	n := p.failures
	if n == 1 {
		l.logged.failing = now
	}
	if n&(n-1) != 0 && now-l.logged.failure < logEvery {
		return
	}
	l.logged.failure = now
	log := l.config.Logger.With("failures", n, "for", now-l.logged.failing, "error", o.failed)
	if p.held {
		log = log.With("worker", p.row.Worker, "limit", p.limit.Time())
	}
	switch {
	case o.extend:
		log.Error("lease: renewed, but no more time can be reserved; IDs end at the limit")
	case p.held:
		log.Warn("lease: not renewed")
	case errors.Is(o.failed, ErrPermanent):
		log.Error("lease: cannot claim a worker number")
	default:
		log.Warn("lease: cannot claim a worker number")
	}
}

// warnIfLow logs once that the reserved time is nearly used up, while the store fails.
func (l *Lease) warnIfLow() {
	p := l.protocol
	low := p.held && p.failures > 0 && p.limit-leasestore.MillisOf(l.config.now()) < p.settings.Window/renewPart
	if low && !l.logged.low {
		l.config.Logger.Warn("lease: the reserved time is nearly used up, and the store has not confirmed more; IDs end at the limit",
			"worker", p.row.Worker, "limit", p.limit.Time())
	}
	l.logged.low = low
}
