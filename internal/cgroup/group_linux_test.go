package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// helping is set where the test binary is started again as a child to be
// bounded; its value says what the child does.
const helping = "PADDOCK_CGROUP_TEST"

func TestMain(m *testing.M) {
	if task := os.Getenv(helping); task != "" {
		help(task)
	}
	os.Exit(m.Run())
}

func help(task string) {
	switch task {
	case "grow": // until somebody ends it
		var held [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 512 {
				b[i] = 1
			}
			held = append(held, b)
			runtime.KeepAlive(held)
		}
	case "hold": // 48 MiB, and says so
		b := make([]byte, 48<<20)
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(b)
	case "share": // maps a file whole, and says so
		f, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		b, err := syscall.Mmap(int(f.Fd()), 0, 100<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
		runtime.KeepAlive(b)
	case "headless": // ends its main thread, and goes on
		var search func()
		search = func() {
			runtime.LockOSThread()
			if syscall.Gettid() == syscall.Getpid() {
				_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
			}
			go search()
			fmt.Fprintln(os.Stderr, "searching")
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		search()
	case "make": // a group, and dies with it
		h := Probe()
		if _, err := h.Create(os.Args[1], moderate); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(0)
}

func executable(tb testing.TB) string {
	tb.Helper()
	name, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return name
}

func helper(tb testing.TB, task string, args ...string) *exec.Cmd {
	tb.Helper()
	cmd := exec.Command(executable(tb), args...)
	cmd.Env = append(os.Environ(), helping+"="+task)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return cmd
}

var moderate = paddock.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 64}

// host gives a host on which groups with limits can really be made, or skips.
func host(tb testing.TB) *Host {
	tb.Helper()
	h := Probe()
	for _, f := range h.Findings() {
		if f.Strength == paddock.Absent && f.Control != paddock.ControlIO {
			tb.Skipf("no control groups to test with: %s: %s (remedy: %s)", f.Control, f.Cause, f.Remedy)
		}
	}
	return h
}

// hosts gives what this machine is, and what it would be with less: promises
// hold on each.
func hosts(t *testing.T, each func(t *testing.T, h *Host, l paddock.Limits)) {
	t.Run("as it is", func(t *testing.T) { each(t, host(t), moderate) })
	t.Run("version 1 alone", func(t *testing.T) {
		h := host(t)
		h.hierarchies = slices.DeleteFunc(h.hierarchies, func(y *hierarchy) bool { return y.v2 })
		if len(h.hierarchies) == 0 {
			t.Skip("nothing of version 1 is mounted here")
		}
		each(t, h, moderate)
	})
	t.Run("version 2 alone", func(t *testing.T) {
		h := Probe()
		h.hierarchies = slices.DeleteFunc(h.hierarchies, func(y *hierarchy) bool { return !y.v2 || y.err != nil })
		if len(h.hierarchies) == 0 {
			t.Skip("no usable version 2 hierarchy is mounted here")
		}
		l := moderate
		for _, c := range []struct {
			name string
			off  func()
		}{
			{memory, func() { l.Memory = 0 }},
			{cpu, func() { l.CPUs = 0 }},
			{pids, func() { l.PIDs = 0 }},
		} {
			if _, err := h.find(c.name); err != nil {
				c.off() // beside version 1 it has no controllers
			}
		}
		each(t, h, l)
	})
}

func create(tb testing.TB, h *Host, name string, l paddock.Limits) *Group {
	tb.Helper()
	g, err := h.Create(name, l)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Remove(context.Background()); err != nil {
			tb.Error(err)
		}
		for _, d := range g.Dirs() {
			if exists(d) {
				tb.Errorf("%s is left", d)
			}
		}
	})
	return g
}

