package lease

import (
	"errors"
	"slices"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A protocol is one lease's side of the protocol: what to ask of the store and when, and what
// follows from each answer. It reads no clock, does no I/O, starts no goroutine and draws no
// random number of its own, so that a simulator can drive it through millions of schedules. It is
// not safe for concurrent use.
//
// The driver calls next to learn what to do. If that is a request, it sends it and passes the
// outcome to done, which returns what to tell the generator. One request is in flight at a time.
// At the end, release returns how to give the row back.
type protocol struct {
	settings leasestore.Claim // Owner, Nonce and Now are set for each attempt
	token    func() string    // a fresh one, 32 hexadecimal digits
	random   func() float64   // in [0, 1)

	// The row, if held.
	held  bool
	row   leasestore.Row    // as the claim has written it
	known []string          // the nonces it may have: see Renewal.Known; the confirmed one first
	from  leasestore.Millis // IDs begin here
	limit leasestore.Millis // the last confirmed one; it never falls

	// The request in flight, if any: what it asked, and when it was sent.
	claiming *leasestore.Claim
	renewing *leasestore.Renewal
	sent     time.Duration

	due      time.Duration // when to send the next request
	soon     time.Duration // the same if the room under the limit has become small
	failures int           // since the last confirmed request
}

// newProtocol returns the protocol of a lease that claims as settings say.
func newProtocol(settings leasestore.Claim, token func() string, random func() float64) *protocol {
	return &protocol{settings: settings, token: token, random: random}
}

// The parts of a window at which things happen. A renewal after a quarter leaves three
// quarters for a store that is away. A trip that gets no answer in a quarter has failed.
// About a dozen attempts fit into the rest.
const (
	renewPart = 4  // of the window passes from one renewal to the next
	retryPart = 16 // the most from a failed one to the next, on average, and between two looks at the clock
	claimPart = 8  // at most from a failed claim to the next
	delayPart = 64 // what the first renewal under the guard is later than it must be

	// firstBackoff is the shortest pause after a failed claim. Near the limit it is the
	// least mean of the pause after a failed renewal.
	firstBackoff = 100 * time.Millisecond

	// mostKnown bounds Renewal.Known.
	mostKnown = 16
)

func (p *protocol) part(n int) time.Duration {
	return p.settings.Window.Duration() / time.Duration(n)
}

// deadline returns how long one trip to the store may take.
func (p *protocol) deadline() time.Duration { return p.part(renewPart) }

// answerTimeout returns when the outcome of a request counts as unknown, from its start. A
// register is read and then written, and each may take as long as the other.
func (p *protocol) answerTimeout() time.Duration { return 2 * p.deadline() }

// An action is what to do now. Exactly one field is set; if none is, ask again at
// once.
type action struct {
	claim   *leasestore.Claim
	renewal *leasestore.Renewal
	wait    time.Duration // nothing to do for so long; ask again then

	// lost is set when the lease gives up its row by itself. Seal the generator's term,
	// and ask again.
	lost *LostError
}

// next returns what to do now. The wall clock shows now, and the monotonic clock mono. No
// later ID of the generator has a time before id. Without a generator, id may be
// anything.
func (p *protocol) next(now leasestore.Millis, mono time.Duration, id leasestore.Millis) action {
	if !p.held {
		if mono < p.due {
			return action{wait: p.due - mono}
		}
		c := p.settings
		c.Owner, c.Nonce, c.Now = p.token(), p.token(), now
		p.claiming, p.sent = &c, mono
		return action{claim: &c}
	}

	// The lapse rule. Under the guard the next claimant of the row goes by the clock alone, since
	// the store may have forgotten the limit, and may then forget that claim too, so that a late
	// renewal could revive a lease that others count as over. The store checks this as well; here
	// it also ends the wait for a store that is away.
	if d := p.settings.Guard; d > 0 && now > p.limit-d {
		lost := &LostError{Worker: p.row.Worker, Epoch: p.row.Epoch, Reason: leasestore.Lapsed}
		p.drop(mono)
		return action{lost: lost}
	}

	// Normally the limit is a window beyond both the clock and the next ID. There are two
	// exceptions. A suspended machine stops the monotonic clock. Under the guard the
	// limit is tied to the clock, and IDs may run ahead of that. Then the next renewal is
	// due sooner. next must be asked often enough to notice.
	due := p.due
	if p.limit-max(now, id) < p.settings.Window/renewPart {
		due = p.soon
	}
	if mono < due {
		return action{wait: min(due-mono, p.part(retryPart))}
	}
	r := leasestore.Renewal{
		Space:  p.settings.Space,
		Worker: p.row.Worker,
		Epoch:  p.row.Epoch,
		Owner:  p.row.Owner,
		Known:  slices.Clone(p.known),
		Nonce:  p.token(),
		Next:   max(id, p.from),
		Until:  p.limit,
		Window: p.settings.Window,
		Now:    now,
		Skew:   p.settings.Skew,
		Guard:  p.settings.Guard,
	}
	p.renewing, p.sent = &r, mono
	return action{renewal: &r}
}

// An outcome is what follows from an answer. First comes what to tell the generator: at
// most one of install, extend and seal. Then comes what to report.
type outcome struct {
	install bool // a term of worker's IDs with times in [from, until), in place of the one before
	extend  bool // the term, to until
	seal    bool // the term
	worker  int64
	from    leasestore.Millis
	until   leasestore.Millis

	failed    error             // the request failed, or its outcome is unknown; with extend: it was of no use
	lost      *LostError        // the row is lost
	recovered int               // this many requests had failed before this one was done
	lowered   leasestore.Millis // how far below the confirmed limit the row was found
}

// done takes the outcome of the request in flight: a reply, or an error. After an error
// the request may have been done, or may be done later. The definite errors of this
// package are the exception. The clocks show now and mono after the reply has come.
func (p *protocol) done(reply leasestore.Reply, err error, now leasestore.Millis, mono time.Duration) outcome {
	c, r := p.claiming, p.renewing
	p.claiming, p.renewing = nil, nil
	switch {
	case c != nil && err == nil && c.Guard > 0 && (now-c.Now).Duration() > p.deadline():
		return p.claimFailed(errLateClaim, mono)
	case c != nil && err == nil:
		return p.claimed(c, reply, now, mono)
	case c != nil:
		return p.claimFailed(err, mono)
	case r != nil && err == nil && r.Guard > 0 && now > r.Until-r.Guard:
		// The lapse rule again. The store may have looked at its clock before the limit,
		// and written after it.
		p.drop(mono)
		return outcome{seal: true, lost: r.Lost(leasestore.Lapsed)}
	case r != nil && err == nil:
		return p.renewed(r, reply, mono)
	case r != nil:
		return p.renewFailed(r, err, mono)
	}
	return outcome{}
}

// errLateClaim is why a claim that was done does not count. Its lease would begin as much
// later as the answer was late, and a clock that has stepped meanwhile would add to that.
var errLateClaim = errors.New("lease: the answer to a claim came too late for the loss guard; claiming another row")

func (p *protocol) claimed(c *leasestore.Claim, reply leasestore.Reply, now leasestore.Millis, mono time.Duration) outcome {
	p.held = true
	p.row = reply.Row
	p.known = []string{c.Nonce}
	p.from, p.limit = c.From(reply), reply.Row.Until
	if c.Guard > 0 {
		// The guard counts from a moment after the claim was done. A store may have read
		// its clock long before. In between, another holder can have renewed, and the
		// store can have forgotten that.
		p.from = max(p.from, now+c.Window+c.Guard)
	}
	p.schedule(mono, min(reply.Now, c.Now), true)
	return outcome{
		install:   true,
		worker:    p.row.Worker,
		from:      p.from,
		until:     p.limit,
		recovered: p.succeeded(),
	}
}

// maxPause bounds the pause after a failed claim, and the mean of that after a failed
// renewal, however long the window is. The log of an outage needs it: see logEvery.
const maxPause = 20 * time.Second

// claimFailed forgets the attempt, whether or not the store has done it. Its token is never used
// again, so a row that it may have taken is held by no lease and is free after a window.
func (p *protocol) claimFailed(err error, mono time.Duration) outcome {
	p.failures++
	most := min(p.part(claimPart), maxPause)
	if d := firstBackoff << min(p.failures, 10); d < most {
		most = d
	}
	if errors.Is(err, ErrLayout) { // only people can change that
		p.due = mono + p.jitter(p.part(1))
		return outcome{failed: err}
	}
	if none := (*NoFreeWorkerError)(nil); errors.As(err, &none) && none.Rows > 0 {
		most = min(most, none.Wait) // not simply that: a row may be given back before
	}
	p.due = mono + firstBackoff + time.Duration(p.random()*float64(max(0, most-firstBackoff)))
	return outcome{failed: err}
}

func (p *protocol) renewed(r *leasestore.Renewal, reply leasestore.Reply, mono time.Duration) outcome {
	o := outcome{extend: true, recovered: p.succeeded()}
	if reply.Before < p.limit {
		// Somebody has lowered the row, or the store has forgotten a write. This write
		// has set it right, unless somebody claimed the row in between. The fencing
		// number would show that.
		o.lowered = p.limit - reply.Before
	}
	p.known = []string{r.Nonce}
	p.limit = max(p.limit, reply.Row.Until)
	o.until = p.limit
	err := p.ahead(r, reply.Now)
	p.schedule(mono, min(reply.Now, r.Now), o.recovered > 0 && err == nil)
	if err != nil {
		p.failures = o.recovered + 1
		o.failed, o.recovered = err, 0
	}
	return o
}

// ahead returns an *AheadError if renewals make no room for more IDs, because the clock is too far
// behind. Under the guard IDs begin ahead of the clock by at most the window and the guard, the
// two clocks may differ by another guard, and so may the clock of the lease that gave the row back.
func (p *protocol) ahead(r *leasestore.Renewal, now leasestore.Millis) error {
	most := leasestore.MaxAhead
	if d := p.settings.Guard; d > 0 {
		most = p.settings.Window + 3*d
	}
	clock := r.Clock(now)
	if r.Next <= clock+most {
		return nil
	}
	return &AheadError{Next: r.Next.Time(), Clock: clock.Time(), Max: most.Duration()}
}

func (p *protocol) renewFailed(r *leasestore.Renewal, err error, mono time.Duration) outcome {
	if lost := (*LostError)(nil); errors.As(err, &lost) {
		p.drop(mono)
		return outcome{seal: true, lost: lost}
	}
	p.failures++
	// The row may have this nonce now or later. Known only ever makes the store accept more, so
	// leaving one out is safe: at worst the lease refuses its own row and claims another. After a
	// long outage the row most likely has one of the first or the last, which were under way when
	// the store went away or came back, so the middle one is dropped.
	p.known = append(p.known, r.Nonce)
	if len(p.known) > mostKnown {
		p.known = slices.Delete(p.known, mostKnown/2, mostKnown/2+1)
	}
	// Attempts come closer near the limit, so that a returning store is found in time.
	left := (r.Until - r.Guard - r.Now).Duration() - (mono - p.sent)
	p.due = mono + p.jitter(min(p.part(retryPart), maxPause, max(left.Abs()/4, firstBackoff)))
	p.soon = p.due
	return outcome{failed: err}
}

// release gives up the row. end is the end of the generator's term, sealed before, or
// anything if there is none. The answer is not handed to done. release returns false if
// there is no row to give back.
//
// Hand an unknown outcome to done first, since the row may have its nonce.
func (p *protocol) release(end leasestore.Millis) (leasestore.Release, bool) {
	if !p.held {
		return leasestore.Release{}, false
	}
	p.held = false
	return leasestore.Release{
		Space:  p.settings.Space,
		Worker: p.row.Worker,
		Epoch:  p.row.Epoch,
		Owner:  p.row.Owner,
		Known:  slices.Clone(p.known),
		Nonce:  p.token(),
		End:    max(end, p.from), // what is before from is not ours to give back
	}, true
}

// dueBy makes the next request due at mono, unless it is due before.
func (p *protocol) dueBy(mono time.Duration) { p.due = min(p.due, mono) }

// drop forgets the row, to claim another at once.
func (p *protocol) drop(mono time.Duration) {
	p.held = false
	p.due = mono
}

// schedule sets when to renew after a confirmed request, counted from when the request was sent,
// so that the next one is never late, however long the answer took. clock is the earlier of the
// clocks of store and holder.
//
// If apart is true the renewal comes at a random moment before that, and the later ones keep its
// distance. Otherwise all processes that have started at one moment, or found the store back, would
// renew at one moment for ever: ten thousand of them wait seconds for each other, and spread over a
// quarter of the window hardly at all.
func (p *protocol) schedule(mono time.Duration, clock leasestore.Millis, apart bool) {
	p.due = p.sent + p.part(renewPart)
	if apart {
		p.due = p.sent + time.Duration(p.random()*float64(p.part(renewPart)))
	}
	p.soon = p.sent + p.part(retryPart)
	if p.settings.Guard > 0 && p.limit <= p.from {
		// IDs begin at from. The limit passes it once both clocks have reached from less a
		// window; if that is in the first half of what is reserved, the next renewal is due
		// then. It counts from now and not from when the request was sent, because it is
		// unknown when in between the store has read its clock.
		wait := max(0, p.from-p.settings.Window-clock).Duration() + p.part(delayPart)
		if wait <= (p.limit-clock).Duration()/2 {
			p.due = mono + wait
		}
		p.soon = p.due
	}
}

// succeeded returns the number of failures before this success.
func (p *protocol) succeeded() int {
	n := p.failures
	p.failures = 0
	return n
}

// jitter returns a random length around d, from half of it to one and a half. Otherwise
// the processes that a store dropped at one moment would all come back at one.
func (p *protocol) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(p.random()*float64(d))
}
