package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/boxinit/boxinittest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// First arguments that make this program the init process of an observed box, of a box
// with a replaced sentry, or of one whose supervisor is taken over.
const (
	observedArgv0 = "paddock-test-observed"
	hostileArgv0  = "paddock-test-hostile"
	takenArgv0    = "paddock-test-taken"
)

// reports is a directory of the host in which such a box leaves its reports.
const reports = "/mnt/reports"

func TestMain(m *testing.M) {
	if boxinittest.Main() || box.Main(runtimes()...) {
		return
	}
	switch {
	case os.Args[0] == observedArgv0:
		boxinit.Main(&observed{})
	case os.Args[0] == takenArgv0:
		boxinit.Main(taken())
	case os.Args[0] == nestedArgv0:
		inNested()
		return
	case os.Args[0] == hostileArgv0:
		boxinit.Main(&occupied{})
	case isChild(os.Args[0]) && slices.Contains(os.Args, "boot") && exists(hostileSocket):
		occupy()
		os.Exit(child())
	case isChild(os.Args[0]) && exists(hostileSocket):
		occupyGofer()
	case isChild(os.Args[0]) && exists(saidMark):
		spoken()
		os.Exit(child())
	case os.Getenv(controlVariable) != "":
		withoutWalls()
		return
	}
	if Main() {
		return
	}
	drivertest.Main(m, func(state string) (paddock.Driver, error) { return open(state, observedArgv0, nil) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func runtimes() []*box.Runtime {
	return []*box.Runtime{gvisor.RuntimeOf(observedArgv0), gvisor.RuntimeOf(hostileArgv0), gvisor.RuntimeOf(takenArgv0)}
}

func open(state, argv0 string, sink audit.Sink) (paddock.Driver, error) {
	// As in paddock: an embedded program, and a file in the cache.
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	return gvisor.NewWith(box.Options{
		State: state, Data: filepath.Join(state, "data"), Cache: filepath.Join(state, "cache"), Environ: os.Environ(), Audit: sink,
	}, program.Embedded("observed", self), gvisor.RuntimeOf(argv0))
}

// sunk is a sink that discards everything.
type sunk struct{}

func (sunk) Record(audit.Event) {}

// An observation is what a box's init process sees of gVisor.
type observation struct {
	Sealed, Started []seen // its processes when the guard is complete, and when the guest runs
	Said            string // the log of gVisor's processes
}

// at returns the processes of a name.
func at(list []seen, name string) []seen {
	return slices.DeleteFunc(slices.Clone(list), func(s seen) bool { return len(s.Args) == 0 || s.Args[0] != name })
}

// seen describes a process.
type seen struct {
	PID, Parent int
	Args        []string
	Filters     int    // system-call filters
	Table       int    // size of the descriptor table
	Caps, Bound uint64 // effective capabilities and bounding set
	Net         string // network namespace
	Score       int    // OOM score adjustment
}

// saidMark is the log file of gVisor's processes. Its existence makes them write to it.
var saidMark = filepath.Join(boxinit.State, "said")

// began is the log line of a process at its start, with its capabilities.
const began = "%s begins with %#x of %#x\n"

// spoken opens the log for this process.
func spoken() {
	fd, err := syscall.Open(saidMark, syscall.O_APPEND|syscall.O_WRONLY|syscall.O_CLOEXEC, 0) // no os.File, which would close it
	if err != nil {
		fail("observed", err)
		os.Exit(1)
	}
	held, bound, err := sys.Capabilities()
	if err == nil {
		_, err = syscall.Write(fd, fmt.Appendf(nil, began, os.Args[0], held, bound))
	}
	if err != nil {
		fail("observed", err)
		os.Exit(1)
	}
	os.Args = slices.Insert(os.Args, 1, fmt.Sprintf("--debug-log-fd=%d", fd), "--debug=true")
}

// observed is the real kernel with an observer.
type observed struct {
	supervisor
	observation
}

func (o *observed) Start(c *boxinit.Config, f boxinit.GuestKernelFiles) error {
	if err := os.WriteFile(saidMark, nil, 0o600); err != nil {
		return err
	}
	seal := f.Seal
	f.Seal = func() error {
		if err := seal(); err != nil {
			return err
		}
		o.Sealed = processes()
		return nil
	}
	if err := o.supervisor.Start(c, f); err != nil {
		return err
	}
	o.Started = processes()
	said, err := os.ReadFile(saidMark)
	if err != nil {
		return err
	}
	o.Said = string(said)
	return report(&o.observation)
}

// report writes a report for the host. It does nothing if the box has no directory for
// reports.
func report(v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(boxinit.Root+reports+"/report.json", data, 0o644)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// processes describes all processes of this box.
func processes() []seen {
	var list []seen
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range names {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		cmdline, err1 := os.ReadFile(dir + "/cmdline")
		status, err2 := os.ReadFile(dir + "/status")
		score, err3 := os.ReadFile(dir + "/oom_score_adj")
		if errors.Join(err1, err2, err3) != nil {
			continue // it ended
		}
		s := seen{PID: pid}
		s.Net, _ = os.Readlink(dir + "/ns/net")
		if args := bytes.TrimRight(cmdline, "\x00"); len(args) > 0 {
			s.Args = strings.Split(string(args), "\x00")
		}
		s.Score, _ = strconv.Atoi(strings.TrimSpace(string(score)))
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			switch name {
			case "PPid":
				s.Parent, _ = strconv.Atoi(value)
			case "FDSize":
				s.Table, _ = strconv.Atoi(value)
			case "Seccomp_filters":
				s.Filters, _ = strconv.Atoi(value)
			case "CapEff":
				s.Caps, _ = strconv.ParseUint(value, 16, 64)
			case "CapBnd":
				s.Bound, _ = strconv.ParseUint(value, 16, 64)
			}
		}
		list = append(list, s)
	}
	return list
}

// look makes a box with a directory for reports, and reads the report. spec has the rest of
// the box.
func look(t *testing.T, argv0 string, sink audit.Sink, spec *paddock.Spec, into any) (paddock.Driver, paddock.Sandbox) {
	t.Helper()
	base, err := os.MkdirTemp("", "paddock-look") // outside t.TempDir, which another user could not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	place := filepath.Join(base, "reports")
	if err := os.Mkdir(place, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := open(filepath.Join(base, "state"), argv0, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	spec.Ephemeral = true
	spec.Mounts = append(spec.Mounts, paddock.Mount{Source: place, Target: reports, Write: true})
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			spec.AllowMissing = append(spec.AllowMissing, f.Control)
		}
	}
	sb, err := d.Create(t.Context(), *spec)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(place, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
	return d, sb
}

// sh runs a script in a sandbox and returns its output.
func sh(t *testing.T, sb paddock.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Dir: "/tmp", Timeout: time.Minute, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v: %s", script, exit, err, &out)
	}
	return out.String()
}
