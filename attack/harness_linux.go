package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// A Harness joins a tier to the cases.
type Harness struct {
	Tier paddock.Tier

	// New makes a driver with its files in state.
	New func(t *testing.T, state string) paddock.Driver

	// Callers are the callers to try: "root" and "user", or both if empty. A caller that
	// this process cannot be is left out, with a message.
	Callers []string

	// Only lists the cases to run. Empty runs all.
	Only []string

	// Turn, if not empty and if Only is empty, makes each caller try one of Turns parts of
	// the cases, chosen by a hash of Turn. It is for a tier on which all cases take too
	// long.
	Turn  string
	Turns int

	// Command means that the command line offers this tier, so that its rows can be tried.
	Command bool

	// Unconfined means that there is no sandbox: the control run. A root process then runs
	// in namespaces of its own.
	Unconfined bool

	// Inside means that the sandbox is a part of this process, which starts no other for
	// it.
	Inside bool

	techniques map[string][]string
}

// Variables that a test sets for the process that runs it again as the caller.
const (
	envPlace  = "PADDOCK_ATTACK_PLACE"
	envCaller = "PADDOCK_ATTACK_CALLER"
	envMaker  = "PADDOCK_ATTACK_MAKER"

	envPrograms = "PADDOCK_ATTACK_PROGRAMS" // a directory for built programs

	envNetwork = "PADDOCK_ATTACK_NETWORK" // the internet's directory, in the process that tries the network rows
)

// throwaway is the number of an unprivileged caller that owns nothing.
const throwaway = 64101

// Run tries every case as every caller, each in a process of its own with a terminal, and
// returns a column for each. In that process itself it does not return.
func Run(t *testing.T, h Harness) map[string][]Result {
	t.Helper()
	if os.Getenv(envMaker) != "" {
		h.make(t)
		return nil
	}
	if place := os.Getenv(envPlace); place != "" {
		h.collect(t, place)
		t.SkipNow() // this process only collects results; its parent judges them
	}
	callers := h.Callers
	if len(callers) == 0 {
		callers = []string{"root", "user"}
	}
	for _, caller := range callers {
		h.tellTurn(t, caller)
	}
	tried := map[string][][]Result{} // by caller and part
	var mu sync.Mutex                // guards tried
	var alone sync.Mutex             // races without a sandbox succeed only on an idle machine
	var wg sync.WaitGroup
	defer wg.Wait() // also if a line below ends the test
	// Copy a program before anything is started. A process that is forked meanwhile would
	// have it open for writing, and then it could not be executed.
	places := map[string]string{}
	for _, caller := range callers {
		if caller == "root" && os.Geteuid() != 0 {
			t.Logf("the root column is left out: this test does not run as root")
			continue
		}
		places[caller] = newPlace(t, caller)
		h.furnish(t, places[caller], caller)
	}
	for caller, place := range places {
		parts := h.parts()
		results := make([][]Result, len(parts))
		tried[caller] = results
		for i, p := range parts {
			wg.Go(func() {
				if h.Unconfined && !p.online {
					alone.Lock()
					defer alone.Unlock()
				}
				some, err := p.try(t, place, caller)
				if err != nil {
					t.Errorf("%s: %v", caller, err)
				}
				mu.Lock()
				defer mu.Unlock()
				results[i] = some
			})
		}
	}
	wg.Wait()
	out := map[string][]Result{}
	for caller, results := range tried {
		out[caller] = slices.Concat(results...)
	}
	if t.Failed() && len(out) == 0 {
		t.FailNow()
	}
	return out
}

// A part is a set of cases that are tried one after the other.
type part struct {
	online bool // the network rows
	try    func(t *testing.T, place, caller string) ([]Result, error)
}

// parts returns the parts, which run in parallel: network rows mostly wait, in another
// process with its own network.
func (h Harness) parts() []part {
	var list []part
	for _, online := range []bool{false, true} {
		wanted := slices.ContainsFunc(Cases(), func(c Case) bool { return h.wanted(c.ID) && (c.way != nil) == online })
		switch {
		case !wanted:
		case online && (os.Geteuid() != 0 || h.Inside):
			list = append(list, part{online, h.offline})
		default:
			list = append(list, part{online, func(t *testing.T, place, caller string) ([]Result, error) {
				return h.asCaller(t, place, caller, online)
			}})
		}
	}
	return list
}

