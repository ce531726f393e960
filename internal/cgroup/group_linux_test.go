package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

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

func TestAGroupThatGoesMeanwhileIsNotAbandoned(t *testing.T) {
	h := host(t)
	cmd := helper(t, "make", "sweep-gone")
	_ = cmd.Run() // it dies
	dead, err := h.Open("sweep-gone")
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	names, err := h.Abandoned(func(name string) bool {
		if name != "sweep-gone" {
			return true
		}
		asked = true
		if err := dead.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		return false
	})
	if err != nil || len(names) != 0 || !asked {
		t.Errorf("%v, %v, asked: %v", names, err, asked)
	}
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
