package leasetest

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A Store is what the suite certifies. The suite reads rows only by the method Rows, which must
// show every write that was acknowledged before the call, through whichever handle, and must
// return no rows and no error for a space that was never claimed in.
type Store interface {
	leasestore.Store
	leasestore.Lister
}

// A Harness is a store under test and the means to manipulate it. Open is required. Subtests
// that need another hook are skipped with a message if it is nil.
type Harness struct {
	// Open returns another handle on the store, which is as independent of the others as one of
	// another process: it has its own connections and shares no memory. Open registers its end
	// with t.Cleanup.
	Open func(t *testing.T) Store

	// Namespace begins the name of every namespace that the suite uses in this store, so that
	// its rows can be recognized and removed. It has at most 40 bytes, all of them allowed in a
	// namespace. If it is empty, the suite uses arbitrary names, including "." and "..".
	Namespace string

	// SetUntil writes Until of a row by hand, and nothing else.
	SetUntil func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis)

	// Delete deletes a row by hand, and leaves the record that the space was made.
	Delete func(t *testing.T, s leasestore.Space, worker int64)

	// SetClock sets the store's clock, which then stands still or continues from there. With it
	// the suite does not sleep.
	SetClock func(t *testing.T, now time.Time)

	// Restart stops the store and starts it again, as after a crash. What was acknowledged must
	// survive; leave Restart nil if the store does not promise that. Handles opened before are
	// not used again.
	Restart func(t *testing.T)

	// Stall makes all operations on the store hang until resume is called, including those of
	// handles already open.
	Stall func(t *testing.T) (resume func())

	// LosesReplies returns a handle whose operations take effect while their replies never
	// reach the caller.
	LosesReplies func(t *testing.T) Store

	// Unreachable returns a handle that cannot reach the store, because its port or its
	// password is wrong.
	Unreachable func(t *testing.T) Store

	// Secret is a part of the password with which the handles reach the store. No error may
	// contain it.
	Secret string

	// Seed determines the choices of the random subtests. If it is 0, each run has a different
	// seed, which the log shows.
	Seed uint64
}

// Run certifies a store. Each claim about it is a subtest of t, which calls open for a fresh,
// empty store. A store on a server may use the same place every time if its Namespace is a new
// one.
//
// The suite sleeps for less than a second in all, unless operations are slow.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, claim := range claims {
		t.Run(claim.name, func(t *testing.T) { claim.check(newSuite(t, open(t))) })
	}
}

// claims are the checks of the suite, the most basic first: a store that fails those will fail
// most others too.
var claims = []struct {
	name  string
	check func(s *suite)
}{
	// space.go
	{"FirstClaimMakesTheRows", firstClaimMakesTheRows},
	{"RowsMakesNone", rowsMakesNone},
	{"SimultaneousFirstClaimsGetDistinctRowsOfOneSpace", simultaneousFirstClaims},
	{"SpacesAreListed", spacesAreListed},
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

	// forgood.go
	{"ClaimForGoodLasts", claimForGoodLasts},

	// history.go
	{"HoldersAreKept", holdersAreKept},
	{"TheLastHundredHoldersAreKept", theLastHundredHoldersAreKept},
	{"OneOfSimultaneousClaimsIsRecorded", oneOfSimultaneousClaimsIsRecorded},
	{"RetirementIsRecorded", retirementIsRecorded},
	{"FencedTimeIsOfSomebody", fencedTimeIsOfSomebody},
	{"ClaimsOfAnOlderVersionAreSeen", claimsOfAnOlderVersionAreSeen},

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
