/*
 * The reserved window: claim, renew, issue, release.
 *
 * A row of the store says "no ID of this worker reaches until". A process issues
 * under what the store has confirmed to it, and a claim begins where the row ended.
 * No timestamp is issued twice, whatever happens to processes and requests.
 *
 * Weaker than the code on purpose, so that the result does not rest on it:
 *   - a row may be claimed at any moment, whoever has it and whatever the time is;
 *   - the rows have no owner and no nonce: the epoch is all that is compared;
 *   - every clock shows anything at any time.
 */

#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef ROWS
#define ROWS 1
#endif
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef TIMES
#define TIMES 6		/* the timestamps are 0..TIMES-1, at most 8 */
#endif
#ifndef EPOCHS
#define EPOCHS 4	/* claims and releases of a row */
#endif
/* DUPLICATES_ONLY leaves out the second invariant: a mutant has to break the first. */

mtype = { Claim, Renew, Release };

typedef Row {
	byte epoch;
	byte until;
	byte issued	/* a bit for each timestamp; no process knows them */
};

typedef Request {
	mtype kind;	/* 0: there is none */
	byte row;
	byte epoch;
	byte end	/* of a release */
};

/* What a process knows. A crash forgets it. */
typedef Process {
	byte row;
	byte epoch;	/* 0: it has no lease */
	byte next;	/* no timestamp to come is before this */
	byte limit;	/* confirmed: every timestamp is before this */
	bool waits	/* for the reply to its last request */
};

Row store[ROWS];
Process process[PROCESSES];

/* What is under way from each process: its last request, and an older one that is
   late. More of them are lost. */
Request last[PROCESSES], late[PROCESSES];

#ifdef STORE_LOSES_WRITES
Row backup;
bool restored;
#endif
#ifdef ROW_DELETED
bool deleted;
#endif

#ifdef RENEW_WITHOUT_CAS
#define SAME(q) true
#else
#define SAME(q) (q.epoch == store[q.row].epoch)
#endif

#define P process[p]

/* lose ends a lease. */
inline lose(p) {
	P.row = 0; P.epoch = 0; P.next = 0; P.limit = 0; P.waits = false
}

/* send makes room for a request and sends it. */
inline send(p, what, aRow, anEpoch, anEnd) {
	if
	:: late[p].kind = last[p].kind; late[p].row = last[p].row;
	   late[p].epoch = last[p].epoch; late[p].end = last[p].end
	:: true
	fi;
	last[p].kind = what; last[p].row = aRow; last[p].epoch = anEpoch; last[p].end = anEnd
}

proctype live(byte p) {
	byte x;
end:	do
	:: atomic { P.epoch == 0 && !P.waits ->
		select(x : 0 .. ROWS - 1);
		send(p, Claim, x, 0, 0);
		P.waits = true; x = 0 }

	:: atomic { P.epoch > 0 && !P.waits ->
		send(p, Renew, P.row, P.epoch, 0);
		P.waits = true }

	/* Issue. A clock at or beyond the limit is ignored. */
	:: atomic { P.epoch > 0 && P.next < P.limit ->
		select(x : P.next .. P.limit - 1);
		assert(!(store[P.row].issued & (1 << x)));	/* not twice */
#ifndef DUPLICATES_ONLY
		assert(x < store[P.row].until);	/* and the store knows that it may be */
#endif
		store[P.row].issued = store[P.row].issued | (1 << x);
		P.next = x + 1; x = 0 }

	/* Release: sealed first, so that next is the end. */
	:: atomic { P.epoch > 0 && !P.waits ->
		send(p, Release, P.row, P.epoch, P.next);
#ifdef RELEASE_BEFORE_SEAL
		P.waits = true
#else
		lose(p)
#endif
		}

	/* It waits no longer. The request may have been done, or may yet be. */
	:: atomic { P.waits ->
#ifdef TIMEOUT_AS_SUCCESS
		if
		:: P.epoch > 0 && last[p].kind == Renew && P.limit < TIMES -> P.limit++
		:: else
		fi;
#endif
		P.waits = false }

	/* A crash, or a refusal by the store. What was sent stays under way. */
	:: atomic { P.epoch > 0 || P.waits -> lose(p) }
	od
}

/* serve does a request. The reply gets through or is lost. That it may be late is
   in the model too: what a process is now permitted, it may do later. */
inline serve(q, reply) {
	if
	:: q.kind == Claim && store[q.row].epoch < EPOCHS ->
		x = store[q.row].until;
		select(from : x .. TIMES);	/* max(until, the store's clock) */
		store[q.row].epoch++;
		store[q.row].until = (from + WINDOW < TIMES -> from + WINDOW : TIMES);
#ifdef START_AT_OWN_CLOCK
		select(from : 0 .. TIMES);
#endif
		if
		:: reply && P.waits && P.epoch == 0 ->
			P.row = q.row; P.epoch = store[q.row].epoch;
			P.next = from; P.limit = store[q.row].until;
			P.waits = false
		:: true
		fi
	:: q.kind == Renew && SAME(q) ->
		from = store[q.row].until;
		x = (from + WINDOW < TIMES -> from + WINDOW : TIMES);
		select(from : from .. x);
		store[q.row].until = from;
		if
		:: reply && P.waits -> P.limit = from; P.waits = false
		:: true
		fi
	:: q.kind == Release && q.epoch == store[q.row].epoch && store[q.row].epoch < EPOCHS ->
		store[q.row].epoch++;
		store[q.row].until = q.end;
		if
		:: reply && P.waits -> lose(p)
		:: true
		fi
	:: else	/* refused */
	fi;
	x = 0; from = 0
}

/* The store does any request at any time, as often as it likes. One that it never
   does is lost. */
proctype shared() {
	byte p, x, from;
end:	do
	:: atomic { select(p : 0 .. PROCESSES - 1); serve(last[p], true); p = 0 }
	:: atomic { select(p : 0 .. PROCESSES - 1); serve(late[p], false); p = 0 }
#ifdef ROW_DELETED
	/* and the next claim makes it anew */
	:: atomic { !deleted -> deleted = true; store[0].epoch = 0; store[0].until = 0 }
#endif
#ifdef STORE_LOSES_WRITES
	:: atomic { !restored -> backup.epoch = store[0].epoch; backup.until = store[0].until }
	:: atomic { !restored -> restored = true;
		store[0].epoch = backup.epoch; store[0].until = backup.until;
		backup.epoch = 0; backup.until = 0 }
#endif
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
