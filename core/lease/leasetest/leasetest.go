package leasetest

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Store is what the suite certifies. The suite sees rows through Rows only. Rows must
// show each write that was acknowledged before the call, through whichever handle. It
// must return no rows and no error for a space in which nobody has claimed yet.
type Store interface {
	leasestore.Store
	leasestore.Lister
}

// A Harness is one store under test and what can be done to it. Open is needed. Without
// one of the others, the subtests that need it are skipped and say so.
type Harness struct {
	// Open returns a further handle on the store. It is as independent of the others as
	// that of another process: it has its own connections, and shares nothing in memory.
	// Open closes it by t.Cleanup.
	Open func(t *testing.T) Store

	// Namespace begins the name of every namespace that the suite uses in this store. So
	// its rows can be told from others and cleared away. It has at most 40 bytes, all of
	// them allowed in a namespace. Empty: the suite takes any names, "." and ".." among
	// them.
	Namespace string

	// SetUntil writes Until of a row by hand, and nothing else.
	SetUntil func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis)

	// Delete deletes a row by hand. It leaves the record that the space was made.
	Delete func(t *testing.T, s leasestore.Space, worker int64)

	// SetClock sets the store's clock, which then stands or goes on from there.
	// With it the suite does not sleep.
	SetClock func(t *testing.T, now time.Time)

	// Restart stops the store and starts it again, as after a crash. What was
	// acknowledged must survive. A store that does not promise that leaves it nil.
	// Handles opened before are not used any more.
	Restart func(t *testing.T)

	// Stall makes all operations on the store hang until resume is called. It includes
	// those of handles already open.
	Stall func(t *testing.T) (resume func())

	// LosesReplies returns a handle whose operations are done. Its caller never gets the
	// replies.
	LosesReplies func(t *testing.T) Store

	// Unreachable returns a handle that cannot reach the store. Its port is wrong, or its
	// password.
	Unreachable func(t *testing.T) Store

	// Secret is a part of the password by which the handles reach the store. No
	// error may contain it.
	Secret string

	// Seed fixes the choices of the random subtests. 0: a different seed each time. The
	// log names it.
	Seed uint64
}

// Run certifies a store. Each claim about it is a subtest of t, which calls open for a
// fresh, empty store. A store on a server may take the same place each time, if its
// Namespace is a new one.
//
// The suite sleeps for less than a second in all, unless operations are slow.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, claim := range claims {
		t.Run(claim.name, func(t *testing.T) { claim.check(newSuite(t, open(t))) })
	}
}

// claims are what the suite checks, the most basic first. A store that fails the first
// will fail most others too.
var claims = []struct {
	name  string
	check func(s *suite)
}{
	// space.go
	{"FirstClaimMakesTheRows", firstClaimMakesTheRows},
	{"RowsMakesNone", rowsMakesNone},
	{"SimultaneousFirstClaimsGetDistinctRowsOfOneSpace", simultaneousFirstClaims},
	{"SpacesDoNotSeeEachOther", spacesDoNotSeeEachOther},
	{"NamespaceKeepsItsLayout", namespaceKeepsItsLayout},
	{"LargeSpaceWorks", largeSpaceWorks},
	{"WhatIsNoSpaceIsRefused", whatIsNoSpaceIsRefused},

	// claim.go
	{"ClaimsTakeEachFreeRowOnce", claimsTakeEachFreeRowOnce},
	{"ClaimsChooseAtRandom", claimsChooseAtRandom},
	{"ClaimTakesOnlyWhatItMay", claimTakesOnlyWhatItMay},
	{"ClaimTakesOverAnExpiredRow", claimTakesOverAnExpiredRow},
	{"GuardDelaysTakeover", guardDelaysTakeover},
	{"HoldersAreListed", holdersAreListed},
	{"ClaimIsRefusedWhenClocksAreApart", claimIsRefusedWhenClocksAreApart},
	{"NoFreeWorkerErrorNamesTheEarliest", noFreeWorkerErrorNamesTheEarliest},
	{"NoFreeWorkerErrorNamesRowsFarAhead", noFreeWorkerErrorNamesRowsFarAhead},
	{"ClaimDeliveredTwiceHoldsOneRow", claimDeliveredTwiceHoldsOneRow},

	// holder.go
	{"RenewalRaisesTheLimit", renewalRaisesTheLimit},
	{"RenewalNeverLowersTheLimit", renewalNeverLowersTheLimit},
	{"UnchangedRenewalSucceeds", unchangedRenewalSucceeds},
	{"RenewalByAnotherIsRefused", requestsByAnotherAreRefused(askRenewal)},
	{"LapsedRenewalIsRefused", lapsedRenewalIsRefused},
	{"ReleaseFreesTheRowAtOnce", releaseFreesTheRowAtOnce},
	{"ReleaseByAnotherIsRefused", requestsByAnotherAreRefused(askRelease)},
	{"StaleHolderHasNoEffect", staleHolderHasNoEffect},
	{"RequestDeliveredTwiceIsDoneOnce", requestDeliveredTwiceIsDoneOnce},

	// fence.go
	{"FenceRaisesEveryRow", fenceRaisesEveryRow},
	{"FenceEndsLeases", fenceEndsLeases},
	{"FenceMakesTheRows", fenceMakesTheRows},
	{"FenceIsRefused", fenceIsRefused},

	// retire.go
	{"RetiredRowIsNeverClaimed", retiredRowIsNeverClaimed},
	{"UsedRowIsNotRetired", usedRowIsNotRetired},
	{"OneOfClaimsAndRetirementsWins", oneOfClaimsAndRetirementsWins},
	{"RetirementIsUndone", retirementIsUndone},

	// random.go
	{"RandomOperationsDoWhatThePureFunctionsSay", randomOperations},

	// race.go
	{"OneOfSimultaneousRenewalsWins", oneOfSimultaneousRenewalsWins},
	{"OneOfSimultaneousClaimsWins", oneOfSimultaneousClaimsWins},
	{"OneOfIdenticalRequestsWins", oneOfIdenticalRequestsWins},
	{"ConcurrentOperationsAreLinearizable", concurrentOperationsAreLinearizable},

	// fault.go
	{"DoneContextWritesNothing", doneContextWritesNothing},
	{"EndingContextEndsTheCall", endingContextEndsTheCall},
	{"LostReplyIsUnknown", lostReplyIsUnknown},
	{"DeletedRowStaysGone", deletedRowStaysGone},
	{"LoweredLimitIsShownAndRaised", loweredLimitIsShownAndRaised},
	{"RowsSurviveARestart", rowsSurviveARestart},
	{"UnreachableStoreKeepsItsSecret", unreachableStoreKeepsItsSecret},
}