// begin starts a command in a group.
func begin(tb testing.TB, g *Group, cmd *exec.Cmd) {
	tb.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// inside checks the text of a /proc/PID/cgroup against a group.
func inside(t *testing.T, g *Group, text string) {
	t.Helper()
	want := path.Base(g.Dirs()[0])
	for _, p := range g.parts {
		ok := false
		for line := range strings.Lines(text) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			here := p.v2 && f[0] == "0" || !p.v2 && slices.Contains(strings.Split(f[1], ","), p.controllers[0])
			ok = ok || here && path.Base(f[2]) == want
		}
		if !ok {
			t.Errorf("not in %s:\n%s", p.path, text)
		}
	}
}

// nobody checks that no thread of this process is in a group.
func nobody(t *testing.T, g *Group) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		b, err := os.ReadFile("/proc/self/task/" + th.Name() + "/cgroup")
		if err == nil && strings.Contains(string(b), path.Base(g.Dirs()[0])) {
			t.Errorf("thread %s is still inside:\n%s", th.Name(), b)
		}
	}
}

func TestAChildIsInsideFromItsFirstInstruction(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "first", l)
		// A traced child stops before the first instruction of its program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command("/bin/sh", "-c", "cat /proc/self/cgroup; (cat /proc/self/cgroup)")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		begin(t, g, cmd)
		nobody(t, g)
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &ws, 0, nil); err != nil || !ws.Stopped() {
			t.Fatalf("the child did not stop: %v, %v", ws, err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		inside(t, g, string(text))
		if list, err := g.PIDs(); err != nil || !slices.Equal(list, []int{cmd.Process.Pid}) {
			t.Errorf("processes inside: %v, %v", list, err)
		}
		if err := syscall.PtraceDetach(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		half := len(all) / 2
		inside(t, g, string(all[:half])) // a child of the child
		inside(t, g, string(all[half:])) // and one of that
	})
}

func TestANamespaceMadeWithTheChildHidesWhereItIs(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "namespace", l)
		cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWCGROUP}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		begin(t, g, cmd)
		b, err := io.ReadAll(out)
		if err != nil || len(b) == 0 || strings.Contains(string(b), prefix) {
			t.Errorf("it sees %s, %v", b, err)
		}
	})
}

func TestAFailedStartLeavesNobodyInside(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "failed", l)
		cmd := exec.Command("/does/not/exist")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		err := g.Start(cmd.SysProcAttr, cmd.Start)
		if !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrStranded) {
			t.Errorf("error is %v", err)
		}
		if cmd.SysProcAttr.UseCgroupFD {
			t.Error("the attributes keep a closed descriptor")
		}
		nobody(t, g)
	})
}

func TestAThreadThatStartsAChildIsNotKilledWithTheGroup(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "halfway", l)
		err := g.Start(&syscall.SysProcAttr{}, func() error {
			if list, err := g.PIDs(); err != nil || len(list) != 0 {
				t.Errorf("processes inside: %v, %v", list, err)
			}
			return g.Kill(t.Context())
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAStartInARemovedGroupIsRefused(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "removed", l)
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := g.Start(&syscall.SysProcAttr{}, func() error { t.Error("it was started"); return nil })
		if !errors.Is(err, paddock.NotFound) {
			t.Errorf("error is %v", err)
		}
		if _, err := g.Usage(); !errors.Is(err, paddock.NotFound) {
			t.Errorf("usage: %v", err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Errorf("a second time: %v", err)
		}
		nobody(t, g)
	})
}

