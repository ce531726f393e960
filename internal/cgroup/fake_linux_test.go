package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A fake is a machine of plain files, for hierarchies that this one has not.
// It makes the files of a new group as the kernel does, but does nothing by
// itself: it shows what is written where, and answers what a test puts there.
type fake struct {
	t    *testing.T
	dir  string
	euid int
	pid  int
	// delegated is what a service manager marks a delegated group with.
	delegated string
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, dir: t.TempDir(), euid: os.Geteuid(), pid: 4242}
	f.put("proc/self/stat", strings.Replace(plainStat, "%s", "paddock", 1))
	f.put("proc/self/ns/pid", "")
	f.put("proc/swaps", "Filename Type Size Used Priority\n")
	return f
}

func (f *fake) put(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) text(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *fake) probe() *Host {
	return probe(environment{
		proc: f.dir + "/proc", sys: f.dir + "/sys", run: f.dir + "/run", root: f.dir,
		euid: f.euid, pid: f.pid,
		xattr: func(_, name string) string {
			if name == f.delegated {
				return "1"
			}
			return ""
		},
	}, tree{mkdir: f.mkdir, rmdir: f.rmdir})
}

// unified mounts version 2 and puts us into a group of it, not the real root.
func (f *fake) unified(own, options string) {
	f.put("proc/self/cgroup", "0::"+own+"\n")
	f.put("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup "+options+" - cgroup2 cgroup2 rw\n")
	g := "sys/fs/cgroup" + own + "/"
	f.put(g+"cgroup.type", "domain\n")
	f.put(g+"cgroup.procs", fmt.Sprintf("%d\n", f.pid))
	f.put(g+"cgroup.controllers", "cpuset cpu io memory pids\n")
	f.put(g+"cgroup.subtree_control", "")
}

func (f *fake) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	name, err := filepath.Rel(f.dir, dir)
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"cgroup.procs": "", "cgroup.type": "domain\n", "cgroup.freeze": "0\n", "cgroup.events": "populated 0\nfrozen 0\n",
		"cpu.stat": "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n", "cpu.max": "max 100000\n",
		"memory.max": "max\n", "memory.high": "max\n", "memory.swap.max": "max\n", "memory.current": "4096\n",
		"memory.peak": "8192\n", "memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n",
		"pids.max": "max\n", "pids.current": "3\n", "pids.events": "max 5\n", "io.max": "",
	} {
		f.put(filepath.Join(name, file), text)
	}
	return nil
}

func (f *fake) rmdir(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(b) > 0 {
		return &os.PathError{Op: "rmdir", Path: dir, Err: syscall.EBUSY}
	}
	return os.RemoveAll(dir)
}

const scope = "/user.slice/app.scope"

