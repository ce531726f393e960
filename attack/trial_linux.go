package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A Result is the outcome of one case.
type Result struct {
	ID       string
	Cell     Cell
	Tries    []protocol.Try
	Evidence []string // what the host found; any of it is an escape
	Broken   string   // why there is no verdict
}

// A trial is a case in progress.
type trial struct {
	t      *testing.T
	c      Case
	w      *world
	h      Harness
	caller string
	driver paddock.Driver
	info   paddock.Info
	sb     paddock.Sandbox
	out    []byte // all output of the sandbox
	seen   []protocol.Try
	extra  []string // evidence found during the case

	terminal *paddock.Size // terminal of a script, or nil
	bound    time.Duration // time limit of a script; zero is the usual one
	rounds   int           // number of rounds of scripts

	before []protocol.Traffic // traffic before traffic that does not count
}

// patience bounds one case.
const patience = 3 * time.Minute

// patience returns the time limit of one case of a tier. An emulated machine takes minutes
// for a case that starts many programs.
func (h Harness) patience() time.Duration {
	if h.Tier == paddock.MicroVM {
		return 4 * patience
	}
	return patience
}

// try runs one case in its own world.
func (h Harness) try(t *testing.T, c Case, place, caller string) (res Result) {
	res = Result{ID: c.ID}
	w, err := newWorld(place, c.ID, caller == "root")
	defer func() {
		if err := w.close(); err != nil && res.Broken == "" {
			t.Logf("%s: close world: %v", c.ID, err)
		}
	}()
	if err == nil && c.way != nil {
		err = w.online()
	}
	if err == nil && c.prepare != nil {
		err = c.prepare(w)
	}
	if err == nil {
		err = w.start()
	}
	if err != nil {
		res.Broken = "make the world: " + err.Error()
		return res
	}
	t.Setenv("HOME", w.brief.Home)
	t.Setenv("PADDOCK_CANARY_ENV", w.token("a variable of the caller"))
	if h.Unconfined && c.way != nil {
		t.Setenv(protocol.SecretEnv, w.secret)
	}
	x := &trial{t: t, c: c, w: w, h: h, caller: caller}
	if err := x.watched(x.run); err != nil {
		res.Broken = err.Error()
		return res
	}
	x.judge(&res)
	return res
}

// judge fills in a result from the tries and the host's evidence.
func (x *trial) judge(res *Result) {
	res.Tries = x.tries(res)
	res.Evidence = append(res.Evidence, x.extra...)
	res.Evidence = append(res.Evidence, x.w.evidence(x.out)...)
	if x.c.way != nil {
		found, err := x.traffic()
		res.Evidence = append(res.Evidence, found...)
		if err != nil && res.Broken == "" {
			res.Broken = err.Error()
		}
	}
	if len(res.Evidence) > 0 {
		res.Cell = Cell{Verdict: Escaped, Why: strings.Join(res.Evidence, "; ")}
	}
}

// watched runs f and returns forbidden changes meanwhile, if the attacker cannot see them.
func (x *trial) watched(f func() error) error {
	if !x.h.ownKernel() || x.c.Swaps {
		return f()
	}
	protected := func(p string) bool { return x.w.denied(p) || x.w.trusted(p) }
	watch, err := newWatch(protected, x.w.brief.Work)
	if err != nil {
		return fmt.Errorf("watch the workspace: %w", err)
	}
	err = f()
	seen, missed := watch.stop()
	x.extra = append(x.extra, seen...)
	return errors.Join(err, missed)
}

// run makes the driver, tries, and removes everything.
func (x *trial) run() (err error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), x.h.patience())
	defer cancel()
	x.driver = x.h.New(x.t, x.w.brief.State)
	defer func() {
		if e := x.driver.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("close driver: %w", e))
		}
		x.extra = append(x.extra, x.w.leftovers()...)
	}()
	if x.info, err = x.driver.Info(ctx, paddock.Auto); err != nil {
		return fmt.Errorf("info: %w", err)
	}
	if x.c.host != nil {
		x.t.Log(x.c.ID, "is tried from the host")
		x.record(x.c.host(x))
		return nil
	}
	if err := x.create(ctx); err != nil {
		// A refusal of what cannot be enforced is an answer.
		if x.c.spec != nil && errors.Is(err, paddock.Unsupported) {
			x.record([]protocol.Try{{Name: "create", Outcome: protocol.Denied, Errno: "refused", Detail: err.Error()}})
			return nil
		}
		return fmt.Errorf("create: %w", err)
	}
	err = x.attack(ctx)
	if err == nil && x.c.after != nil {
		x.record(x.c.after(x))
	}
	return errors.Join(err, x.remove())
}

