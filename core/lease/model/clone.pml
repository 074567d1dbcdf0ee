/*
 * A process is copied while it runs: a virtual machine that is cloned, a memory
 * image that is restored twice.
 *
 * No protocol keeps the two from issuing the same timestamps below the limit that
 * both had. With nonces that is all: the first write of either makes the other's
 * next one fail. With the epoch and the owner alone, both go on for ever.
 *
 * "Had" includes what a request under way at the copy gets for either of them.
 *
 * Each request has a fresh nonce, also if the copy draws the same random numbers: the
 * nanosecond at which they are drawn is in it. With SAME_TOKENS it is not, and the two
 * draw the same nonces after the copy, though each sends its own requests.
 */

#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef TIMES
#define TIMES 4		/* the timestamps are 0..TIMES-1 */
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef WRITES
#define WRITES 4	/* requests that are sent; each has a fresh nonce */
#endif
#define PROCESSES 2	/* of which the copy is one */

mtype = { Claim, Renew, Release };

typedef Row {
	byte epoch;	/* nobody's epoch is had twice: it stands for the owner, too */
	byte nonce;
	byte until
};

typedef Request {
	mtype kind;	/* 0: there is none */
	byte epoch;
	byte nonce;
	byte known;	/* a bit for each nonce */
	byte end;
#ifdef SAME_TOKENS
	byte from;	/* who has sent it */
#endif
	bool early	/* under way at the copy: the copy waits for its reply as well */
};

typedef Process {
	byte epoch;
	byte known;	/* of the last confirmed write, and of those since */
	byte next;
	byte limit;
#ifdef SAME_TOKENS
	byte drawn;	/* the next nonce, since the copy */
#endif
	byte waits	/* for the reply to the request with this nonce */
};

Row store;
Process process[PROCESSES];
Request under_way[PROCESSES];
byte writes;
byte issued;	/* the first timestamp issued, and one (see guard.pml); 0: none yet */
bool copied;
byte held;	/* the limit that both had */

#ifdef NO_NONCE
#define MINE(q) (q.epoch == store.epoch)
#else
#define MINE(q) (q.epoch == store.epoch && (q.known & (1 << store.nonce)))
#endif

#ifdef SAME_TOKENS
#define NONCE (copied -> P.drawn : writes)
#define MARK Q.from = p; P.drawn++
#define HIS (Q.early || p == Q.from)
#else
#define NONCE writes
#define MARK skip
#define HIS true	/* nobody else waits for this nonce */
#endif

#define P process[p]
#define Q under_way[q]

inline lose(p) {
	P.epoch = 0; P.known = 0; P.next = 0; P.limit = 0; P.waits = 0
}

/* send takes the place of any request. */
inline send(p, what, anEnd) {
	select(q : 0 .. PROCESSES - 1);
	Q.kind = what; Q.epoch = P.epoch; Q.nonce = NONCE; Q.known = P.known; Q.end = anEnd; Q.early = false;
	P.waits = NONCE;
	if
	:: P.epoch > 0 -> P.known = P.known | (1 << NONCE)
	:: else
	fi;
	MARK;
	q = 0;
	writes++
}

proctype live(byte p) {
	byte x, q;
end:	do
	:: atomic { P.epoch == 0 && P.waits == 0 && writes <= WRITES -> send(p, Claim, 0) }
	:: atomic { P.epoch > 0 && P.waits == 0 && writes <= WRITES -> send(p, Renew, 0) }
	:: atomic { P.epoch > 0 && P.next < P.limit && issued == 0 ->
		select(x : P.next .. P.limit - 1);
		issued = x + 1;
		P.next = x + 1; x = 0 }
	:: atomic { P.epoch > 0 && P.next < issued && issued <= P.limit && issued > held -> assert(false) }
	:: atomic { P.epoch > 0 && P.waits == 0 && writes <= WRITES -> send(p, Release, P.next); lose(p) }
	:: atomic { P.waits -> P.waits = 0 }
	:: atomic { P.epoch > 0 || P.waits -> lose(p) }
	/* The copy takes the place of the other process. */
	:: atomic { !copied && (P.epoch > 0 || P.waits) ->
		copied = true;
		held = P.limit;
#ifdef SAME_TOKENS
		P.drawn = writes; process[1 - p].drawn = writes;
#endif
		process[1 - p].epoch = P.epoch; process[1 - p].known = P.known; process[1 - p].next = P.next;
		process[1 - p].limit = P.limit; process[1 - p].waits = P.waits;
		if
		:: P.waits && under_way[0].nonce == P.waits -> under_way[0].early = true
		:: P.waits && under_way[1].nonce == P.waits -> under_way[1].early = true
		:: else
		fi }
	od
}

/* A reply reaches any of those who wait for it. */
inline reply(p, begin) {
	for (p : 0 .. PROCESSES - 1) {
		if
		:: P.waits == Q.nonce && HIS ->
			P.next = (Q.kind == Claim -> begin : P.next);
			P.epoch = store.epoch; P.known = 1 << store.nonce; P.limit = store.until; P.waits = 0;
			held = (Q.early && held < store.until -> store.until : held)
		:: true
		fi
	}
	p = 0
}

proctype shared() {
	byte p, q, x, from;
end:	do
	:: atomic {
		select(q : 0 .. PROCESSES - 1);
		if
		:: Q.kind == Claim && store.epoch < EPOCHS ->
			x = store.until;
			select(from : x .. TIMES);
			store.epoch++; store.nonce = Q.nonce;
			store.until = (from + WINDOW < TIMES -> from + WINDOW : TIMES);
			reply(p, from)
		:: Q.kind == Renew && MINE(Q) ->
			from = store.until;
			x = (from + WINDOW < TIMES -> from + WINDOW : TIMES);
			select(from : from .. x);
			store.nonce = Q.nonce;
			store.until = from;
			reply(p, 0)
		:: Q.kind == Release && MINE(Q) && store.epoch < EPOCHS ->
			store.epoch++; store.nonce = Q.nonce;
			store.until = Q.end
		:: else
		fi;
		q = 0; x = 0; from = 0 }
	od
}

init {
	byte p;
	atomic {
		writes = 1;
		for (p : 0 .. PROCESSES - 1) { run live(p) }
		p = 0;
		run shared()
	}
}