func TestVersion2IsDividedOnceAndLimitsAreWritten(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.delegated = "user.delegate"
	f.put("sys/dev/block/target", "")
	h := f.probe()
	if h.Mode != V2 || h.Groups[memory] != f.dir+"/sys/fs/cgroup"+scope {
		t.Fatalf("mode %s, groups %v", h.Mode, h.Groups)
	}
	for _, x := range h.Findings() {
		if x.Strength != paddock.Full {
			t.Errorf("%+v", x)
		}
	}
	g, err := h.Create("box", paddock.Limits{Memory: 64 << 20, CPUs: 1.5, PIDs: 32})
	if err != nil {
		t.Fatal(err)
	}
	own := "sys/fs/cgroup" + scope + "/"
	if got := f.text(own + supervisor + "/cgroup.procs"); got != "0" {
		t.Errorf("moved aside: %q", got)
	}
	if got := f.text(own + "cgroup.subtree_control"); got != "+memory +cpu +pids +io" {
		t.Errorf("switched on: %q", got)
	}
	if len(g.Dirs()) != 1 {
		t.Fatalf("directories: %v", g.Dirs())
	}
	dir, err := filepath.Rel(f.dir, g.Dirs()[0])
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"memory.max": "67108864", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "32", "io.max": "",
	} {
		if got := f.text(dir + "/" + file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}

	u, err := g.Usage()
	want := paddock.Usage{Wall: -1, CPU: 1500 * time.Microsecond, Memory: 4096, MemoryPeak: 8192, PIDs: 3}
	if err != nil || u != want {
		t.Errorf("usage %+v, %v", u, err)
	}
	if kills, peak, err := g.OOM(); kills != 1 || peak != 8192 || err != nil {
		t.Errorf("out of memory: %d, %d, %v", kills, peak, err)
	}
	if n, err := g.PIDsHit(); n != 5 || err != nil {
		t.Errorf("refused: %d, %v", n, err)
	}
	if err := os.Remove(g.Dirs()[0] + "/memory.peak"); err != nil {
		t.Fatal(err)
	}
	if u, err := g.Usage(); u.MemoryPeak != -1 || err != nil {
		t.Errorf("without a peak: %+v, %v", u, err)
	}

	// The second time nothing is divided.
	f.put(own+"cgroup.subtree_control", "untouched")
	second, err := h.Create("second", moderate)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.text(own + "cgroup.subtree_control"); got != "untouched" {
		t.Errorf("divided again: %q", got)
	}
	for _, g := range []*Group{g, second} {
		if err := g.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if list, err := children(filepath.Join(f.dir, own)); err != nil || !slices.Equal(list, []string{supervisor}) {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestWhoWasMovedAsideMakesGroupsBesideItself(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.put("proc/self/cgroup", "0::"+scope+"/"+supervisor+"\n")
	f.put("sys/fs/cgroup"+scope+"/cgroup.procs", "")
	f.put("sys/fs/cgroup"+scope+"/cgroup.subtree_control", "cpu io memory pids\n")
	g, err := f.probe().Create("box", moderate)
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Dir(g.Dirs()[0]); got != f.dir+"/sys/fs/cgroup"+scope {
		t.Errorf("made in %s", got)
	}
	if got := f.text("sys/fs/cgroup" + scope + "/cgroup.subtree_control"); got != "cpu io memory pids\n" {
		t.Errorf("divided again: %q", got)
	}
}

func TestTheRealRootNeedsNoMove(t *testing.T) {
	f := newFake(t)
	f.unified("/", "rw")
	if err := os.Remove(f.dir + "/sys/fs/cgroup/cgroup.type"); err != nil {
		t.Fatal(err)
	}
	f.put("sys/fs/cgroup/cgroup.procs", "1\n2\n4242\n")
	if _, err := f.probe().Create("box", moderate); err != nil {
		t.Fatal(err)
	}
	if exists(f.dir + "/sys/fs/cgroup/" + supervisor) {
		t.Error("we moved")
	}
}

func TestWhatCannotBeHadIsToldWithCauseAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		set           func(f *fake)
		cause, remedy string
		absent        []paddock.Control
	}{
		"no control group": {
			func(f *fake) { f.put("proc/self/cgroup", "") },
			"no control group file system is mounted", "mount -t cgroup2", nil,
		},
		"a container without any": {
			func(f *fake) { f.put("proc/self/cgroup", "0::/\n"); f.put(".dockerenv", "") },
			"no control group file system is mounted", "--cgroupns=private", nil,
		},
		"a container with a read-only one": {
			func(f *fake) { f.unified("/", "ro,nosuid"); f.put(".dockerenv", "") },
			"mounted read-only", "docker run --privileged --cgroupns=private", nil,
		},
		"a group outside of the namespace": {
			func(f *fake) { f.unified("/", "rw"); f.put("proc/self/cgroup", "0::/../x\n") },
			"outside of what is mounted", "--cgroupns=private", nil,
		},
		"a session with a shell in it": {
			func(f *fake) {
				f.unified(scope, "rw")
				f.delegated = "user.delegate"
				f.put("sys/fs/cgroup"+scope+"/cgroup.procs", "17\n4242\n")
				f.put("run/systemd/system/x", "")
				f.euid = 1000
			},
			"holds other processes", "systemd-run --user --scope -p Delegate=yes -- paddock …", nil,
		},
		"a service that nobody delegated, as root": {
			func(f *fake) { f.unified(scope, "rw"); f.euid = 0; f.put("run/systemd/system/x", "") },
			"did not delegate it", "systemd-run --scope -p Delegate=yes -- paddock …", nil,
		},
		"controllers that were not delegated": {
			func(f *fake) {
				f.unified(scope, "rw")
				f.delegated = "trusted.delegate"
				f.put("sys/fs/cgroup"+scope+"/cgroup.controllers", "memory pids\n")
				f.put("run/systemd/system/x", "")
				f.euid = 1000
			},
			"controller is not delegated", "systemd-run --user --scope -p Delegate=yes -- paddock …",
			[]paddock.Control{paddock.ControlCPU, paddock.ControlIO},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.put("proc/self/mountinfo", "")
			c.set(f)
			h := f.probe()
			for _, x := range h.Findings() {
				if c.absent != nil && !slices.Contains(c.absent, x.Control) {
					if x.Strength != paddock.Full {
						t.Errorf("%+v", x)
					}
					continue
				}
				if x.Strength != paddock.Absent || !strings.Contains(x.Cause, c.cause) || !strings.Contains(x.Remedy, c.remedy) {
					t.Errorf("%+v", x)
				}
			}
			l := moderate
			l.IO = 1 << 20
			_, err := h.Create("box", l, "/")
			var missing *paddock.MissingError
			if !errors.As(err, &missing) || !errors.Is(err, paddock.Unsupported) {
				t.Errorf("create: %v", err)
			}
			if exists(f.dir + "/sys/fs/cgroup" + scope + "/" + supervisor) {
				t.Error("we moved for nothing")
			}
		})
	}
}

