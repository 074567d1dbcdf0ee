package leasetest

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

	// renew.go
	{"RenewalRaisesTheLimit", renewalRaisesTheLimit},
	{"RenewalNeverLowersTheLimit", renewalNeverLowersTheLimit},
	{"UnchangedRenewalSucceeds", unchangedRenewalSucceeds},
	{"RenewalByAnotherIsRefused", renewalByAnotherIsRefused},
	{"LapsedRenewalIsRefused", lapsedRenewalIsRefused},

	// release.go
	{"ReleaseFreesTheRowAtOnce", releaseFreesTheRowAtOnce},
	{"ReleaseByAnotherIsRefused", releaseByAnotherIsRefused},
	{"StaleHolderHasNoEffect", staleHolderHasNoEffect},
	{"ClaimDeliveredTwiceHoldsOneRow", claimDeliveredTwiceHoldsOneRow},
	{"RequestDeliveredTwiceIsDoneOnce", requestDeliveredTwiceIsDoneOnce},

	// fence.go
	{"FenceRaisesEveryRow", fenceRaisesEveryRow},
	{"FenceEndsLeases", fenceEndsLeases},
	{"FenceMakesTheRows", fenceMakesTheRows},
	{"FenceIsRefused", fenceIsRefused},

	// model.go
	{"RandomOperationsDoWhatThePureFunctionsSay", randomOperations},

	// race.go
	{"OneOfSimultaneousRenewalsWins", oneOfSimultaneousRenewalsWins},
	{"OneOfSimultaneousClaimsWins", oneOfSimultaneousClaimsWins},
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