func TestTooMuchMemoryIsKilledAndTold(t *testing.T) {
	h := host(t)
	const limit = 64 << 20
	g := create(t, h, "memory", paddock.Limits{Memory: limit, PIDs: 64})
	cmd := helper(t, "grow")
	begin(t, g, cmd)
	_ = cmd.Wait()
	if ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	kills, peak, err := g.OOM()
	// The kernel lets a few pages through that it cannot refuse.
	const slack = 1 << 20
	if err != nil || kills < 1 || peak < limit*9/10 || peak > limit+slack {
		t.Errorf("kills %d, peak %d, %v", kills, peak, err)
	}
	u, err := g.Usage()
	if err != nil || u.CPU <= 0 || u.MemoryPeak != peak || u.PIDs != 0 || u.Memory > limit+slack {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestTooManyProcessesAreRefusedAndTold(t *testing.T) {
	h := host(t)
	g := create(t, h, "pids", paddock.Limits{PIDs: 8})
	cmd := exec.Command("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done")
	begin(t, g, cmd)
	_ = cmd.Wait()
	if n, err := g.PIDsHit(); err != nil || n < 1 {
		t.Errorf("refused %d, %v", n, err)
	}
	if u, err := g.Usage(); err != nil || u.PIDs < 1 || u.PIDs > 8 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := g.PIDs(); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestKillEndsWhatKeepsForking(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "forks", l)
		cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 40 ]; do sleep 1000 & i=$((i+1)); done; echo ready; while :; do (:); done")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		begin(t, g, cmd)
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	})
}

func TestAProcessWithoutMainThreadIsKilledToo(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "headless", l)
		cmd := helper(t, "headless")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		begin(t, g, cmd)
		// Its main thread may not have ended yet; that is the plain case.
		for {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseStat(b)
			if err != nil {
				t.Fatal(err)
			}
			if s.dead() {
				break
			}
			runtime.Gosched()
		}
		if list, err := g.PIDs(); err != nil || !slices.Equal(list, []int{cmd.Process.Pid}) {
			t.Errorf("processes inside: %v, %v", list, err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	})
}

func TestAFrozenGroupStandsStill(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "frozen", l)
		cmd := exec.Command("/bin/sh", "-c", "while read line; do echo $line; done")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(pipe)
		begin(t, g, cmd)
		for range 2 {
			if err := g.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(in, "hello\n"); err != nil {
			t.Fatal(err)
		}
		before, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
		if after, err := g.Usage(); err != nil || after.CPU != before.CPU {
			t.Errorf("it went on: %v then %v, %v", before.CPU, after.CPU, err)
		}
		err = g.Start(&syscall.SysProcAttr{}, func() error { t.Error("it was started"); return nil })
		if !errors.Is(err, paddock.Conflict) {
			t.Errorf("a start answers %v", err)
		}
		for range 2 {
			if err := g.Thaw(); err != nil {
				t.Fatal(err)
			}
		}
		if line, err := out.ReadString('\n'); line != "hello\n" {
			t.Errorf("nothing was lost? %q, %v", line, err)
		}
		if err := g.Freeze(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Errorf("remove a frozen group: %v", err)
		}
	})
}

