package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

const session = "/user.slice/user-1000.slice/session-3.scope"

// inShell is a machine with systemd where a user's shell has started us.
func inShell(t *testing.T) *fake {
	f := newFake(t)
	f.euid = 1000
	f.unified(session, "rw")
	f.put("sys/fs/cgroup"+session+"/cgroup.procs", "17\n4242\n")
	f.put("sys/fs/cgroup"+session+"/memory.max", "max\n")
	f.put("sys/fs/cgroup"+session+"/cpu.max", "max 100000\n")
	f.put("run/systemd/system/x", "")
	return f
}

const given = "/user.slice/user-1000.slice/user@1000.service/app.slice/paddock-1.scope"

// scopeOf is the service manager's answer on a fake machine.
func (f *fake) scopeOf(asked *int) func() error {
	return func() error {
		*asked++
		f.unified(given, "rw")
		f.delegated = "user.delegate"
		return nil
	}
}

func TestALoginSessionGetsAScopeAndIsDividedAtOnce(t *testing.T) {
	f := inShell(t)
	asked := 0
	h := settle(f.probe, f.scopeOf(&asked))
	if asked != 1 {
		t.Errorf("asked for a scope %d times", asked)
	}
	for _, x := range h.Findings() {
		if x.Strength != paddock.Full {
			t.Errorf("%+v", x)
		}
	}
	own := "sys/fs/cgroup" + given + "/"
	if got := f.text(own + supervisor + "/cgroup.procs"); got != "0" {
		t.Errorf("moved aside: %q", got)
	}
	if got := f.text(own + "cgroup.subtree_control"); got != "+memory +cpu +pids +io" {
		t.Errorf("switched on: %q", got)
	}
	// What is started from now on is aside too, and stands in nobody's way.
	g, err := h.Create("box", moderate)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(g.Dirs()[0], f.dir+"/"+own) {
		t.Errorf("made in %s", g.Dirs()[0])
	}
}