func (x *trial) remove() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.t.Context()), patience)
	defer cancel()
	if err := x.sb.Remove(ctx); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// spec returns the spec of a careful caller, with limits that are small enough to be
// reached.
func (x *trial) spec() paddock.Spec {
	b := &x.w.brief
	b.Unconfined, b.Kernel, b.Slow = x.h.Unconfined, x.h.ownKernel(), x.h.Tier == paddock.MicroVM
	b.Memory, b.PIDs, b.Files, b.Disk, b.CPUs = 256<<20, 100, 512, 64<<20, 0.5
	s := paddock.Spec{
		Mounts: []paddock.Mount{{Source: b.Work, Write: true}, {Source: x.w.brief.Place + "/bin"}},
		Limits: paddock.Limits{Memory: b.Memory, PIDs: b.PIDs, Files: b.Files, Disk: b.Disk, CPUs: b.CPUs},
		Policy: paddock.Policy{Files: paddock.FilePolicy{
			DenyRead:  []string{b.DenyReadDir, b.DenyReadFile},
			DenyWrite: []string{b.DenyWriteDir, b.DenyWrite, b.DenyDeep},
		}},
		Ephemeral: true,
	}
	for _, f := range x.info.Controls {
		if f.Strength != paddock.Full {
			s.AllowMissing = append(s.AllowMissing, f.Control)
		}
	}
	if x.h.Tier == paddock.MicroVM && x.c.ID != "P22" {
		s.Limits.CPUs = 0 // it would slow down the emulation
	}
	if x.c.way != nil {
		x.connect(&s)
	}
	if x.c.spec != nil {
		x.c.spec(x.w, &s)
	}
	return s
}

func (x *trial) create(ctx context.Context) error {
	s := x.spec()
	x.fit(&s)
	var err error
	x.sb, err = x.driver.Create(ctx, s)
	return err
}

// fit adapts a spec for a tier that never writes to directories of the host: changes stay
// inside, so no names need protection. Another case tests invalid names.
func (x *trial) fit(s *paddock.Spec) {
	if x.h.Tier != paddock.Sim {
		return
	}
	s.Mounts = slices.Clone(s.Mounts)
	for i := range s.Mounts {
		m := &s.Mounts[i]
		m.Write, m.Overlay = false, m.Write
	}
	if x.c.spec != nil {
		s.Policy.Files.Protect = nil
	}
}

// attack runs the attacker inside and takes its report.
func (x *trial) attack(ctx context.Context) error {
	report, err := x.guest(ctx, x.sb, x.c.ID)
	if err != nil {
		return err
	}
	x.record(report.Tries)
	return nil
}

// guest runs the attacker in a sandbox and returns its report.
func (x *trial) guest(ctx context.Context, sb paddock.Sandbox, args ...string) (protocol.Report, error) {
	if x.h.Tier == paddock.Sim {
		return x.scripted(ctx, sb, args...)
	}
	var report protocol.Report
	brief, err := json.Marshal(x.w.brief)
	if err != nil {
		return report, err
	}
	var stdout, stderr bytes.Buffer
	cmd := paddock.Cmd{
		Args:    append([]string{x.w.brief.Self}, args...),
		Env:     map[string]string{protocol.BriefEnv: string(brief)},
		Timeout: x.h.patience() - 20*time.Second,
		Output:  paddock.Output{Stdout: &stdout, Stderr: &stderr},
	}
	p, err := sb.Start(ctx, cmd)
	if err != nil {
		return report, fmt.Errorf("start attacker: %w", err)
	}
	exit, err := p.Wait(ctx)
	x.out = append(append(x.out, stdout.Bytes()...), stderr.Bytes()...)
	if err != nil {
		return report, fmt.Errorf("wait for attacker: %w", err)
	}
	for line := range bytes.Lines(stdout.Bytes()) {
		if json.Unmarshal(line, &report) == nil && report.Case == args[0] {
			return report, x.complete(report)
		}
	}
	// When memory is short, the kernel may kill the attacker itself, or the sandbox's own
	// kernel.
	gone := x.h.ownKernel() && exit.Cause == paddock.SandboxGone && strings.Contains(exit.Reason, "memory limit")
	if gone || exit.Cause == paddock.OutOfMemory || exit.Cause == paddock.KilledByPolicy {
		report = protocol.Report{Case: args[0], Tries: []protocol.Try{{Name: "all", Outcome: protocol.Denied, Errno: string(exit.Cause), Detail: exit.Reason}}}
		return report, nil
	}
	return report, fmt.Errorf("no report: exit %+v: %s", exit, tail(stderr.Bytes()))
}

