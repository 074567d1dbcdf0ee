package gormcases

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the plugin is to be accepted by, and the case that shows it. A name with
// "func " before it is a test outside of the shared cases.
var acceptance = map[string]string{
	"CreateStructPtr":                "StructPointerGetsAKey",
	"CreateStructValueError":         "StructByValueIsErrInvalidValue",
	"CreateSlice":                    "SliceGetsKeysInOrderOfOneFill",
	"CreatePtrSlice":                 "PointerSliceGetsKeys",
	"CreateNilElement":               "NilElementIsGORMsErrorNamingItsIndex",
	"CreateArrayPtr":                 "ArrayPointerGetsKeys",
	"CreateArrayValueError":          "ArrayByValueIsErrInvalidValue",
	"CreateEmptySlice":               "EmptySliceIsGORMsError",
	"UserIDKept":                     "KeyOfTheCallerIsKept",
	"NegativeIDKept":                 "NegativeKeyOfTheCallerIsKept",
	"MixedBatch":                     "OnlyMissingKeysOfABatchAreAssigned",
	"MapModel":                       "MapGetsAKeyUnderTheColumnName",
	"MapPtr":                         "MapPointerGetsAKey",
	"MapSlice":                       "SliceOfMapsGetsKeysAndKeepsItsLength",
	"MapSlicePtrLengthKept":          "SliceOfMapsGetsKeysAndKeepsItsLength",
	"MapSliceBackfillNotOverwritten": "KeysOfMapsAreNotOverwrittenByLastInsertId",
	"MapKeyVariants":                 "EverySpellingOfTheKeyInAMapIsSeen",
	"MapExprKept":                    "ExpressionForTheKeyInAMapIsKept",
	"MapNilZeroFilled":               "EmptyKeyInAMapIsFilledWhereItStands",
	"MapTableNoModelDocumented":      "MapWithoutAModelGetsNone",
	"ModelWithForeignStructError":    "ForeignStructIsAnErrorWhereGORMPanics",
	"CreateInBatches":                "CreateInBatchesGetsKeys",
	"CreateBatchSizeManyChildren":    "CreateBatchSizeCarriesMoreChildrenThanOneStatementCan",
	"ParameterLimit":                 "MoreRowsThanParametersAreAnErrorAndRolledBack",
	"SaveNew":                        "SaveOfANewRowGetsAKey",
	"SavePresetIDChildren":           "UpsertOfAPresetKeyWithChildrenWorksWhereSaveCannot",
	"SaveAfterFailedCreate":          "SaveAfterAFailedCreateNeedsAnUpsert",
	"SaveSliceMixed":                 "SaveOfAMixedSliceKeepsAndAssigns",
	"FirstOrCreate":                  "FirstOrCreateGetsAKey",
	"FirstOrCreateTextCondition":     "KeyInATextConditionIsNotTakenByFirstOrCreate",
	"GraphAllKinds":                  "EveryRowOfAGraphGetsAKey",
	"SharedBelongsToPointer":         "GraphsOfASliceGetKeys",
	"SharedPointerIsOneRow":          "RowThatSeveralPointToIsSavedOnceWithItsAssociations",
	"UpdatesCreatesAssociations":     "UpdatesGiveKeysToNewAssociations",
	"FullSaveAssociations":           "FullSaveAssociationsKeepsOldKeysAndAssignsNew",
	"AssociationAppend":              "AssociationAppendGetsKeys",
	"AssociationAppendMap":           "func TestGormPluginFillsMapsAppendedToAnAssociation",
	"AssociationReplace":             "AssociationReplaceGetsKeys",
	"AssociationSliceOwners":         "AssociationOfSeveralOwnersGetsKeys",
	"M2MAutoJoin":                    "EveryRowOfAGraphGetsAKey",
	"M2MCustomJoin":                  "JoinTableWithAKeyOfItsOwnGetsOne",
	"M2MCustomJoinNotUnique":         "JoinTableWithAKeyNeedsAUniquePair",
	"Tree":                           "TreeGetsKeys",
	"TreeRootPlainParent":            "RootOfATreeNeedsAParentThatCanBeNull",
	"Polymorphic":                    "PolymorphicChildrenGetKeys",
	"StringFKRejected":               "NarrowForeignKeyIsRefusedAtFirstUse",
	"Int32FKRejected":                "NarrowForeignKeyIsRefusedAtFirstUse",
	"NullFKKinds":                    "ForeignKeysOfAllKindsReceiveTheKey",
	"EmbeddedValue":                  "EmbeddedKeyIsFilled",
	"EmbeddedNilPointer":             "EmbeddedKeyIsFilled",
	"EmbeddedPrefix":                 "EmbeddedKeyIsFilled",
	"ShadowGormModel":                "KeyOutsideShadowsThatOfGORMsModel",
	"PointerPKNil":                   "PointerKeyIsFilledWhenNilAndWhenAtZero",
	"PointerPKZero":                  "PointerKeyIsFilledWhenNilAndWhenAtZero",
	"PKNotNamedID":                   "KeyOfAnotherNameIsFilled",
	"TenantPK":                       "OnlyIDOfACompositeKeyIsFilled",
	"JunctionNotInvented":            "KeyThatIsAForeignKeyIsNotInvented",
	"SharedPKOneToOne":               "KeyTurnsForeignWhenItsParentIsParsed",
	"TagOptIn":                       "TaggedColumnsOfAllKindsAreFilled",
	"TagOptInText":                   "TextKeyIsDecimalAndGoesToForeignKeys",
	"TagOptOut":                      "TagMinusOptsOut",
	"HookSeesID":                     "HookSeesTheKey",
	"HookOverrides":                  "HookOverridesTheKey",
	"HookZeroesRefilled":             "KeyThatAHookZeroesIsRefilled",
	"HookAddsChildren":               "ChildrenThatAHookAddsGetKeys",
	"SkipHooks":                      "SkippedHooksDoNotSkipKeys",
	"DryRun":                         "DryRunAssignsAndWritesNothing",
	"ToSQL":                          "ToSQLShowsTheKeyThatACreateThenWrites",
	"PrepareStmt":                    "PreparedStatementsChangeNothing",
	"NestedTx":                       "RetryAfterAFailureWritesTheSameKeys",
	"TransactionRetrySameID":         "RetriedTransactionWritesTheSameKeys",
	"SavepointRetrySameID":           "SavepointsLeaveMemoryRight",
	"UpsertRolledBack":               "KeyOfARowThatWasRolledBackIsGoodForTheNextTry",
	"DisableNestedTransaction":       "DisabledNestedTransactionsChangeNothing",
	"SkipDefaultTransactionOrder":    "SkipDefaultTransactionStillAssignsBeforeTheInsert",
	"SelectAddsPK":                   "SelectWithoutTheKeyWritesTheKey",
	"SelectNested":                   "NestedSelectWritesTheKeys",
	"OmitPK":                         "OmittedKeyStaysZero",
	"ReadOnlyPK":                     "ReadOnlyKeyIsLeftAlone",
	"DBDefaultPK":                    "KeyThatTheDatabaseFillsIsLeftAlone",
	"GenericsCreate":                 "GenericsGetKeys",
	"GenericsSetCreate":              "func TestGormPluginFillsGenericSet",
	"GenericsSelect":                 "func TestGormPluginFillsGenericSet",
	"SoftDeleteUpsert":               "SoftDeletedRowIsTheStoredRow",
	"Unscoped":                       "ScopesUnscopedAndTableChangeNothing",
	"DoNothingStruct":                "DoNothingGivesTheStoredKeyAndItsChildren",
	"DoNothingSlice":                 "DoNothingOnASliceGivesEachItsStoredKey",
	"DoUpdateStruct":                 "DoUpdateOfOneGivesTheStoredKeyAndItsChildren",
	"DoUpdateSlice":                  "DoUpdateOfASliceGivesEachItsStoredKey",
	"DoUpdateWhere":                  "FilteredDoUpdateGivesNoRowTheKeyOfAnother",
	"DoUpdateKeyRefused":             "UpsertThatRewritesTheKeyIsRefused",
	"UpsertParentChildren":           "DoNothingOnASliceGivesEachItsStoredKey",
	"BelongsToConflict":              "BelongsToThatIsStoredAlreadyIsTheOneReferredTo",
	"M2MConflict":                    "ManyToManyThatIsStoredAlreadyIsTheOneJoined",
	"MySQLChildConflictID":           "ChildThatIsStoredAlreadyIsRefusedOrRight",
	"InsertIgnore":                   "IgnoringModifierGivesTheStoredKey",
	"MapUpsert":                      "MapsGetTheStoredKeys",
	"ClientFoundRows":                "func TestGormPluginCases", // the target MariaDBThatCountsFoundRows
	"CardinalityPassedOn":            "func TestGormPluginPassesPostgreSQLsCardinalityErrorOn",
	"ExpressionIndex":                "RowThatAnExpressionMayHaveMetIsUnresolved",
	"UndeclaredIndex":                "UniqueKeyThatOnlyTheDatabaseKnowsIsSeen",
	"RoundedColumns":                 "ValueThatItsColumnShortensIsFoundAgain",
	"PrefixIndex":                    "RowsLikeEachOtherInAPrefixAreFound",
	"KeyAsItsOwnTarget":              "KeyThatIsTheTargetMayBeSetToItself",
	"DerivedKeyType":                 "KeyOfATypeOfItsOwnIsRefusedUntilItsTagSaysWhoGivesIt",
	"NullReferenceDeleted":           "NullReferenceIsGoneAfterAssociationDelete",
	"NullReferencePreloaded":         "NullReferenceOfACompositeTreeIsPreloaded",
	"PointerReferenceDocumented":     "PointerReferenceIsWrittenBackAfterAssociationDelete",
	"OldReferenceDocumented":         "ReferenceOfAFilledStructIsKeptWhereNullIsRead",
	"UnresolvedZeroOrError":          "UnresolvedKeyIsZeroAndAnErrorWhereAssociationsFollow",
	"DBResolverReplica":              "func TestGormPluginStandsBesideTheResolver",
	"GeneratorErrorRollback":         "SourceErrorForAChildRollsTheParentBack",
	"GeneratorErrorInTransaction":    "SourceErrorLeavesTheTransactionUsable",
	"GeneratorContext":               "ContextReachesTheSource",
	"GeneratorSameConn":              "SourceIsAskedBeforeAConnectionIsTaken",
	"ConcurrentRace":                 "ConcurrentCreatesGetKeysOfTheirOwn",
	"ConcurrentUpserts":              "ConcurrentUpsertsMeetTheSameRows",
	"TwoDBsOneInstance":              "OnePluginServesTwoDatabases",
	"UseTwice":                       "func TestUseTwiceIsErrRegistered",
	"NotInstalled":                   "func TestInstalledTellsWhetherUseWasCalled",
	"MissingAnchorError":             "func TestUseNamesTheCallbackThatIsMissing",
	"RemovedCallback":                "CallbackThatIsRemovedLaterLeavesTheKeysRight",
	"SamePointerTwice":               "SamePointerTwiceIsADuplicateKey",
	"DDLPerDialect":                  "KeysAreBigintAndNotCounted",
	"SecondMigrateNoop":              "SecondMigrationChangesNothing",
	"MigrateFromAutoInc":             "TableThatCountedTakesKeys",
	"CounterLeftOver":                "KeysRaiseACounterThatIsLeftOver",
	"MigrateFromCounterGuide":        "GuideFromACounterWorks",
	"MigrateFromUUIDGuide":           "GuideFromUUIDsWorks",
	"UintParentFK":                   "ForeignKeyToAnUnsignedParentIsMadeLikeIt",
	"CompositeDDL":                   "CompositeKeyIsOneKeyOfBothColumns",
	"AllocsPerRow":                   "func TestAssigningAllocatesNothingPerRow",
	"AnyOrderOfOperations":           "RandomOperationsLeaveMemoryAndDatabaseAlike",
}

func TestEveryRequirementHasItsCase(t *testing.T) {
	claims := map[string]bool{}
	for _, c := range cases() {
		if claims[c.claim] {
			t.Errorf("two cases are called %s", c.claim)
		}
		claims[c.claim] = true
	}
	var tests strings.Builder
	for _, dir := range []string{"gormplugin", "internal/integration"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("Glob(%s) = %v, %v; want test files", dir, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	for name, claim := range acceptance {
		if strings.HasPrefix(claim, "func ") {
			if !strings.Contains(tests.String(), "\n"+claim+"(t *testing.T)") {
				t.Errorf("%s: no test %s", name, claim)
			}
		} else if !claims[claim] {
			t.Errorf("%s: no case %s", name, claim)
		}
	}
}