func TestAScopeIsOnlyAskedForWhereItHelps(t *testing.T) {
	for name, set := range map[string]func(f *fake){
		"without systemd":         func(f *fake) { _ = os.RemoveAll(f.dir + "/run/systemd") },
		"a service":               func(f *fake) { f.unified("/system.slice/ci.service", "rw") },
		"a part of a service":     func(f *fake) { f.unified("/system.slice/ci.service/job", "rw") },
		"a service of the user's": func(f *fake) { f.unified("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "rw") },
		"a bounded session":       func(f *fake) { f.put("sys/fs/cgroup"+session+"/memory.max", "1000000\n") },
		"a session with a quota":  func(f *fake) { f.put("sys/fs/cgroup"+session+"/cpu.max", "50000 100000\n") },
		"a group of our own": func(f *fake) {
			f.put("sys/fs/cgroup"+session+"/cgroup.procs", "4242\n")
			f.delegated = "trusted.delegate"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := inShell(t)
			set(f)
			asked := 0
			settle(f.probe, f.scopeOf(&asked))
			if asked != 0 {
				t.Error("asked for a scope")
			}
		})
	}
}

func TestAServerIsAsideBeforeItHasChildren(t *testing.T) {
	f := newFake(t)
	f.unified("/system.slice/paddock.service", "rw")
	f.delegated = "user.delegate"
	h := settle(f.probe, nil)
	own := "sys/fs/cgroup/system.slice/paddock.service/"
	if got := f.text(own + supervisor + "/cgroup.procs"); got != "0" {
		t.Errorf("moved aside: %q", got)
	}
	// A child is where we are now; a probe of before would find it in the way.
	f.put(own+"cgroup.procs", "")
	f.put(own+"cgroup.subtree_control", "cpu io memory pids\n")
	f.put(own+supervisor+"/cgroup.procs", "4242\n4243\n")
	f.put("proc/self/cgroup", "0::/system.slice/paddock.service/"+supervisor+"\n")
	for _, h := range []*Host{h, f.probe()} {
		g, err := h.Create("box", moderate)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestSandboxesOfAServiceAreInTheUnitBesideItThatHoldsThem(t *testing.T) {
	f := newFake(t)
	f.unified("/paddock.slice/paddock.service", "rw")
	slice := "sys/fs/cgroup/paddock.slice/"
	f.put(slice+"paddock.service/cgroup.procs", "17\n4242\n") // a keeper of an earlier server
	f.put(slice+"cgroup.procs", "")
	for file, text := range map[string]string{"type": "domain\n", "procs": "", "controllers": "cpu io memory pids\n", "subtree_control": ""} {
		f.put(slice+sandboxes+"/cgroup."+file, text)
	}
	f.delegated = "user.delegate"
	h := settle(f.probe, nil)
	g, err := h.Create("box", moderate)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(g.Dirs()[0], f.dir+"/"+slice+sandboxes+"/") {
		t.Errorf("made in %s", g.Dirs()[0])
	}
	if got := f.text(slice + "paddock.service/cgroup.subtree_control"); got != "" {
		t.Errorf("our own group was divided: %q", got)
	}
	if exists(f.dir + "/" + slice + "paddock.service/" + supervisor) {
		t.Error("we moved")
	}
	// Where the group above both is not ours, nothing can be born there.
	if err := os.Remove(f.dir + "/" + slice + "cgroup.procs"); err != nil {
		t.Fatal(err)
	}
	if dir := f.probe().Groups[memory]; dir == f.dir+"/"+slice+sandboxes {
		t.Errorf("groups are made in %s", dir)
	}
}

func TestAGroupThatCannotBeDividedIsToldWithTheRemedyOfItsUnit(t *testing.T) {
	refused := errors.New("ask systemd for a scope: no")
	for name, c := range map[string]struct {
		set           func(f *fake)
		scope         error
		cause, remedy string
	}{
		"a session whose manager refuses":   {func(*fake) {}, refused, "systemd was asked for another one: ask systemd for a scope: no", "systemd-run --user --scope -p Delegate=yes -- paddock …"},
		"a user whose manager does not run": {func(*fake) {}, fmt.Errorf("connect to systemd: %w", fs.ErrNotExist), "no service manager runs for this user", "loginctl enable-linger 1000"},
		"a service": {func(f *fake) {
			f.unified("/system.slice/ci.service", "rw")
			f.put("sys/fs/cgroup/system.slice/ci.service/cgroup.procs", "17\n4242\n")
		}, nil, "the service ci.service may not divide its control group", "systemctl edit ci.service, write [Service] and below it Delegate=cpu memory pids io"},
		"a service of the user's": {func(f *fake) {
			f.unified("/user.slice/user-1000.slice/user@1000.service/app.slice/ci.service", "rw")
			f.put("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/ci.service/cgroup.procs", "17\n4242\n")
		}, nil, "the service ci.service may not divide its control group", "systemctl --user edit ci.service"},
		"users without controllers": {func(f *fake) {
			f.unified(given, "rw")
			f.put("sys/fs/cgroup"+given+"/cgroup.controllers", "\n")
		}, refused, "is not delegated to the services of users", "/etc/systemd/system/user@.service.d/delegate.conf"},
		"a service without controllers": {func(f *fake) {
			f.unified("/system.slice/ci.service", "rw")
			f.put("sys/fs/cgroup/system.slice/ci.service/cgroup.controllers", "\n")
		}, nil, "controller is not delegated to the service ci.service", "systemctl edit ci.service"},
	} {
		t.Run(name, func(t *testing.T) {
			f := inShell(t)
			c.set(f)
			for _, x := range settle(f.probe, func() error { return c.scope }).Findings() {
				if x.Strength != paddock.Absent || !strings.Contains(x.Cause, c.cause) || !strings.Contains(x.Remedy, c.remedy) {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

func TestADivisionThatFailsShowsInTheFindings(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.delegated = "user.delegate"
	if err := os.Remove(f.dir + "/sys/fs/cgroup" + scope + "/cgroup.subtree_control"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.dir+"/sys/fs/cgroup"+scope+"/cgroup.subtree_control", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, x := range settle(f.probe, nil).Findings() {
		if x.Strength != paddock.Absent || !strings.Contains(x.Cause, "divide our own group") {
			t.Errorf("%+v", x)
		}
	}
}

func TestTheUnitIsFoundInThePathOfAGroup(t *testing.T) {
	for group, want := range map[string]unit{
		"/": {},
		"/user.slice/user-1000.slice/session-3.scope":                                 {name: "session-3.scope"},
		"/user.slice/user-1000.slice/user@1000.service/init.scope":                    {name: "init.scope", user: true},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/a.service/b.scope":   {name: "a.service", service: true, user: true},
		"/system.slice/paddock.service/paddock-supervisor":                            {name: "paddock.service", service: true},
		"/system.slice/system-getty.slice/getty@tty1.service":                         {name: "getty@tty1.service", service: true},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/paddock-1-abc.scope": {name: "paddock-1-abc.scope", user: true},
	} {
		if got := unitOf(group); got != want {
			t.Errorf("%s: %+v, want %+v", group, got, want)
		}
	}
}