// complete checks that no technique is missing.
func (x *trial) complete(r protocol.Report) error {
	var have []string
	for _, t := range r.Tries {
		have = append(have, t.Name)
		if t.Outcome == "broken" {
			return fmt.Errorf("technique %q: %s", t.Name, t.Detail)
		}
	}
	if want := x.h.techniques[r.Case]; !slices.Equal(have, want) {
		return fmt.Errorf("the attacker tried %q in place of %q", have, want)
	}
	return nil
}

func tail(b []byte) string {
	if len(b) > 2000 {
		b = b[len(b)-2000:]
	}
	return string(b)
}

func (x *trial) record(tries []protocol.Try) { x.seen = append(x.seen, tries...) }

// tries judges the recorded tries and fills in the cell.
func (x *trial) tries(res *Result) []protocol.Try {
	x.seen = slices.Clone(x.seen)
	errnos, reasons := map[string]bool{}, map[string]bool{}
	v := NotApplicable
	raise := func(to Verdict) {
		if weaker(to) > weaker(v) {
			v = to
		}
	}
	for i, t := range x.seen {
		for e := range strings.FieldsSeq(t.Errno) {
			errnos[e] = true
		}
		switch t.Outcome {
		case protocol.Denied:
			raise(Denied)
		case protocol.Inside:
			raise(Contained)
		case protocol.Reached:
			if why, ok := technique(x.c.ByDesign, t.Name); ok {
				raise(ByDesign)
				reasons[why] = true
				continue
			}
			if why, ok := technique(x.c.Own, t.Name); ok && x.h.ownKernel() {
				raise(Contained)
				reasons[why] = true
				continue
			}
			if why, ok := x.absent(t.Name); ok {
				raise(ByDesign)
				reasons[why] = true
				continue
			}
			raise(Escaped)
			x.extra = append(x.extra, fmt.Sprintf("%s: %s", t.Name, t.Detail))
		case protocol.Absent:
		default:
			res.Broken = fmt.Sprintf("technique %q has the outcome %q", t.Name, t.Outcome)
		}
		for _, leak := range x.w.leaks([]byte(t.Loot)) {
			x.extra = append(x.extra, t.Name+": "+leak)
		}
		x.seen[i].Loot = "" // already searched
	}
	res.Cell.Verdict = v
	res.Cell.Errnos = strings.Join(slices.Sorted(maps.Keys(errnos)), " ")
	res.Cell.Why = strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
	if v == NotApplicable && len(x.seen) > 0 {
		res.Cell.Why = x.seen[0].Detail
	}
	if x.h.Tier == paddock.Sim && v == Denied && x.c.host == nil && scripts(x.c.ID) == nil {
		res.Cell.Verdict, res.Cell.Why = NotApplicable, noCalls
	}
	return x.seen
}

// absent reports whether the host lacks the control that would have stopped a technique.
func (x *trial) absent(name string) (string, bool) {
	c, ok := technique(x.c.Needs, name)
	if !ok || x.h.Unconfined {
		return "", false
	}
	f, known := x.info.Finding(c)
	if known && f.Strength == paddock.Full {
		return "", false
	}
	return fmt.Sprintf("this host cannot give %s to this caller, and the caller accepted that by name", c), true
}
