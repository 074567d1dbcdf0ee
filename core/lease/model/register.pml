/*
 * The loss guard over a register: leasestore.Over. A row is read, and later swapped for
 * another if it still is what was read. Between the two anything may happen.
 *
 * As guard.pml in all else: once, at any moment, the store goes back to any state that it
 * had before, and clocks differ by at most GUARD. A swap is lost, late or done twice.
 *
 * Every write has a nonce of its own, so two rows are equal if their nonces are.
 */

#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef GUARD
#define GUARD 1
#endif
#ifndef TIMES
#define TIMES 6		/* true time is 0..TIMES-1 */
#endif
#ifndef CLAIMS
#define CLAIMS 2	/* that are sent, in all */
#endif
#ifndef WRITES
#define WRITES 6	/* swaps that are sent, in all */
#endif
/* FEWER leaves out releases, crashes and answers that nobody waits for: what repeats a
   timestamp without them does so with them. */
#define PROCESSES 2

#define START (WINDOW + GUARD)

mtype = { Claim, Renew, Release };

typedef Row {
	byte epoch;
	byte owner;	/* 0: nobody; else the number of the claim */
	byte nonce;	/* of the last write: equal rows have equal ones */
	byte count;	/* of writes, as a server's revision; 0 but for SWAP_COUNT_ALONE */
	byte until
};

typedef Request {
	mtype kind;	/* 0: there is none */
	byte nonce;	/* of the row that was read */
	byte count;
	byte epoch;
	byte to_epoch;	/* the row to write */
	byte to_owner;
	byte to_nonce;
	byte to_until;
	byte start;	/* of a claim, by the clocks at the read */
	byte limit	/* of a renewal: the last confirmed one */
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
Request under_way[PROCESSES];
byte claims, writes;
byte time;	/* true time; a clock shows time..time+GUARD */
byte issued;	/* the first timestamp issued, and one; 0: none yet */

#define MIN(a, b) (a < b -> a : b)
#define MAX(a, b) (a > b -> a : b)
#define P process[p]
#define Q under_way[p]

/* What a server compares. */
#ifdef SWAP_EPOCH_ALONE
#define SAME (Q.epoch == store.epoch)
#else
#ifdef SWAP_COUNT_ALONE
#define SAME (Q.count == store.count)
#else
#define SAME (Q.nonce == store.nonce)
#endif
#endif

#define FREE (store.owner -> store.until + GUARD <= now : store.until <= now + GUARD + WINDOW + GUARD)
#define OWNS (P.epoch == store.epoch && P.owner == store.owner)
#define LAPSED (now + GUARD > P.limit || own + GUARD > P.limit)

inline lose(p) {
	P.epoch = 0; P.owner = 0; P.next = 0; P.limit = 0; P.waits = false
}

/* clocks reads that of the store and that of the process. */
inline clocks() {
	select(now : 0 .. GUARD);
	select(own : 0 .. GUARD);
	now = now + time; own = own + time
}

inline send(what, anEpoch, anOwner, anUntil, aStart) {
	writes++;
	Q.kind = what; Q.nonce = store.nonce; Q.count = store.count; Q.epoch = store.epoch;
	Q.to_epoch = anEpoch; Q.to_owner = anOwner; Q.to_nonce = writes; Q.to_until = anUntil;
	Q.start = aStart; Q.limit = P.limit
}

/* swap does the write that is under way, at any time and as often as it likes. Its answer
   may come. One that comes later permits less, since it is judged by a later clock. */
inline swap() {
	if
	:: SAME ->
		store.epoch = Q.to_epoch; store.owner = Q.to_owner; store.nonce = Q.to_nonce;
		store.until = Q.to_until;
#ifdef SWAP_COUNT_ALONE
		store.count++;
#endif
		if
		:: P.waits && Q.kind == Claim && P.epoch == 0 ->
			select(own : 0 .. GUARD);
			own = own + time + START;
#ifdef START_AT_READ
			own = Q.start;
#endif
			P.epoch = Q.to_epoch; P.owner = Q.to_owner; P.limit = Q.to_until;
			P.next = MAX(Q.start, own);
			P.waits = false
		:: P.waits && Q.kind == Renew && P.epoch > 0 ->
			select(own : 0 .. GUARD);
			own = own + time;
#ifdef NO_ANSWER_CHECK
			own = 0;
#endif
			if
			:: own + GUARD > Q.limit -> lose(p)
			:: else -> P.limit = Q.to_until; P.waits = false
			fi
		:: true
		fi
	:: else	/* refused */
	fi;
	own = 0
}

proctype live(byte p) {
	byte now, own, x;
end:	do
	:: atomic { P.epoch == 0 && !P.waits && claims < CLAIMS && writes < WRITES ->
		clocks();
		if
		:: FREE ->
			claims++;
			x = MAX(now, own) + START;
			x = MAX(store.until, x);
			now = MIN(now, own) + WINDOW;
			now = MAX(store.until, now);
			send(Claim, store.epoch + 1, claims, now, x);
			P.waits = true
		:: else
		fi;
		now = 0; own = 0; x = 0 }
	:: atomic { P.epoch > 0 && !P.waits && writes < WRITES ->
		clocks();
		if
		:: OWNS && !LAPSED ->
			now = MIN(now, own) + WINDOW;
			x = MAX(store.until, P.limit);
			x = MAX(x, now);
			send(Renew, store.epoch, store.owner, x, 0);
			P.waits = true
		:: else
		fi;
		now = 0; own = 0; x = 0 }
	:: atomic { P.epoch > 0 && P.next < P.limit && issued == 0 ->
		now = P.limit;
		select(x : P.next .. now - 1);
		issued = x + 1;
		P.next = x + 1; x = 0; now = 0 }
	:: atomic { P.epoch > 0 && P.next < issued && issued <= P.limit -> assert(false) }
#ifndef FEWER
	:: atomic { P.epoch > 0 && !P.waits && writes < WRITES && OWNS ->
		send(Release, store.epoch + 1, 0, P.next, 0);
		lose(p) }
	:: atomic { P.waits -> P.waits = false }
	:: atomic { P.epoch > 0 || P.waits -> lose(p) }
#endif
	/* The write that is under way. One that is given up stays so, until another takes its
	   place. */
	:: atomic { Q.kind -> swap() }
	od
}

proctype shared() {
end:	do
	:: atomic { time < TIMES - 1 -> time++ }
	/* The state to which it will go back; the first one if none is noted. */
	:: atomic { !restored ->
		backup.epoch = store.epoch; backup.owner = store.owner; backup.nonce = store.nonce;
		backup.count = store.count; backup.until = store.until }
	:: atomic { !restored -> restored = true;
		store.epoch = backup.epoch; store.owner = backup.owner; store.nonce = backup.nonce;
		store.count = backup.count; store.until = backup.until;
		backup.epoch = 0; backup.owner = 0; backup.nonce = 0; backup.count = 0; backup.until = 0 }
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
