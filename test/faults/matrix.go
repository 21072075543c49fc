package main

// entry is a row of the matrix: a fault, and the tests that make it.
type entry struct {
	// ID is `M` and the row of the fault matrix, `I` and the number of the invariant, or
	// `X` for what is in neither.
	ID    string
	Fault string
	Tests []string // package, point, name of the test
}

// matrix is every fault that is tried. docs/faults.md explains the numbers.
var matrix = []entry{
	{"M1", "leader killed under load", []string{"test/e2e.TestLeaderKilled_NoAcknowledgedWriteIsLostAndNobodyExpires"}},
	{"M1", "any node killed under load", []string{"test/e2e.TestAnyNodeKilled_NoAcknowledgedWriteIsLostAndSessionsNeverGoBack"}},
	{"M2", "leader stands still", []string{"test/e2e.TestLeaderPaused_NobodyWhoBeatsIsCalledUnhealthyThenOrAfterwards"}},
	{"M3", "all nodes stand still", []string{"test/e2e.TestAllPaused_NobodyWhoBeatsIsCalledUnhealthyAfterwards", "test/e2e.TestLoneNodePaused_ThePauseMakesNobodyOlder"}},
	{"M4", "leader in a minority", []string{"internal/clustertest.TestCluster_LeaderInAMinorityServesNoLinearizableRead", "internal/clustertest.TestCluster_LeaderCutOffRefusesWritesAndEvictsNobody"}},
	{"M4", "leader's process cut off from the others", []string{"test/e2e.TestLeaderCutOff_TheOthersGoOnAndItRefusesAndEvictsNobody"}},
	{"M5", "one way between two processes cut", []string{"test/e2e.TestOneWayCut_TheRegistryGoesOnAndElectionsEnd"}},
	{"M5", "one-way loss, 6 directions", []string{"internal/clustertest.TestCluster_OneWayLossOfAnyLinkKeepsAcknowledgedWrites"}},
	{"M6", "leadership handed round under load", []string{"raftnode.TestTransfer_LoopUnderLoadLosesNoAcknowledgedWrite"}},
	{"M7", "follower behind the log, slow link", []string{"raftnode.TestSnapshot_ReachesALaggingFollowerOverASlowLink"}},
	{"M8", "killed while a snapshot is written", []string{"test/e2e.TestKilledInASnapshot_StartsWithTheSameState"}},
	{"M9", "disk full on the leader", []string{"test/e2e.TestLeadersDiskFull_WritesGoOnElsewhereAndNoneIsLost", "raftnode.TestDiskSpace_LimitsActByThemselves"}},
	{"M9", "disk full on a follower", []string{"test/e2e.TestFollowersDiskFull_CostsTheClusterNothing"}},
	{"M10", "disk hangs", []string{"raftnode.TestHungDisk_LeaderIsReplacedAndFollowsLater", "raftnode.TestHungDisk_FollowerCostsTheOthersNothing", "raftnode.TestSlowDisk_LeaderStays"}},
	{"M11", "one bit flipped on disk", []string{"test/e2e.TestBitFlipped_NodeRefusesOrServesTheSameState", "raftnode.TestDamage_OlderSnapshotServesWhenTheLogReachesBack", "raftnode.TestDamage_GapBehindAnOlderSnapshotIsAnErrorOfStart", "fsm.TestRestore_BadFiles", "raftnode/store.TestDamage_NoBitOfTheFileIsBelieved", "raftnode/store.TestDamage_FileCutOff", "raftnode/store.TestDamage_WhileTheNodeRuns", "test/e2e.TestLogCutOffUnderARunningNode_ItEndsWithAMessage"}},
	{"M11", "one bit flipped in a log entry", []string{"test/e2e.TestBitFlippedInALogEntry_TheNodeRefusesToStart", "test/e2e.TestBitFlippedInTheLeadersLog_ItEndsAndSendsNothingWrong", "raftnode/store.TestDamage_NoBitOfAnEntryIsBelieved", "fsm.TestDigestCheck_FindsDivergence"}},
	{"M12", "one disk wiped", []string{"test/e2e.TestWipedNode_CatchesUpAndCountsAgain", "raftnode.TestFormation_WipedNodeReturnsUnderItsName"}},
	{"M13", "two of three disks wiped", []string{"test/e2e.TestTwoDisksWiped_TheSurvivorsDataIsKept"}},
	{"M14", "all addresses changed, one by one", []string{"test/e2e.TestAllAddressesChanged_OneNodeAfterTheOther", "raftnode.TestFormation_ChangedAddressHeals"}},
	{"M14", "all addresses changed at once", []string{"test/e2e.TestAllAddressesChanged_AtOnce"}},
	{"M14", "addresses, names of running processes", []string{"test/e2e.TestAddressesMoved_UnderRunningNodes"}},
	{"M15", "rolling restart under load", []string{"test/e2e.TestRollingRestart_LosesNoWriteAndRefusesNoneForLong"}},
	{"M16", "many leases expire in one second", []string{"internal/clustertest.TestCluster_ManyLeasesExpireAtOnceBesideWrites", "health.TestStorm_EvictionsWaitOnceFlipsDoNot"}},
	{"M17", "deposed leader, hashicorp/raft #695", []string{"raftnode.TestTransport_DeposedLeaderAppendsNothingUnderTheNewTerm"}},
	{"M18", "removed node runs on", []string{"raftnode.TestMembership_RemovedNodeThatRunsOnDisturbsNobody"}},
	{"M19", "membership change as the leader dies", []string{"raftnode.TestMembership_LeaderDiesWhileAWipedNodeReturns"}},
	{"M20", "garbage on the peer port", []string{"test/e2e.TestGarbageForAWhile_MemoryIsFlatAndTheLeaderStays", "test/e2e.TestGarbageOnThePeerPort_IsCutOffAndHarmsNothing", "raftnode.TestAttack_OnThePeerPort"}},

	{"X1", "histories under faulty links", []string{"internal/clustertest.TestCluster_HistoriesAreLinearizable"}},
	{"X1", "linearizable read of a leader that stood still", []string{"test/e2e.TestLeaderPaused_AReadWhenItGoesOnIsFresh"}},
	{"X2", "local reads under faulty links", []string{"internal/clustertest.TestCluster_LocalReadsWithMinIndexNeverGoBack"}},
	{"X3", "elections, beats as the oracle", []string{"internal/clustertest.TestCluster_ElectionsEvictNobodyWhoBeatsAndKeepNobodyWhoDoesNot", "test/e2e.TestLeaderKilledAgainAndAgain_TheDeadLeaveAndTheLivingStay"}},
	{"X4", "all nodes killed", []string{"test/e2e.TestAllKilled_EverythingIsThereAndNothingExpiresBeforeAFullTimeout"}},
	{"X5", "second process, foreign secret", []string{"test/e2e.TestSecondProcess_OnTheSameDirectoryIsRefusedAndNamesIt", "test/e2e.TestForeignSecret_GetsNowhereAndChangesNothing", "raftnode.TestFormation_ForeignNodeIsRefused"}},
	{"X6", "follower's process cut off", []string{"test/e2e.TestFollowerCutOff_ClientsThatMoveStayAndTheOthersDie"}},
	{"X6", "slow and lossy links between processes", []string{"test/e2e.TestSlowLossyLinks_CostTimeAndNothingElse"}},
	{"X6", "partition of processes that flaps", []string{"test/e2e.TestFlappingPartition_LosesNothing"}},

	{"X7", "snapshots of many instances", []string{"test/e2e.TestSnapshotsOfManyInstances_HoldUpNeitherBeatsNorWrites", "test/field.TestBigSnapshots_HoldUpNeitherBeatsNorWrites"}},

	{"I1", "same log, same digest", []string{"fsm.TestReplicas_AreEqual", "fsm.TestDigestCheck_FindsDivergence", "fsm.TestFSM_UnderRaft"}},
	{"I2", "nothing expires early after a take-over", []string{"health.TestTakeOver_NothingExpiresEarly", "health.TestTakeOver_LivingStayWhileLeadersChange"}},
	{"I3", "leader stands still for a minute", []string{"health.TestPause_BeatingInstancesStay", "health.TestPause_BetweenScanAndProposalMakesNobodyOlder"}},
	{"I4", "wall clock an hour off", []string{"health.TestExpiry_WallClockJumpsChangeNothing", "test/field.TestClocksOfNodesDiffer_NobodyExpiresEarlyOrLate"}},
	{"I5", "leader with a minority commits nothing", []string{"raftnode.TestLeadership_IsolatedLeaderSaysUncertainThenHolds"}},
	{"I6", "registered again before the eviction applies", []string{"health.TestExpiry_ReregistrationBeforeApplySurvives", "fsm.TestGuards_LeaveWhatChangedMeanwhile"}},
	{"I7", "late beat after a deregistration", []string{"fsm.TestTombstone_Life"}},
	{"I9", "beats move the log by nothing", []string{"test/e2e.TestBeats_MoveTheLogByNothing", "health.TestBeats_NeverEnterTheLog"}},
	{"I10", "1,000 expiries at once, few entries", []string{"health.TestExpiry_ThousandAtOnceTakeFewEntries"}},
	{"I11", "follower killed while it forwards", []string{"test/e2e.TestForwarderKilled_WhatItAcknowledgedIsThere"}},
	{"I12", "weights", []string{"registry.TestValidateWeight", "registry.TestClampWeight", "fsm.TestRegister_WeightsAreClamped"}},
	{"I13", "protect threshold", []string{"registry.TestSelect", "registry.TestSelect_AgreesWithASimplerOne"}},
	{"I14", "one address in clusters, namespaces, kinds", []string{"test/field.TestTwoClusters_BeatsOfOneDoNotRenewTheOther", "fsm.TestApply_AgreesWithTheModel"}},
	{"I15", "exactly at the timeout, and after", []string{"health.TestExpiry_ScanAtExactlyTheTimeout", "health.TestExpiry_StrictlyAfterTheTimeouts"}},
	{"I16", "watches across snapshots", []string{"push.TestWatch_JumpOfTheStateIsAFullState", "internal/clustertest.TestCluster_WatcherRebuildsTheStateThroughEverything"}},
	{"I17", "a published service never changes", []string{"registry.TestDraft_NeverTouchesThePublishedService"}},
	{"I18", "full queues lose no change", []string{"fsm.TestFeed_OverflowBecomesOneResync", "raftnode.TestPropose_HoldersAreBounded"}},
}
