package main

import "strings"

// An allowance permits a skip in continuous integration.
type allowance struct {
	pkg  string // import path below the module's
	test string // name of the test; its subtests are allowed too
	why  string
}

// allowances returns every skip that is accepted on the machine that decides on changes.
// Each is a promise that is not checked there.
func allowances() []allowance {
	return []allowance{
		{"distrotest", "TestADistribution", "emulated machines take an hour and more; make distro and make matrix try them"},
		{"cmd/paddock", "TestJobs/jail/postgres", "PostgreSQL does not run as root; TestJobsAsUser and TestPackagesInAnImage run it"},
		{"cmd/paddock", "TestJobs/gvisor/postgres", "PostgreSQL does not run as root; TestJobsAsUser and TestPackagesInAnImage run it"},
		{"internal/box", "TestTheImagesAreHiddenWhereTheyReallyAre", "root's data has a place of its own, which no variable names"},
		{"internal/cgroup", "TestBuffersOfSocketsAreLimited/version_2_alone", "version 2 has no controllers where version 1 has them"},
		{"internal/cli/auxiliary", "TestCosignAcceptsAnAttestationAndNoOther", "a build of cosign takes half an hour; PADDOCK_TEST_COSIGN names one"},
		{"internal/image/store", "TestTheSignatureOfCosignIsVerified", "a build of cosign takes half an hour; PADDOCK_TEST_COSIGN names one"},
		{"internal/driver/jail", "TestWhatProgramsOfTheHostObeyCannotBePlanted", "make matrix installs the programs that obey files"},
		{"internal/driver/jail", "TestWhatProgramsOfTheHostObeyCannotBePlantedByAUser", "make matrix installs the programs that obey files"},
		{"internal/driver/microvm/fileserver", "TestARealKernelMounts", "it needs /dev/fuse"},
	}
}

const module = "github.com/paddock-sandbox/paddock"

// allowed reports whether a skip is in the table.
func allowed(table []allowance, pkg, test string) bool {
	for _, a := range table {
		if pkg != module+"/"+a.pkg {
			continue
		}
		if test == a.test || strings.HasPrefix(test, a.test+"/") {
			return true
		}
	}
	return false
}