func TestNoRightIsToldToAnUnprivilegedUser(t *testing.T) {
	f := newFake(t)
	f.put("run/systemd/system/x", "")
	f.euid = 1000
	f.unified(scope, "rw")
	h := f.probe()
	for _, y := range h.hierarchies {
		y.err = syscall.EACCES // root, who may run this test, is refused nothing
	}
	for _, x := range h.Findings() {
		if x.Strength != paddock.Absent || x.Cause != "no right to make control groups" ||
			x.Remedy != "systemd-run --user --scope -p Delegate=yes -- paddock …" {
			t.Errorf("%+v", x)
		}
	}
}

func TestAPreparationThatFailsIsUndone(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.delegated = "user.delegate"
	h := f.probe()
	own := f.dir + "/sys/fs/cgroup" + scope
	if err := os.Remove(own + "/cgroup.subtree_control"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(own+"/cgroup.subtree_control", 0o755); err != nil {
		t.Fatal(err)
	}
	// As the kernel would when we have left again.
	rmdir := h.tree.rmdir
	h.tree.rmdir = func(dir string) error {
		f.put("sys/fs/cgroup"+scope+"/"+filepath.Base(dir)+"/cgroup.procs", "")
		return rmdir(dir)
	}
	if _, err := h.Create("box", moderate); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("error is %v", err)
	}
	if exists(own + "/" + supervisor) {
		t.Error("the group aside is left")
	}
	if got := f.text("sys/fs/cgroup" + scope + "/cgroup.procs"); got != "0" {
		t.Errorf("we did not move back: %q", got)
	}
}

func TestSwapIsNoWayOut(t *testing.T) {
	for name, c := range map[string]struct {
		swaps string
		kind  error
	}{
		"no swap in use": {"Filename Type Size Used Priority\n", nil},
		"swap in use":    {"Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n", paddock.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.unified(scope, "rw")
			f.delegated = "user.delegate"
			f.put("proc/swaps", c.swaps)
			h := f.probe()
			mkdir := h.tree.mkdir
			h.tree.mkdir = func(dir string) error {
				return errors.Join(mkdir(dir), os.Remove(dir+"/memory.swap.max"))
			}
			// The aside group has none either, and needs none.
			_, err := h.Create("box", moderate)
			if !errors.Is(err, c.kind) {
				t.Errorf("error is %v", err)
			}
			if left := h.look("box"); (err != nil) != (len(left) == 0) {
				t.Errorf("after %v there is %v", err, left)
			}
		})
	}
}

