// Package sample chooses which heavy test suites a run tries whole, and which part of each other suite
// it tries.
//
// A heavy suite takes long compared with what it finds on most days: the promises of a tier for a
// second kind of caller, or attacks on an emulated machine. [Suites] lists all of them. Without
// [TurnVariable] every suite is whole, so go test by hand and make matrix leave nothing out. With it a
// suite tries a part that depends on the variable's value alone: the hash of the commit. The same
// value chooses the same part again.
package sample

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// TurnVariable holds the value that chooses every sample. Where it is empty, nothing is left out.
	TurnVariable = "PADDOCK_TEST_TURN"

	// WholeVariable lists, with commas between, the suites that a run with a turn tries whole all the same.
	WholeVariable = "PADDOCK_TEST_WHOLE"
)

// LeftOut begins the line with which a test names what its sample leaves out.
const LeftOut = "left out of the sample: "

// A Suite is a heavy suite.
type Suite struct {
	Name     string
	Package  string   // import path below the module's
	Test     string   // its top-level test
	Programs []string // packages of the programs that it starts and does not link
	Cost     int      // seconds on two processors that the whole suite takes beyond its sample
	Sampled  string   // what the sample is
}

// Seed returns what chooses the sample of a suite. It is empty where the suite is to be tried whole.
func Seed(name string) string {
	if !slices.ContainsFunc(Suites(), func(s Suite) bool { return s.Name == name }) {
		panic("sample: no suite is called " + name)
	}
	whole, _ := os.LookupEnv(WholeVariable)
	if slices.Contains(strings.Split(whole, ","), name) {
		return ""
	}
	turn, _ := os.LookupEnv(TurnVariable)
	return turn
}

// Subjects returns the subjects for a suite whose sample is all promises of some subjects: those given where the suite
// is sampled, and nil, which is all, where it is whole.
func Subjects(name string, subjects ...string) []string {
	if Seed(name) == "" {
		return nil
	}
	return subjects
}

// Turn skips a test of a suite in all turns but about one of n.
func Turn(tb testing.TB, suite string, n int) {
	tb.Helper()
	if seed := Seed(suite); seed != "" && Pick(seed, tb.Name(), n) != 0 {
		tb.Skip(LeftOut + "one commit in " + strconv.Itoa(n) + " tries it")
	}
}

// Pick returns a number below n that depends on seed and key alone.
func Pick(seed, key string, n int) int {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", seed, key))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// Part divides a list into n parts and returns the one that seed and key choose, and the rest. Without a seed it
// returns the whole list.
func Part(seed, key string, list []string, n int) (tried, left []string) {
	if seed == "" {
		return list, nil
	}
	part := Pick(seed, key, n)
	for i, one := range list {
		if i%n == part {
			tried = append(tried, one)
		} else {
			left = append(left, one)
		}
	}
	return tried, left
}