func TestAFreezeThatIsGivenUpLeavesTheGroupRunning(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "given-up", l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		// A start is under way, so the freeze cannot begin.
		err := g.Start(&syscall.SysProcAttr{}, func() error {
			if err := g.Freeze(ctx); !errors.Is(err, paddock.Canceled) {
				t.Errorf("error is %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if frozen, err := g.frozen(); frozen || err != nil {
			t.Errorf("frozen %v, %v", frozen, err)
		}
	})
}

func TestRemoveTakesGroupsBelow(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "below", l)
		for _, d := range g.Dirs() {
			for _, below := range []string{"/a", "/a/b", "/c"} {
				if err := h.tree.mkdir(d + below); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := g.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	h := host(t)
	before := h.look("failing")
	if len(before) != 0 {
		t.Fatalf("%v is there already", before)
	}
	for _, c := range []struct {
		name  string
		l     paddock.Limits
		paths []string
		kind  paddock.Kind
	}{
		{"failing", paddock.Limits{Memory: -1}, nil, paddock.Invalid},
		{"failing", paddock.Limits{CPUs: 0.001}, nil, paddock.Invalid},
		{"failing", paddock.Limits{Memory: 1 << 20, IO: 1 << 20}, nil, paddock.Unsupported},
		{"failing", paddock.Limits{Memory: 1 << 20, IO: 1 << 20}, []string{"/proc"}, paddock.Unsupported},
		{"failing", paddock.Limits{Memory: 1 << 20, IO: 1 << 20}, []string{"/does/not/exist"}, paddock.NotFound},
		{"", moderate, nil, paddock.Invalid},
		{"..", moderate, nil, paddock.Invalid},
		{"a/b", moderate, nil, paddock.Invalid},
		{"a\n", moderate, nil, paddock.Invalid},
	} {
		g, err := h.Create(c.name, c.l, c.paths...)
		if !errors.Is(err, c.kind) || g != nil {
			t.Errorf("%q %+v: %v", c.name, c.l, err)
		}
		if left := h.look("failing"); len(left) != 0 {
			t.Errorf("%q %+v leaves %v", c.name, c.l, left)
		}
	}
	g := create(t, h, "failing", moderate)
	if _, err := h.Create("failing", moderate); !errors.Is(err, paddock.Exists) {
		t.Errorf("a second one: %v", err)
	}
	if !exists(g.Dirs()[0]) {
		t.Error("the failed second one took the first away")
	}
}

func TestAGroupIsFoundAgain(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "again-1", l)
		again, err := h.Open("again-1")
		if err != nil {
			t.Fatal(err)
		}
		want := g.Dirs()
		got := again.Dirs()
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("found %v, made %v", got, want)
		}
		if again, err = h.Open("again-1", g.Dirs()...); err != nil || len(again.Dirs()) != len(want) {
			t.Errorf("by its directories: %v", err)
		}
		for _, dirs := range [][]string{{"/tmp"}, {"/sys/fs/cgroup"}, {g.Dirs()[0] + "/../x"}, {"/paddock-other-1-2-3"}} {
			if _, err := h.Open("again-1", dirs...); !errors.Is(err, paddock.Invalid) {
				t.Errorf("%q: %v", dirs, err)
			}
		}
		for _, name := range []string{"again", "again-2"} {
			if _, err := h.Open(name); !errors.Is(err, paddock.NotFound) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if err := again.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestASweepTakesOnlyEmptyGroupsOfTheDead(t *testing.T) {
	h := host(t)
	living := create(t, h, "sweep-living", moderate)
	cmd := helper(t, "make", "sweep-dead")
	if out, err := cmd.Output(); err == nil || len(out) > 0 {
		t.Fatalf("the maker did not die as it should: %s", out)
	}
	dead, err := h.Open("sweep-dead")
	if err != nil {
		t.Fatal(err)
	}
	cmd = helper(t, "make", "sweep-busy")
	_ = cmd.Run()
	busy, err := h.Open("sweep-busy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(busy.Remove(context.Background()), dead.Remove(context.Background())); err != nil {
			t.Error(err)
		}
	})
	begin(t, busy, exec.Command("/bin/sleep", "1000"))

	// Others may be there, of others: they are kept here.
	keep := true
	ask := func(name string) bool {
		switch name {
		case "sweep-living":
			t.Error("asked about a group whose owner lives")
		case "sweep-dead", "sweep-busy":
			return keep
		}
		return true
	}
	if removed, err := h.Sweep(ask); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	keep = false
	if removed, err := h.Sweep(ask); err != nil || !slices.Equal(removed, []string{"sweep-dead"}) {
		t.Errorf("removed %v, %v", removed, err)
	}
	for _, g := range []*Group{living, busy} {
		for _, d := range g.Dirs() {
			if !exists(d) {
				t.Errorf("%s is gone", d)
			}
		}
	}
	for _, d := range dead.Dirs() {
		if exists(d) {
			t.Errorf("%s is left", d)
		}
	}
}