func TestAMachineThatBoundsReservedMemoryIsTold(t *testing.T) {
	for mode, told := range map[string]bool{"0": false, "1": false, "2": true} {
		f := newFake(t)
		f.unified(scope, "rw")
		f.delegated = "user.delegate"
		f.put("proc/sys/vm/overcommit_memory", mode+"\n")
		for _, x := range f.probe().Findings() {
			if got := strings.Contains(x.How, "overcommit_memory"); got != (told && x.Control == paddock.ControlMemory) {
				t.Errorf("mode %s, %s: %q", mode, x.Control, x.How)
			}
		}
	}
}

func TestAnUpdateIsAllOrNothing(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.delegated = "user.delegate"
	g, err := f.probe().Create("box", moderate)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Rel(f.dir, g.Dirs()[0])
	if err != nil {
		t.Fatal(err)
	}
	// Below what is in use and does not go away: refused, and nobody killed.
	f.put(dir+"/memory.current", "100000000\n")
	if err := g.Update(paddock.Limits{Memory: 1 << 20}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("error is %v", err)
	}
	if f.text(dir+"/memory.max") != "268435456" || f.text(dir+"/memory.high") != "max" {
		t.Errorf("memory is %q, %q", f.text(dir+"/memory.max"), f.text(dir+"/memory.high"))
	}
	// The last write fails: the first ones are undone.
	// (A link to what can be read and not written, also by root.)
	file := g.Dirs()[0] + "/cpu.max"
	if err := errors.Join(os.Remove(file), os.Symlink("/proc/self/stat", file)); err != nil {
		t.Fatal(err)
	}
	if err := g.Update(paddock.Limits{Memory: 512 << 20, PIDs: 9, CPUs: 2}); err == nil {
		t.Error("no error")
	}
	if f.text(dir+"/memory.max") != "268435456" || f.text(dir+"/pids.max") != "64" {
		t.Errorf("half of it was done: %q, %q", f.text(dir+"/memory.max"), f.text(dir+"/pids.max"))
	}
	if err := g.Update(paddock.Limits{Memory: 512 << 20, PIDs: 9}); err != nil {
		t.Error(err)
	}
	if f.text(dir+"/memory.max") != "536870912" || f.text(dir+"/pids.max") != "9" {
		t.Errorf("nothing was done: %q, %q", f.text(dir+"/memory.max"), f.text(dir+"/pids.max"))
	}
}

func TestALimitOnADiskIsForTheWholeDisk(t *testing.T) {
	f := newFake(t)
	f.unified(scope, "rw")
	f.delegated = "user.delegate"
	var st syscall.Stat_t
	if err := syscall.Stat(f.dir, &st); err != nil {
		t.Fatal(err)
	}
	if major(st.Dev) == 0 {
		t.Skip("the temporary directory is on no block device")
	}
	// As if it were a partition of the disk 9:99.
	f.put("sys/devices/disk/dev", "9:99\n")
	f.put("sys/devices/disk/disk1/partition", "1\n")
	f.put("sys/dev/block/x", "")
	name := fmt.Sprintf("%s/sys/dev/block/%d:%d", f.dir, major(st.Dev), minor(st.Dev))
	if err := os.Symlink("../../devices/disk/disk1", name); err != nil {
		t.Fatal(err)
	}
	g, err := f.probe().Create("box", paddock.Limits{IO: 1000}, f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(g.Dirs()[0] + "/io.max"); err != nil || string(b) != "9:99 rbps=1000 wbps=1000" {
		t.Errorf("io.max is %q, %v", b, err)
	}
}
