/*
 * A store that loses acknowledged writes, and the loss guard.
 *
 * Once, at any moment, the store goes back to any state that it had before. Clocks
 * differ by at most GUARD; a reading may even be lower than the one before. With the
 * guard no timestamp is issued twice.
 *
 * Not every timestamp is recorded, as in fence.pml, but the first only: if any can
 * be issued twice, then it can be the first, since the clocks may skip all others.
 */

#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef WINDOW
#define WINDOW 4	/* a constant, but for OWN_WINDOW */
#endif
#ifndef SHORT
#define SHORT WINDOW	/* with OWN_WINDOW, that of the others than process 0 */
#endif
#ifndef GUARD
#define GUARD 1
#endif
#ifndef TIMES
#define TIMES 7		/* true time is 0..TIMES-1 */
#endif
#ifndef CLAIMS
#define CLAIMS 3	/* that are sent, in all; each may be done more than once */
#endif
#ifndef EPOCHS
#define EPOCHS 4	/* claims and releases that are done */
#endif

/* What a claim adds to its start, and so the last timestamp and one. */
#ifdef GUARD_SHORT_BY_ONE
#define START (WINDOW + GUARD - 1)
#else
#ifdef OWN_WINDOW
#define START (q.window + GUARD)
#else
#define START (WINDOW + GUARD)
#endif
#endif

mtype = { Claim, Renew, Release };

typedef Row {
	byte epoch;
	byte owner;	/* 0: nobody; else the number of the claim */
	byte until
};

typedef Request {
	mtype kind;	/* 0: there is none */
	byte epoch;
	byte owner;
	byte until;	/* the confirmed limit of a renewal; the end of a release */
	byte now;	/* the clock of the sender */
	byte window
};

typedef Process {
	byte epoch;	/* 0: it has no lease */
	byte owner;
	byte next;
	byte limit;
	bool waits
};

Row store, backup;
bool restored;
Process process[PROCESSES];
byte claims;

/* What is under way: the last request of each process, which stays there after the
   process has given it up; with LATE also an older one of any process. */
Request last[PROCESSES];
#ifdef LATE
Request late;
#endif

byte time;	/* true time; a clock shows time..time+GUARD */
byte issued;	/* the first timestamp issued, and one; 0: none yet */

#ifdef EPOCH_WITHOUT_OWNER
#define OWNS(q) (q.epoch == store.epoch && store.owner != 0)
#else
#define OWNS(q) (q.epoch == store.epoch && q.owner == store.owner)
#endif

#ifdef NO_LAPSE_RULE
#define LAPSED(q) false
#else
#define LAPSED(q) (now + GUARD > q.until || q.now + GUARD > q.until)
#endif

/* Clocks as far apart as the guard allows, so its skew is GUARD too. */
#define FREE (store.owner -> store.until + GUARD <= now : store.until <= now + GUARD + WINDOW + GUARD)

#define MIN(a, b) (a < b -> a : b)
#define MAX(a, b) (a > b -> a : b)
#define P process[p]

inline lose(p) {
	P.epoch = 0; P.owner = 0; P.next = 0; P.limit = 0; P.waits = false
}

inline send(p, what, aLimit) {
#ifdef LATE
	if
	:: late.kind = last[p].kind; late.epoch = last[p].epoch; late.owner = last[p].owner;
	   late.until = last[p].until; late.now = last[p].now; late.window = last[p].window
	:: true
	fi;
#endif
	last[p].kind = what; last[p].epoch = P.epoch; last[p].owner = P.owner;
	last[p].until = aLimit;
	select(now : 0 .. GUARD);
	last[p].now = (what == Release -> 0 : time + now);
	last[p].window = (p == 0 -> WINDOW : SHORT);
	now = 0
}

proctype live(byte p) {
	byte now, stop;
end:	do
	:: atomic { P.epoch == 0 && !P.waits && claims < CLAIMS ->
		send(p, Claim, 0);
		claims++;
		last[p].owner = claims;
		P.waits = true }
	:: atomic { P.epoch > 0 && !P.waits -> send(p, Renew, P.limit); P.waits = true }
	:: atomic { P.epoch > 0 && P.next < P.limit && issued == 0 ->
		stop = P.limit;
		select(now : P.next .. stop - 1);
		issued = now + 1;
		P.next = now + 1; now = 0; stop = 0 }
	:: atomic { P.epoch > 0 && P.next < issued && issued <= P.limit -> assert(false) }
	/* Release, after any timestamps that may be issued. */
	:: atomic { P.epoch > 0 && !P.waits ->
		select(stop : 0 .. WINDOW);
		stop = stop + P.next;
		if
		:: stop <= P.limit
		:: else -> stop = P.next
		fi;
		send(p, Release, stop);
		lose(p); stop = 0 }
	:: atomic { P.waits -> P.waits = false }
	:: atomic { P.epoch > 0 || P.waits -> lose(p) }
	od
}

inline serve(q, reply) {
	select(now : 0 .. GUARD);
	now = now + time;
	if
	:: q.kind == Claim && store.epoch < EPOCHS && FREE ->
		x = MAX(now, q.now) + START;
		x = MAX(store.until, x);
		store.epoch++;
		store.owner = q.owner;
		now = MIN(now, q.now) + q.window;
		store.until = MAX(store.until, now);
		if
		:: reply && P.waits && P.epoch == 0 ->
			P.epoch = store.epoch; P.owner = store.owner;
			P.next = x; P.limit = store.until;
			P.waits = false
		:: true
		fi
	:: q.kind == Renew && OWNS(q) && !LAPSED(q) ->
		now = MIN(now, q.now) + q.window;
		x = MAX(store.until, q.until);
		store.until = MAX(x, now);
		if
		:: reply && P.waits -> P.limit = store.until; P.waits = false
		:: true
		fi
	:: q.kind == Release && OWNS(q) && store.epoch < EPOCHS ->
		store.epoch++;
		store.owner = 0;
		store.until = q.until
	:: else	/* refused */
	fi;
	x = 0; now = 0
}

proctype shared() {
	byte p, x, now;
end:	do
	:: atomic { select(p : 0 .. PROCESSES - 1); serve(last[p], true); p = 0 }
#ifdef LATE
	:: atomic { late.kind -> serve(late, false) }
#endif
	:: atomic { time < TIMES - 1 -> time++ }
	/* The state to which it will go back; the first one if none is noted. */
	:: atomic { !restored -> backup.epoch = store.epoch; backup.owner = store.owner; backup.until = store.until }
	:: atomic { !restored -> restored = true;
		store.epoch = backup.epoch; store.owner = backup.owner; store.until = backup.until;
		backup.epoch = 0; backup.owner = 0; backup.until = 0 }
	od
}

init {
	byte p;
	atomic {
		for (p : 0 .. PROCESSES - 1) { run live(p) }
		p = 0;
		run shared()
	}
}
