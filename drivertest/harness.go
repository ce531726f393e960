package drivertest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// A Harness tells the suite how to open a driver.
type Harness struct {
	// New opens a driver on a state directory. Two drivers on the same directory stand for
	// two processes, or for one process before and after a restart. The suite closes what
	// it opens. A driver with network rules must resolve the names of [Hosts].
	New func(state string) (paddock.Driver, error)

	// Shell is a POSIX shell inside; empty is /bin/sh.
	Shell string

	// Base is the spec that every sandbox starts from. It is zero except for drivers that
	// need a root, and on hosts that lack a control (AllowMissing).
	Base paddock.Spec

	// Leaks lists what the driver holds on the host. Nil is [Held].
	Leaks func(t testing.TB, state, name string) Counts

	// Memory means that this process holds the files of its sandboxes in memory, so it
	// grows by their size once.
	Memory bool

	// Sample, if not empty, restricts the run to one promise of each group, chosen by a
	// hash of Sample. It is for a driver that takes too long for frequent runs. The other
	// promises are logged as left out.
	Sample string

	// Turns, if above 1, divides the groups of a sampled run into as many parts, by a hash
	// of Sample. The caller tries the first part, an ordinary user that runs the suite again
	// tries the second.
	Turns int

	// Subjects, if not empty, restricts the run to the promises of these subjects: for a
	// wrapper, those that it overrides. The other promises are logged as left out.
	Subjects []string

	// Image gives the drivers that New opens an image with these files, and returns its digest. It is needed for a
	// driver with paddock.CanRootImage.
	Image func(t testing.TB, tree string, c ImageConfig) (digest string)

	// Skip lists promises, by their text, that the driver cannot keep, each with the
	// reason.
	Skip map[string]string
}

// A promise is a sentence that a driver keeps, and its test.
type promise struct {
	text string
	keep func(t *testing.T, s *suite)
}

// A group is promises with the same preconditions.
type group struct {
	subject string // subject of the group
	// can lists the capabilities that the promises need.
	can []paddock.Capability
	// limits lists controls that a driver may lack completely. Then it refuses a spec that
	// asks for the limit.
	limits []paddock.Control
	// walls lists controls that imply the promises, however the tier implements them. The
	// promises are expected unless Info reports one of the controls as absent.
	walls []paddock.Control
	// alone means that nothing else may run meanwhile, because the promises count what the
	// process holds.
	alone bool

	promises []promise
}

// groups returns all groups of the suite, in the order of the run.
func groups() []group {
	var all []group
	for _, subject := range []struct {
		name   string
		groups []group
	}{
		{"leak", leakPromises()}, // first: it counts what is held before anything is
		{"output", outputPromises()},
		{"input", inputPromises()},
		{"environment", environmentPromises()},
		{"user", userPromises()},
		{"exit", exitPromises()},
		{"start", startPromises()},
		{"timeout", timeoutPromises()},
		{"limit", limitPromises()},
		{"attach", attachPromises()},
		{"terminal", terminalPromises()},
		{"file", filePromises()},
		{"name", namePromises()},
		{"link", linkPromises()},
		{"watch", watchPromises()},
		{"port", portPromises()},
		{"concurrent", concurrentPromises()},
		{"remove", removePromises()},
		{"lifecycle", lifecyclePromises()},
		{"spec", specPromises()},
		{"image", imagePromises()},
		{"status", statusPromises()},
		{"zero", zeroPromises()},
		{"mount", mountPromises()},
		{"protect", protectPromises()},
		{"deny", denyPromises()},
		{"update", updatePromises()},
		{"pause", pausePromises()},
		{"audit", auditPromises()},
		{"network", networkPromises()},
		{"refusal", refusalPromises()},
		{"quota", quotaPromises()},
		{"socket", socketPromises()},
		{"key agent", keyAgentPromises()},
	} {
		for _, g := range subject.groups {
			g.subject = subject.name
			all = append(all, g)
		}
	}
	return all
}

// Run checks every promise on the driver of h.
func Run(t *testing.T, h Harness) {
	s := newSuite(t, h)
	all := groups()
	s.checkSkip(t, all)
	s.checkSubjects(t, all)
	s.tellLacks(t, all)

	s.warm(t)
	before := s.held(t)
	t.Cleanup(func() { s.dropCommon(t) }) // for a run that leaves out the last promise

	t.Run("alone", func(t *testing.T) {
		s.each(t, all, true)
	})
	t.Run("together", func(t *testing.T) {
		s.each(t, all, false)
	})
	t.Run("at the end nothing is left", func(t *testing.T) {
		s.dropCommon(t)
		s.nothingLeft(t, before)
	})
}

