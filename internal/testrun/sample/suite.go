package sample

// Suites returns every heavy suite. The costs are estimates of the seconds on two quiet processors. They order what a
// lane has time for, and nothing else depends on them.
func Suites() []Suite {
	const (
		onePromise = "one promise of each group"
		halfGroups = "one promise of each of half the groups; root tries the other half where its run is sampled too"
		aThird     = "one promise of each of a third of the groups; root and the user try different ones"
		ownGroups  = "the promises about what the wrapper overrides"
		oneTest    = "each test by one commit in 3"
		aSixth     = "a sixth of the scripts, chosen by the commit"
		oneRow     = "a part of the attacks, chosen by the commit"
	)
	guest, command, attacker := "cmd/paddock-guest", "cmd/paddock", "attack/attacker"
	return []Suite{
		{Name: "jail as a user", Package: "internal/driver/jail", Test: "TestPromisesAsUser", Cost: 60, Sampled: halfGroups},
		{Name: "gvisor as a user", Package: "internal/driver/gvisor", Test: "TestPromisesAsUser", Cost: 240, Sampled: halfGroups + ", and a sixth of the tier's own tests"},
		{Name: "microvm", Package: "internal/driver/microvm", Test: "TestPromises", Programs: []string{guest, "cmd/paddock-microvm"}, Cost: 300, Sampled: aThird},
		{Name: "microvm as a user", Package: "internal/driver/microvm", Test: "TestPromisesAsUser", Programs: []string{guest, "cmd/paddock-microvm"}, Cost: 300, Sampled: aThird},
		{Name: "machines", Package: "internal/driver/microvm", Test: "Test", Programs: []string{guest, "cmd/paddock-microvm"}, Cost: 100, Sampled: oneTest},
		{Name: "client over the jail", Package: "client", Test: "TestPromisesOfTheJail", Cost: 60, Sampled: halfGroups},
		{Name: "client over the jail as a user", Package: "client", Test: "TestPromisesOfTheJailAsUser", Cost: 60, Sampled: halfGroups},
		{Name: "client over a socket", Package: "client", Test: "TestPromisesOverASocket", Cost: 30, Sampled: onePromise},
		{Name: "client over TCP", Package: "client", Test: "TestPromisesOverTCP", Cost: 30, Sampled: onePromise},
		{Name: "lease", Package: "internal/wrap/lifetime", Test: "TestPromises", Cost: 15, Sampled: ownGroups},
		{Name: "pool", Package: "internal/wrap/pool", Test: "TestPromises", Cost: 15, Sampled: ownGroups},
		{Name: "admission", Package: "internal/wrap/admission", Test: "TestPromises", Cost: 15, Sampled: ownGroups},
		{Name: "tenant", Package: "internal/wrap/tenant", Test: "TestPromises", Cost: 15, Sampled: ownGroups},
		{Name: "observe", Package: "internal/wrap/observe", Test: "TestADriverThatIsObservedKeepsItsPromises", Cost: 15, Sampled: ownGroups},
		{Name: "actionlog", Package: "internal/wrap/actionlog", Test: "TestPromises", Cost: 15, Sampled: ownGroups},
		{Name: "jobs", Package: command, Test: "TestJobs", Cost: 200, Sampled: "an eighth of the jobs, chosen by the commit"},
		{Name: "packages", Package: command, Test: "TestPackagesInAnImage", Cost: 90, Sampled: oneTest},
		{Name: "abuses of sim", Package: "internal/driver/sim", Test: "TestAbuseEndsAndTheComputerLivesOn", Cost: 70, Sampled: "an eighth of the scripts, chosen by the commit"},
		{Name: "memory of sim", Package: "internal/driver/sim/parent", Test: "TestNoScriptTakesMoreMemoryThanItsSandboxMay", Programs: []string{"cmd/paddock-sim"}, Cost: 60, Sampled: "a quarter of the scripts, chosen by the commit"},
		{Name: "E2B's clients on gvisor", Package: "internal/dialect/e2b", Test: "TestTheClientsOfE2BAreKeptTheirPromises", Programs: []string{command}, Cost: 240, Sampled: aSixth},
		{Name: "Daytona's client on gvisor", Package: "internal/dialect/daytona", Test: "TestTheClientsOfDaytonaAreKeptTheirPromises", Programs: []string{command}, Cost: 60, Sampled: oneTest},
		{Name: "E2B's clients by name", Package: "internal/dialect/e2b", Test: "TestTheClientsOfE2BAreKeptTheirPromisesByName", Programs: []string{command}, Cost: 100, Sampled: aSixth},
		{Name: "real clients", Package: "internal/egress/endtoend", Test: "TestRealClientsReachWhatIsAllowed", Programs: []string{guest}, Cost: 90, Sampled: "a third of the clients on each tier, chosen by the commit"},
		{Name: "agents", Package: "internal/agenttest", Test: "TestAgentsWorkInABox", Programs: []string{command}, Cost: 240, Sampled: "one agent on one tier, chosen by the commit"},
		{Name: "agents of the SDK", Package: "internal/agenttest", Test: "TestTheSDKWorksATask", Programs: []string{command}, Cost: 30, Sampled: "one task on one tier, chosen by the commit"},
		{Name: "agents of the SDK beside each other", Package: "internal/agenttest", Test: "TestTheSDKWorksTasksBesideEachOther", Programs: []string{command}, Cost: 15, Sampled: "one tier, chosen by the commit"},
		{Name: "agents of the SDK that are killed", Package: "internal/agenttest", Test: "TestAKillOfTheSDKIsExplained", Programs: []string{command}, Cost: 15, Sampled: "one tier, chosen by the commit"},
		{Name: "agents in a terminal", Package: "internal/agenttest", Test: "TestAnAgentInATerminal", Programs: []string{command}, Cost: 60, Sampled: "one tier, chosen by the commit"},
		{Name: "agents that are interrupted", Package: "internal/agenttest", Test: "TestAnAgentIsInterrupted", Programs: []string{command}, Cost: 120, Sampled: "one agent on one tier, chosen by the commit"},
		{Name: "agents with hooks", Package: "internal/agenttest", Test: "TestHooksRouteTheShellToolOfAnAgent", Programs: []string{command}, Cost: 45, Sampled: "one agent on one tier, chosen by the commit"},
		{Name: "attacks without a sandbox", Package: "attack", Test: "TestTheAttacksSucceedWithoutASandbox", Programs: []string{attacker, command}, Cost: 60, Sampled: oneRow},
		{Name: "attacks on gvisor", Package: "attack", Test: "TestNothingEscapesGVisor", Programs: []string{attacker, command}, Cost: 120, Sampled: oneRow},
		{Name: "attacks on microvm", Package: "attack", Test: "TestNothingEscapesTheMicroVM", Programs: []string{attacker, command, guest, "cmd/paddock-microvm"}, Cost: 600, Sampled: oneRow},
		{Name: "attacks on sim", Package: "attack", Test: "TestNothingEscapesTheSim", Programs: []string{attacker, command}, Cost: 60, Sampled: oneRow},
		{Name: "attacks on sim without its wall", Package: "attack", Test: "TestNothingEscapesTheSimWithoutItsWall", Programs: []string{attacker}, Cost: 60, Sampled: oneRow},
	}
}
