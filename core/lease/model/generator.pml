/*
 * One generator, its threads, and the end of a lease.
 *
 * Threads take numbers from one packed word of the term that they have loaded, by
 * Add, or by compare-and-swap. The lease ends: the word is sealed, what the seal
 * returns is written to the store as the end of the range, and another process
 * claims the row, from there on. The generator gets a term of another worker, whose
 * row that process has given back.
 */

#ifndef THREADS
#define THREADS 2
#endif
#ifndef CALLS
#define CALLS 2		/* of each thread */
#endif
#ifndef LIMIT
#define LIMIT 3		/* of each term: its numbers are below; one renewal adds one */
#endif
#define WORKERS 2
#define SEALED 100	/* above every number, Adds included */
#define NUMBERS 8

typedef Term {
	byte word;	/* the last number taken, and one */
	byte limit
};

/* A term has the number of its worker: no worker has a second term here. */
Term term[WORKERS];
byte current;		/* the generator's pointer to its term */
byte stored[WORKERS];	/* reserved_until */
byte issued[WORKERS];	/* a bit for each number */
byte busy = THREADS;

#ifdef CLOSED_FLAG
bool closed[WORKERS];
#endif

/* STATE_APART: one word for the generator, beside the number of its worker. */
#ifdef STATE_APART
#define WORD term[0].word
#define CEILING term[0].limit
#else
#define WORD term[w].word
#define CEILING term[w].limit
#endif

/* issue returns number n of worker w. */
inline issue(w, n) {
	assert(!(issued[w] & (1 << n)));	/* not twice */
#ifndef DUPLICATES_ONLY
	assert(n < stored[w]);	/* and the store knows that it may be */
#endif
	issued[w] = issued[w] | (1 << n)
}

#ifdef CLOSED_FLAG
#define ENDED closed[w]
#else
#define ENDED (WORD >= SEALED)
#endif

proctype thread() {
	byte w, n, seen, calls;
	do
	:: calls == CALLS -> break
	:: calls < CALLS ->
		calls++;
		w = current;	/* load the pointer */
		do
		:: atomic { ENDED -> break }	/* the term is over; this call gives up */
		:: atomic { !ENDED -> n = WORD }	/* look */
			if
			/* take: one Add. Here a tick is one number: the same as in look, it is
			   below the limit as that was, and was not sealed; another may be beyond
			   everything. */
			:: n < CEILING ->
				seen = n;
				atomic {
					n = WORD; WORD++;
					if
					:: n == seen -> seen = 0; issue(w, n); n = 0; goto over
					:: else -> seen = 0
					fi
				}
				/* settle: a number at or beyond the limit waits until the limit
				   is raised, or the term is over; here for ever, if it is neither.
				   The limit is loaded first, and the word after it. */
end_settle:			do
#ifdef SEAL_SEEN_FIRST
				:: atomic { ENDED || n >= SEALED -> n = 0; goto over }
				:: atomic { !ENDED && n < SEALED -> skip };
					if
					:: atomic { n < CEILING -> issue(w, n); n = 0; goto over }
					:: n >= CEILING
					fi
#else
				:: atomic { n >= SEALED -> n = 0; goto over }
				:: atomic { n < SEALED && n < CEILING -> skip };
					atomic {
						if
						:: ENDED -> skip
						:: else -> issue(w, n)
						fi;
						n = 0; goto over
					}
				:: atomic { n < SEALED && n >= CEILING && ENDED -> n = 0; goto over }
#endif
				od
			/* reserve: one compare-and-swap */
			:: n < CEILING ->
				atomic {
					if
					:: WORD == n -> WORD = n + 1
					:: else -> n = 0; goto again
					fi
				}
				atomic { issue(w, n); n = 0; goto over }
			:: atomic { n >= CEILING -> n = 0 }	/* wait */
			fi;
again:			skip
		od;
over:		n = 0; seen = 0; w = 0
	od;
	busy--
}

/* The lease: renews once, then ends; the renewal may be confirmed after the seal. */
proctype holder() {
	byte end;
	bool renewed;
	if
	:: stored[0]++; term[0].limit++; renewed = true	/* confirmed first, raised then */
	:: true
	fi;
	/* end of the term */
#ifdef CLOSED_FLAG
	closed[0] = true;
	end = term[0].word;
#endif
#ifdef STATE_APART
	/* The generator goes on: the word is kept, the worker changes. */
	end = term[0].word;
	current = 1;
#endif
#ifndef CLOSED_FLAG
#ifndef STATE_APART
	atomic { end = term[0].word; term[0].word = SEALED }	/* Swap */
#endif
#endif
#ifndef CLOSED_FLAG
#ifndef STATE_APART
	/* What was taken at or beyond the limit is not returned. */
	if
	:: end > term[0].limit -> end = term[0].limit
	:: else
	fi;
	if
	:: !renewed -> stored[0]++; term[0].limit++
	:: true
	fi;
#endif
#endif
	/* Released; another process claims the row, and issues all from there on. */
	atomic {
		stored[0] = NUMBERS;
		assert((issued[0] >> end) == 0);
		issued[0] = issued[0] | ((255 << end) & 255)
	}
#ifndef STATE_APART
	current = 1
#endif
}

init {
	byte k;
	atomic {
		for (k : 0 .. WORKERS - 1) { term[k].limit = LIMIT; stored[k] = LIMIT }
		for (k : 1 .. THREADS) { run thread() }
		k = 0;
		run holder()
	}
}