// each runs the promises of the groups whose field alone has this value.
func (s *suite) each(t *testing.T, all []group, alone bool) {
	for _, g := range all {
		if g.alone != alone || s.lacks(g) != "" {
			continue
		}
		for _, p := range s.part(t, g) {
			t.Run(p.text, func(t *testing.T) {
				if !alone {
					t.Parallel()
				}
				if reason, ok := s.h.Skip[p.text]; ok {
					t.Skipf("the driver cannot keep this: %s", reason)
				}
				p.keep(t, s)
			})
		}
	}
}

// part returns the promises of a group to check, and logs the others.
func (s *suite) part(t *testing.T, g group) []promise {
	t.Helper()
	only := 0 // index of the only promise to check
	switch {
	case len(s.h.Subjects) > 0 && !slices.Contains(s.h.Subjects, g.subject):
		only = -1
	case s.h.Sample == "":
		return g.promises
	case s.h.Turns > 1 && sample.Pick(s.h.Sample, "turn of "+g.promises[0].text, s.h.Turns) != s.turn:
		only = -1
	default:
		only = sample.Pick(s.h.Sample, g.promises[0].text, len(g.promises))
	}
	var checked []promise
	for i, p := range g.promises {
		if i == only {
			checked = append(checked, p)
		} else {
			t.Log(sample.LeftOut + p.text)
		}
	}
	return checked
}

// checkSubjects fails on an unknown subject.
func (s *suite) checkSubjects(t *testing.T, all []group) {
	t.Helper()
	for _, name := range s.h.Subjects {
		if !slices.ContainsFunc(all, func(g group) bool { return g.subject == name }) {
			t.Errorf("Subjects lists %q, which is none", name)
		}
	}
}

// tellLacks logs the promises that are not expected. They are not skipped tests, because
// another promise checks that their preconditions are refused.
func (s *suite) tellLacks(t *testing.T, all []group) {
	t.Helper()
	for _, g := range all {
		lack := s.lacks(g)
		if lack == "" {
			continue
		}
		for _, p := range g.promises {
			t.Logf("not expected, since %s: %s", lack, p.text)
		}
	}
}

// lacks describes the precondition of the group that the driver does not claim. Empty means
// that it claims all.
func (s *suite) lacks(g group) string {
	for _, c := range g.can {
		if !s.info.Can(c) {
			return fmt.Sprintf("Info does not claim %q", c)
		}
	}
	for _, c := range g.limits {
		if !s.enforces(c) {
			return fmt.Sprintf("Info does not claim the control %q", c)
		}
	}
	for _, c := range g.walls {
		if s.absent(c) {
			return fmt.Sprintf("Info calls the control %q absent", c)
		}
	}
	return ""
}

// enforces reports whether Info lists c as present.
func (s *suite) enforces(c paddock.Control) bool {
	f, ok := s.info.Finding(c)
	return ok && f.Strength != paddock.Absent
}

// absent reports whether Info lists c as absent.
func (s *suite) absent(c paddock.Control) bool {
	f, ok := s.info.Finding(c)
	return ok && f.Strength == paddock.Absent
}

// checkSkip fails on an entry of Harness.Skip that matches no promise, that gives no
// reason, or that hides a capability which the driver claims.
func (s *suite) checkSkip(t *testing.T, all []group) {
	t.Helper()
	for text, reason := range s.h.Skip {
		g, ok := find(all, text)
		switch {
		case !ok:
			t.Errorf("Skip lists %q, which is no promise", text)
		case strings.TrimSpace(reason) == "":
			t.Errorf("Skip lists %q without a reason", text)
		case len(g.can)+len(g.limits) > 0 && s.lacks(g) == "":
			t.Errorf("Skip lists %q, but Info claims what it rests on: %v %v", text, g.can, g.limits)
		}
	}
}

func find(all []group, text string) (group, bool) {
	for _, g := range all {
		for _, p := range g.promises {
			if p.text == text {
				return g, true
			}
		}
	}
	return group{}, false
}

// A suite is one run of the promises over one state directory.
type suite struct {
	h      Harness
	turn   int    // which part of Harness.Turns it tries
	state  string // directory of the driver's state
	name   string // prefix of the ID of every sandbox, and found in no other name
	info   paddock.Info
	driver paddock.Driver
	probe  func() (string, error) // path of the probe

	mu     sync.Mutex
	common paddock.Sandbox // guarded by mu; the shared sandbox
	made   int             // guarded by mu; numbers IDs
}

