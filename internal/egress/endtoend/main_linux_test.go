package endtoend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/program/programtest"
)

// patience bounds every wait of a test. Only a failure takes so long.
const patience = 90 * time.Second

// nobody is a user ID without an account.
const nobody = 64103

// TestMain makes this program everything that boxes need: the guest, gVisor, the gateway,
// and, inside a box, the program that makes the tries.
func TestMain(m *testing.M) {
	if gateway.Main() || box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) || supervisor.Main() || child.Main() || probeMain() {
		return
	}
	if status, done := apart(); done {
		os.Exit(status)
	}
	if err := errors.Join(programtest.Build("paddock-gvisor"), microvmtest.Build()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := settle(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A tier is a driver that makes boxes.
type tier struct {
	name paddock.Tier
	open func(w *world, o driverOptions) (paddock.Driver, error)
}

// driverOptions are the options that differ between the drivers of one test.
type driverOptions struct {
	state string
	audit audit.Sink
	login gatewayclient.Login
}

// steps is the journal of steps, which only sandboxes use that ask for it.
func (o driverOptions) steps() string { return filepath.Join(o.state, "steps") }

func tiers() []tier {
	list := []tier{
		{paddock.Jail, func(w *world, o driverOptions) (paddock.Driver, error) {
			return jail.New(jail.Options{State: o.state, Login: o.login, Environ: os.Environ(), Hosts: w.hosts(), Roots: w.CA, Audit: o.audit, Steps: o.steps()})
		}},
		{paddock.GVisor, func(w *world, o driverOptions) (paddock.Driver, error) {
			kernel, err := programtest.Program("paddock-gvisor")
			if err != nil {
				return nil, err
			}
			return gvisor.New(gvisor.Options{State: o.state, Login: o.login, Data: filepath.Join(o.state, "data"), Environ: os.Environ(), Hosts: w.hosts(), Roots: w.CA, Audit: o.audit, Steps: o.steps(), Init: kernel})
		}},
		{paddock.MicroVM, func(w *world, o driverOptions) (paddock.Driver, error) {
			guest, err := microvmtest.Guest()
			if err != nil {
				return nil, err
			}
			return microvm.New(microvm.Options{State: o.state, Data: microvmtest.Data(), Environ: os.Environ(), Guest: guest, Hosts: w.hosts(), Roots: w.CA, Audit: o.audit, Steps: o.steps()})
		}},
		simTier(),
	}
	if os.Getenv(worldVariable) == "" {
		return list
	}
	// The user's process tries what is available; the first process reports what is
	// missing.
	return slices.DeleteFunc(list, func(tr tier) bool {
		return tr.name == paddock.MicroVM && microvm.Lack(microvm.Options{Environ: os.Environ()}) != nil
	})
}

// tierOf returns the row of a tier.
func tierOf(t *testing.T, name paddock.Tier) tier {
	t.Helper()
	all := tiers()
	i := slices.IndexFunc(all, func(tr tier) bool { return tr.name == name })
	if i < 0 {
		t.Fatalf("no tier %s", name)
	}
	return all[i]
}

// A box is a sandbox for one test.
type testBox struct {
	paddock.Sandbox
	tier   tier
	world  *world
	events *events
	kept   []string     // directories of the driver
	mine   map[int]bool // children of this process that existed before
}

// box makes a sandbox with a network policy. It sees the world's directory of programs as
// /trial, except on a tier that runs no programs.
func (w *world) box(t *testing.T, tr tier, network paddock.NetworkPolicy, change ...func(*paddock.Spec)) *testBox {
	t.Helper()
	state, err := os.MkdirTemp("", "pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	b := &testBox{tier: tr, world: w, events: new(events), kept: []string{state}, mine: children(t)}
	d, err := tr.open(w, driverOptions{state: state, audit: b.events, login: w.login})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	spec := paddock.Spec{Ephemeral: true, Policy: paddock.Policy{Network: network}, AllowMissing: weak(info), Env: map[string]string{}}
	if tr.name != paddock.Sim {
		spec.Mounts = []paddock.Mount{{Source: w.Programs, Target: inside}}
	}
	for _, c := range change {
		c(&spec)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if b.Sandbox, err = d.Create(ctx, spec); err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.Remove(ctx); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return b
}

// inside is the world's directory of programs in boxes.
const inside = "/trial"

// weak returns the controls that the driver enforces only weakly here, which these tests
// are not about.
func weak(info paddock.Info) []paddock.Control {
	var list []paddock.Control
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			list = append(list, f.Control)
		}
	}
	return list
}

// A result is the result of a finished command.
type result struct {
	out, err string
	exit     paddock.Exit
}

func (r result) String() string {
	return fmt.Sprintf("exit %+v\n\tstdout %s\n\tstderr %s", r.exit, clip(r.out), clip(r.err))
}

func clip(s string) string {
	const most = 3000
	if len(s) > most {
		return s[:most/2] + " … " + s[len(s)-most/2:]
	}
	return s
}

// run runs a command until it ends.
func (b *testBox) run(t *testing.T, cmd paddock.Cmd) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &errs}
	p, err := b.Start(ctx, cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Args, err)
	}
	defer p.Release()
	exit, err := p.Wait(ctx)
	if err != nil {
		t.Fatalf("wait for %q: %v\n\tstdout %s\n\tstderr %s", cmd.Args, err, clip(out.String()), clip(errs.String()))
	}
	return result{out.String(), errs.String(), exit}
}

// sh runs a script until it ends.
func (b *testBox) sh(t *testing.T, script string, args ...string) result {
	t.Helper()
	return b.run(t, paddock.Cmd{Args: append([]string{"bash", "-c", script, "bash"}, args...)})
}

// must runs a script that must succeed, and returns its output.
func (b *testBox) must(t *testing.T, script string, args ...string) string {
	t.Helper()
	r := b.sh(t, script, args...)
	if r.exit.Cause != paddock.Exited || r.exit.Code != 0 {
		t.Fatalf("%s\n\t%v\n\tthe gateway said:\n\t%s", script, r, b.events)
	}
	return r.out
}

// events records the events of a box's gateway.
type events struct {
	mu  sync.Mutex
	all []audit.Event // guarded by mu
}

func (e *events) Record(v audit.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, v)
}

func (e *events) list() []audit.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// String returns the last events.
func (e *events) String() string { return e.about("") }

// about returns the last events about a host; an empty host matches all.
func (e *events) about(host string) string {
	var lines []string
	for _, v := range e.list() {
		if v.Network == nil || v.Network.Protocol == "dns" || host != "" && v.Network.Host != host {
			continue
		}
		line, err := audit.Line(v)
		lines = append(lines, fmt.Sprint(strings.TrimSpace(string(line)), err))
	}
	return strings.Join(lines[max(0, len(lines)-6):], "\n\t")
}

// asUser runs tests of this package again in another process, as a user without privileges
// who uses this world.
func (w *world) asUser(t *testing.T, run string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("this is an ordinary user already")
		return
	}
	home, err := os.MkdirTemp("", "ptu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for _, d := range []string{home, filepath.Join(home, "tmp")} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chown(d, nobody, nobody)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(w.Programs, "trial"), "-test.v", "-test.count=1", "-test.run="+run, "-test.timeout=10m")
	cmd.Dir = home
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "XDG_")
	}), "HOME="+home, "TMPDIR="+filepath.Join(home, "tmp"), worldVariable+"="+w.file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) || bytes.Contains(out, []byte("--- SKIP")) {
		t.Fatalf("as user %d: %v\n%s", nobody, err, out)
	}
}

// copyFile copies a program for all users.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