// offline returns the results of the network rows if there can be no network for them.
func (h Harness) offline(t *testing.T, _, _ string) ([]Result, error) {
	why := "only root can make a network for it"
	if h.Inside {
		why = "inside a program there is no gateway, and its own dialer is the caller's"
	}
	t.Log("the rows about the way out are left out:", why)
	var list []Result
	for _, c := range Cases() {
		if h.wanted(c.ID) && c.way != nil {
			list = append(list, Result{ID: c.ID, Cell: Cell{Verdict: NotApplicable, Why: why}})
		}
	}
	return list, nil
}

// asCaller runs this test again as caller and reads its results.
func (h Harness) asCaller(t *testing.T, place, caller string, online bool) ([]Result, error) {
	self := filepath.Join(place, "bin", "attack.test")
	results := filepath.Join(place, resultsName(online))
	args := []string{"terminal"}
	network := ""
	if online {
		network = filepath.Join(place, "network")
		if err := os.Mkdir(network, 0o755); err != nil {
			return nil, err
		}
		args = append(args, "-network", network)
	}
	if caller == "user" && os.Geteuid() == 0 {
		args = append(args, "-user", strconv.Itoa(throwaway))
	}
	// Without a sandbox it could do harm, so it gets namespaces of its own.
	lonely := h.Unconfined && os.Geteuid() == 0
	if lonely {
		args = append(args, "-lonely")
	}
	limit := 7 * h.patience()
	if end, ok := t.Deadline(); ok { // so that this process does not lose its results
		limit = min(limit, max(time.Until(end)-time.Minute, time.Second))
	}
	args = append(args, self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout="+limit.String(), "-only="+strings.Join(h.turn(caller), ","))
	cmd := exec.CommandContext(t.Context(), filepath.Join(place, "bin", "attacker"), args...)
	cmd.Env = append(os.Environ(), envPlace+"="+place, envCaller+"="+caller, envNetwork+"="+network, "TMPDIR="+filepath.Join(place, "tmp"), "HOME="+place)
	if h.Tier == paddock.MicroVM {
		// What Paddock's processes keep there about machines is not an effect of an attack.
		cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+filepath.Join(place, "data"))
	}
	cmd.Dir = place
	// It ends with this process, even if this one is killed: the signal comes when the
	// thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if online {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET
	}
	if lonely {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET}
	}
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: the process that tries failed: %v\n%s", caller, err, log)
	} else if testing.Verbose() {
		t.Logf("%s:\n%s", caller, log)
	}
	data, err := os.ReadFile(results)
	if err != nil {
		return nil, fmt.Errorf("no results: %w\n%s", err, log)
	}
	var out []Result
	dec := json.NewDecoder(strings.NewReader(string(data)))
	for {
		var r Result
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("results: %w", err)
		}
		out = append(out, r)
	}
}

func resultsName(online bool) string {
	if online {
		return "results-network"
	}
	return "results"
}

// newPlace makes the directory for everything. It is not a temporary directory, because
// those are private inside.
func newPlace(t *testing.T, caller string) string {
	t.Helper()
	parent := "/home"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		parent = home
	}
	place := filepath.Join(parent, "paddock-attack-"+caller+random()[:6])
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Including what a case could not remove because its process was killed.
		left := []string{place}
		for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
			found, _ := filepath.Glob(filepath.Join(d, filepath.Base(place)+"-*"))
			left = append(left, found...)
		}
		for _, p := range left {
			if err := os.RemoveAll(p); err != nil {
				t.Errorf("remove %s: %v", p, err)
			}
		}
	})
	return place
}