// secret names a variable of the host's environment that no sandbox may see.
const secret = "PADDOCK_DRIVERTEST_SECRET"

// againVariable marks the process that runs tests again as an ordinary user. Its value
// chooses the sample that [Run] checks there. Empty checks every promise.
const againVariable = "PADDOCK_DRIVERTEST_AS_USER"

func newSuite(t testing.TB, h Harness) *suite {
	t.Helper()
	if h.New == nil {
		t.Fatal("Harness.New is missing")
	}
	h.Shell = cmp.Or(h.Shell, "/bin/sh")
	if h.Leaks == nil {
		h.Leaks = Held
	}
	s := &suite{name: "dt" + strings.ToLower(rand.Text()[:8])}
	if again, ok := os.LookupEnv(againVariable); ok {
		h.Sample = again
		s.turn = 1
	}
	s.h = h
	t.Setenv(secret, s.name+"-secret")

	// Not t.TempDir, because its paths are too long for a Unix socket.
	state, err := os.MkdirTemp("", "dt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(state); err != nil {
			t.Errorf("remove the state directory: %v", err)
		}
	})
	s.state = state
	s.driver = s.fresh(t)
	s.info, err = s.driver.Info(bounded(t), paddock.Auto)
	if err != nil {
		t.Fatalf("Info: %v", err)
	}
	s.probe = sync.OnceValues(func() (string, error) { return buildProbe(t) })
	return s
}

// fresh opens another driver on the same state.
func (s *suite) fresh(t testing.TB) paddock.Driver {
	t.Helper()
	d, err := s.h.New(s.state)
	if err != nil {
		t.Fatalf("new driver: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close driver: %v", err)
		}
	})
	return d
}

// warm makes the driver create what it creates only once, and builds the probe. Otherwise
// they would count as leaks.
func (s *suite) warm(t *testing.T) {
	t.Helper()
	if _, err := s.probe(); err != nil {
		t.Fatalf("build the probe: %v", err)
	}
	d := s.fresh(t)
	s.warmOne(t, d)
	if err := d.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	s.warmOne(t, s.driver) // the driver holds its programs until it is closed
}

func (s *suite) warmOne(t *testing.T, d paddock.Driver) {
	t.Helper()
	spec := s.spec()
	if s.info.Can(paddock.CanNetworkList) { // its programs are held too
		spec.Policy.Network.Mode = paddock.NetworkList
	}
	sb, err := d.Create(bounded(t), spec)
	if err != nil {
		t.Fatalf("no sandbox can be made, so nothing can be checked: %v", err)
	}
	s.removeAfter(t, sb)
	b := box{Sandbox: sb, s: s}
	b.must(t, "echo warm")
	if err := sb.Remove(bounded(t)); err != nil {
		t.Fatalf("remove: %v", err)
	}
}

// id returns an ID that no other sandbox has.
func (s *suite) id() paddock.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return paddock.ID(fmt.Sprintf("%s-%d", s.name, s.made))
}

// spec returns the base spec with an ID of its own.
func (s *suite) spec(change ...func(*paddock.Spec)) paddock.Spec {
	spec := s.h.Base
	spec.AllowMissing = slices.Clone(spec.AllowMissing)
	spec.Mounts = slices.Clone(spec.Mounts)
	spec.ID = s.id()
	for _, c := range change {
		c(&spec)
	}
	return spec
}

// held lists what the driver holds.
func (s *suite) held(t testing.TB) Counts {
	t.Helper()
	return s.h.Leaks(t, s.state, s.name)
}

// nothingLeft waits until no more is held than before.
func (s *suite) nothingLeft(t testing.TB, before Counts) {
	t.Helper()
	var extra []string
	if !eventually(10*time.Second, func() bool {
		extra = before.extra(s.held(t))
		return len(extra) == 0
	}) {
		t.Errorf("left behind:\n\t%s", strings.Join(extra, "\n\t"))
	}
}

// patience bounds any one call, and any sequence of calls, because an emulated machine is
// slow. A call that takes longer counts as hanging.
const patience = 180 * time.Second

// bounded returns a context for calls that must not hang.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until yes returns true or the time is over.
func eventually(d time.Duration, yes func() bool) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return yes()
		}
	}
	return true
}

// until fails the test if yes does not return true in time.
func until(t testing.TB, what string, yes func() bool) {
	t.Helper()
	if !eventually(3*time.Minute, yes) { // a machine with other work is slow
		t.Fatalf("never came true: %s", what)
	}
}