func TestLimitsCanBeChangedInALivingGroup(t *testing.T) {
	h := host(t)
	g := create(t, h, "update", moderate)
	for _, l := range []paddock.Limits{
		{Memory: 128 << 20, CPUs: 0.5, PIDs: 100},
		{Memory: 96 << 20},
		{Memory: 512 << 20},
		{PIDs: 50, CPUs: 1.5},
	} {
		if err := g.Update(l); err != nil {
			t.Fatal(err)
		}
		if f, _ := g.file(memory, "memory.limit_in_bytes", "memory.max"); l.Memory > 0 {
			if n, err := readCount(f); err != nil || n != l.Memory {
				t.Errorf("memory is %d, %v; want %d", n, err, l.Memory)
			}
		}
		if f, _ := g.file(pids, "pids.max", "pids.max"); l.PIDs > 0 {
			if n, err := readCount(f); err != nil || n != int64(l.PIDs) {
				t.Errorf("pids is %d, %v; want %d", n, err, l.PIDs)
			}
		}
		if f, ok := g.file(cpu, "cpu.cfs_quota_us", ""); ok && l.CPUs > 0 {
			if n, err := readCount(f); err != nil || n != int64(l.CPUs*period) {
				t.Errorf("cpu is %d, %v; want %v", n, err, l.CPUs)
			}
		}
	}
	cmd := helper(t, "hold")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, g, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := g.Update(paddock.Limits{Memory: 16 << 20, PIDs: 70}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("less than is in use: %v", err)
	}
	if f, _ := g.file(pids, "pids.max", "pids.max"); f != "" {
		if n, err := readCount(f); err != nil || n != 50 {
			t.Errorf("half of it was done: pids is %d, %v", n, err)
		}
	}
}

func TestAStricterLimitAboveHolds(t *testing.T) {
	h := host(t)
	outer := create(t, h, "outer", paddock.Limits{CPUs: 0.5})
	f, ok := outer.file(cpu, "cpu.cfs_quota_us", "")
	if !ok {
		t.Skip("version 2 allows any number below a stricter one")
	}
	// As if this process lived in a group with half a processor.
	below := Probe()
	for _, y := range below.hierarchies {
		if slices.Contains(y.controllers, cpu) {
			y.dir = path.Dir(f)
		}
	}
	inner := create(t, below, "inner", paddock.Limits{CPUs: 2})
	f, _ = inner.file(cpu, "cpu.cfs_quota_us", "")
	if b, err := readFile(f, small); err != nil || string(b) != "-1\n" {
		t.Errorf("quota %q, %v", b, err)
	}
}

func TestDiskBandwidthIsLimitedOnTheWholeDisk(t *testing.T) {
	h := host(t)
	if _, err := h.find(blkio); err != nil {
		t.Skipf("no controller for disks: %v", err)
	}
	dir := t.TempDir()
	devices, err := h.devices([]string{dir, dir})
	if err != nil {
		t.Skipf("the temporary directory is on no disk: %v", err)
	}
	g, err := h.Create("disk", paddock.Limits{IO: 3 << 20}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	check := func(want string) {
		t.Helper()
		for _, name := range []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"} {
			f, _ := g.file(blkio, name, "io.max")
			if b, err := readFile(f, small); err != nil || !strings.Contains(string(b), devices[0]) || !strings.Contains(string(b), want) {
				t.Errorf("%s: %q, %v", f, b, err)
			}
		}
	}
	check("3145728")
	if err := g.Update(paddock.Limits{IO: 5 << 20}); err != nil {
		t.Fatal(err)
	}
	check("5242880")
}

func TestAKilledProcessIsNotItsNumber(t *testing.T) {
	hosts(t, func(t *testing.T, h *Host, l paddock.Limits) {
		g := create(t, h, "number", l)
		outside := exec.Command("/bin/sleep", "1000")
		if err := outside.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = outside.Process.Kill(); _ = outside.Wait() }()
		// As if the number had been listed, and then become another's.
		if err := g.signal([]int{outside.Process.Pid}); err != nil {
			t.Fatal(err)
		}
		if err := outside.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a process outside was hit: %v", err)
		}
		if err := g.signal([]int{0}); !errors.Is(err, paddock.Denied) {
			t.Errorf("an unknown process: %v", err)
		}
	})
}