// furnish builds and copies the programs that the caller needs.
func (h Harness) furnish(t *testing.T, place, caller string) {
	t.Helper()
	for _, d := range []string{"bin", "other", "tmp"} {
		if err := os.Mkdir(filepath.Join(place, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build(t, "github.com/paddock-sandbox/paddock/attack/attacker", filepath.Join(place, "bin", "attacker"))
	if h.Command {
		build(t, "github.com/paddock-sandbox/paddock/cmd/paddock", filepath.Join(place, "bin", "paddock"))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, self, filepath.Join(place, "bin", "attack.test"))
	secret := filepath.Join(place, "other", "secret.txt")
	if err := os.WriteFile(secret, []byte("secret of another user\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	// Only the caller can reach this program, because its directory is closed to others.
	setID := filepath.Join(place, "bin", "set-id")
	copyProgram(t, filepath.Join(place, "bin", "attacker"), setID)
	if err := os.Chmod(setID, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if caller == "user" {
		for _, p := range []string{place, filepath.Join(place, "bin"), filepath.Join(place, "tmp")} {
			if err := os.Chown(p, throwaway, throwaway); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if err := os.Chown(secret, throwaway+1, throwaway+1); err != nil {
		t.Fatal(err)
	}
}

// build builds a program once for all tests of a process that has a directory for built
// programs.
func build(t *testing.T, pkg, to string) {
	t.Helper()
	built := to
	if dir := os.Getenv(envPrograms); dir != "" {
		built = filepath.Join(dir, filepath.Base(to))
		defer func() { copyProgram(t, built, to) }()
		if _, err := os.Stat(built); err == nil {
			return
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", built, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// collect runs the cases as the caller, and writes their results.
func (h Harness) collect(t *testing.T, place string) {
	caller := os.Getenv(envCaller)
	techniques, err := list(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	h.techniques = techniques
	online := os.Getenv(envNetwork) != ""
	f, err := os.OpenFile(filepath.Join(place, resultsName(online)), os.O_CREATE|os.O_WRONLY|os.O_EXCL|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	together, outer := company{}, t
	defer together.close(t)
	for _, c := range Cases() {
		if !h.wanted(c.ID) || (c.way != nil) != online {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			try := func() Result {
				if h.shares(c) {
					return together.try(outer, t, h, c, place, caller)
				}
				return h.try(t, c, place, caller)
			}
			r := try()
			// Try a case without a verdict once more, and one with more changes than could
			// be watched several times. A result counts in any case: an escape is an
			// escape.
			for again := 0; r.Broken != "" && r.Cell.Verdict != Escaped && (again < 1 || again < 4 && strings.Contains(r.Broken, errOverflow.Error())); again++ {
				t.Log("tried again:", r.Broken)
				world := filepath.Join(place, strings.ToLower(c.ID))
				if err := os.Rename(world, world+"-"+random()[:6]); err != nil && !h.shares(c) {
					t.Fatal(err)
				}
				r = try()
			}
			if err := enc.Encode(r); err != nil {
				t.Fatal(err)
			}
			for _, try := range r.Tries {
				t.Logf("%-14s %-10s %s: %s", try.Outcome, try.Errno, try.Name, try.Detail)
			}
			for _, e := range r.Evidence {
				t.Logf("EVIDENCE %s", e)
			}
			t.Logf("%s %s %s %s", c.ID, caller, r.Cell, r.Broken)
		})
	}
}

// ownKernel reports whether commands run on the sandbox's own kernel.
func (h Harness) ownKernel() bool { return h.Tier == paddock.GVisor || h.Tier == paddock.MicroVM }

// turn returns the cases for a caller to try. Empty means all.
func (h Harness) turn(caller string) []string {
	if h.Turn == "" || len(h.Only) > 0 {
		return h.Only
	}
	part := sample.Pick(h.Turn, string(h.Tier), h.Turns)
	if caller == "user" && !h.Unconfined { // in the control run, both try the same cases
		part += h.Turns / 2
	}
	return partOf(part, h.Turns)
}

// tellTurn logs the cases that a caller does not try this time.
func (h Harness) tellTurn(t *testing.T, caller string) {
	t.Helper()
	turn := h.turn(caller)
	if h.Turn == "" || len(h.Only) > 0 {
		return
	}
	for _, c := range Cases() {
		if !slices.Contains(turn, c.ID) {
			t.Logf("%s%s %s, which one commit in %d tries", sample.LeftOut, caller, c.ID, h.Turns)
		}
	}
}

// partOf returns every n-th case, so that each is in one of n parts.
func partOf(part, n int) []string {
	var list []string
	for i, c := range Cases() {
		if i%n == part%n {
			list = append(list, c.ID)
		}
	}
	return list
}

func (h Harness) wanted(id string) bool {
	if len(h.Only) == 0 {
		return true
	}
	for _, o := range h.Only {
		if o == id {
			return true
		}
	}
	return false
}

// list asks the attacker for the techniques of every case.
func list(ctx context.Context, place string) (map[string][]string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(place, "bin", "attacker"), "list").Output()
	if err != nil {
		return nil, fmt.Errorf("list techniques: %w", err)
	}
	var m map[string][]string
	return m, json.Unmarshal(out, &m)
}

// ColumnOf returns the cells of results.
func ColumnOf(results []Result) Column {
	c := Column{}
	for _, r := range results {
		c[r.ID] = r.Cell
	}
	return c
}
