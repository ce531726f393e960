package sys

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// spawn starts a program in /, as who runs the tests.
func spawn(t *testing.T, argv0 string, argv []string, attr SpawnAttr) (int, error) {
	t.Helper()
	attr.User = os.Geteuid()
	if attr.Dir == "" {
		attr.Dir = "/"
	}
	if attr.Files == nil {
		attr.Files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	}
	return Spawn(argv0, argv, &attr)
}

func reap(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err == nil {
			return status
		} else if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}

// said runs a shell and gives what it writes to descriptor fd.
func said(t *testing.T, script string, attr SpawnAttr, fd int) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	attr.Files = []*os.File{os.Stdin, os.Stderr, os.Stderr, os.Stderr}
	attr.Files[fd] = w
	pid, err := spawn(t, "/bin/sh", []string{"sh", "-c", script, "zero", "one two"}, attr)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	if status := reap(t, pid); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("%#x: %s", status, out)
	}
	return string(out)
}

func TestASpawnedProcessHasWhatItWasGiven(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got := said(t, `echo "$0|$1|$WORD|$HOME|$(pwd)" >&3`, SpawnAttr{Dir: dir, Env: []string{"WORD=a b"}}, 3)
	if want := "zero|one two|a b||" + dir + "\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestASpawnedProcessBeginsAnew(t *testing.T) {
	ours, err := os.Create(filepath.Join(t.TempDir(), "ours"))
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	got := said(t, `read -r pid _ _ _ _ session _ < /proc/self/stat
[ $$ = $session ] && echo leader
while read -r name value; do case $name in Sig[BP]*) echo $name $value;; esac; done < /proc/$$/status
ls -l /proc/$$/fd`, SpawnAttr{}, 1)
	for _, want := range []string{"leader", "SigBlk: 0000000000000000", "SigPnd: 0000000000000000"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s: %s", want, got)
		}
	}
	if strings.Contains(got, ours.Name()) || !strings.Contains(got, " 2 -> ") {
		t.Errorf("it has descriptors that are closed on exec, or not its own: %s", got)
	}
}

func TestDescriptorsOfASpawnedProcessComeInAnyOrder(t *testing.T) {
	// Pipes that have low numbers are what moves descriptors over each other: so a
	// child of its own gets them in the order asked for, from files that stand in
	// the opposite one.
	const inner = "PADDOCK_TEST_SPAWN_ORDER"
	if order := os.Getenv(inner); order != "" {
		var files []*os.File
		for _, d := range order {
			files = append(files, os.NewFile(uintptr(d-'0'), "given"))
		}
		pid, err := spawn(t, "/bin/sh", []string{"sh", "-c", `for i in 0 1 2 3; do all="$all$(readlink /proc/$$/fd/$i)
"; done; printf %s "$all" >&4`},
			SpawnAttr{Files: append(files, os.NewFile(4, "answer"))})
		if err != nil {
			t.Fatal(err)
		}
		reap(t, pid)
		runtime.KeepAlive(files)
		return
	}
	dir := t.TempDir()
	var given []*os.File
	for i := range 4 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		given = append(given, f)
	}
	for _, order := range []string{"0123", "3210", "1032", "2012", "1230", "3012", "1111", "2200", "0003", "3333"} {
		answer, err := os.Create(filepath.Join(dir, "answer"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		var out bytes.Buffer
		var want strings.Builder
		for _, d := range order {
			fmt.Fprintln(&want, given[d-'0'].Name())
		}
		self, err := os.StartProcess("/proc/self/exe", []string{"test", "-test.run=^TestDescriptorsOfASpawned"}, &os.ProcAttr{
			Env: append(os.Environ(), inner+"="+order), Files: append(given[:4:4], answer),
		})
		if err != nil {
			t.Fatal(err)
		}
		if state, err := self.Wait(); err != nil || !state.Success() {
			t.Errorf("%s: %v %v", order, state, err)
		}
		if _, err := answer.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := out.ReadFrom(answer); err != nil {
			t.Fatal(err)
		}
		if out.String() != want.String() {
			t.Errorf("%s gives\n%swanted\n%s", order, out.String(), want.String())
		}
	}
}

func TestASpawnThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	count, err := os.Create(filepath.Join(t.TempDir(), "count"))
	if err != nil {
		t.Fatal(err)
	}
	defer count.Close()
	if _, err := count.WriteString("12\n"); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		name, argv0 string
		attr        SpawnAttr
		want        error
	}{
		{"no program", file + ".none", SpawnAttr{}, syscall.ENOENT},
		{"no program that may be executed", file, SpawnAttr{}, syscall.EACCES},
		{"no directory", "/bin/true", SpawnAttr{Dir: file}, syscall.ENOTDIR},
		{"a name that ends early", "/bin/true\x00", SpawnAttr{}, syscall.EINVAL},
		{"no terminal", "/bin/true", SpawnAttr{Files: []*os.File{null, null, null}, Terminal: true}, syscall.ENOTTY},
		{"too many", "/bin/true", SpawnAttr{Group: null, Count: count, Most: 11}, syscall.EAGAIN},
		{"no count", "/bin/true", SpawnAttr{Group: null, Count: os.Stdin, Most: 11}, nil},
		{"no more than there may be", "/bin/true", SpawnAttr{Group: null, Count: count, Most: 12}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.attr.Count == os.Stdin { // what cannot be read is no count
				empty, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				defer empty.Close()
				c.attr.Count, c.want = empty, syscall.EAGAIN
			}
			pid, err := spawn(t, c.argv0, []string{"name"}, c.attr)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, not %v", err, c.want)
			}
			if err == nil {
				reap(t, pid)
			}
			if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

func TestAFilterHoldsInASpawnedProcessOnly(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: no_new_privs stays with it
	if err := NoNewPrivs(); err != nil {
		t.Fatal(err)
	}
	refuse := []Instruction{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MKDIRAT, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: Numbers()["mkdir"], Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EXDEV)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	dir := t.TempDir()
	if Numbers()["mkdir"] == 0 {
		refuse[2].K = unix.SYS_MKDIRAT
	}
	said(t, "! mkdir "+dir+"/theirs 2>/dev/null", SpawnAttr{Filter: refuse}, 1)
	if err := os.Mkdir(dir+"/ours", 0o755); err != nil {
		t.Errorf("here, too: %v", err)
	}
	said(t, "mkdir "+dir+"/next", SpawnAttr{}, 1)
}

func TestAProcessThatCannotBeginKeepsNobodyElseFromIt(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	count, err := os.Open("/proc/sys/kernel/threads-max") // any number
	if err != nil {
		t.Fatal(err)
	}
	defer count.Close()
	for _, helped := range []bool{true, false} {
		if !helped && testing.Short() {
			t.Skip("waits until patience ends")
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		fd := int(w.Fd()) // which waits from here on
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		for err == nil { // until the child's write has to wait
			_, err = unix.Write(fd, make([]byte, 4096))
		}
		if err := unix.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
		if helped {
			go func() { _, _ = io.CopyN(io.Discard, r, 1<<13) }()
		}
		pid, err := spawn(t, "/bin/true", []string{"true"}, SpawnAttr{Group: w, Count: count, Most: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		if status := reap(t, pid); (status == 0) != helped {
			t.Errorf("helped %t: %#x", helped, status)
		}
	}
}

func TestSpawningManyDisturbsNobody(t *testing.T) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range 3 {
		wg.Go(func() {
			var kept [64][]byte
			for i := 0; !stop.Load(); i++ {
				kept[i%len(kept)] = make([]byte, 1<<(i%16))
				if i%512 == 0 {
					runtime.GC()
				}
				runtime.Gosched()
			}
		})
	}
	for i := range 300 {
		argv0, want := "/bin/true", error(nil)
		if i%3 == 0 {
			argv0, want = "/bin/there is no such program", syscall.ENOENT
		}
		pid, err := spawn(t, argv0, []string{"true", strings.Repeat("x", i)}, SpawnAttr{Env: os.Environ()})
		if !errors.Is(err, want) {
			t.Fatal(i, err)
		}
		if err == nil {
			if status := reap(t, pid); status != 0 {
				t.Fatalf("%d: %#x", i, status)
			}
		}
	}
}

// A box's own filter refuses clone3. All that is promised of a spawned process holds there too.
func TestProcessesAreSpawnedAlikeWhereClone3IsRefused(t *testing.T) {
	const inner = "PADDOCK_TEST_SPAWN_OLDER"
	if os.Getenv(inner) != "" {
		return // this is what it runs
	}
	runtime.LockOSThread() // and never unlocked: no_new_privs stays with it
	if err := NoNewPrivs(); err != nil {
		t.Fatal(err)
	}
	refuse := []Instruction{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, err := spawn(t, "/proc/self/exe", []string{"test", "-test.v", "-test.short", "-test.run=(?i)spawn|AProcessThatCannotBegin|AFilterHolds"},
		SpawnAttr{Filter: refuse, Env: append(os.Environ(), inner+"=1"), Files: []*os.File{os.Stdin, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if status := reap(t, pid); err != nil || status != 0 || bytes.Count(out, []byte("\n--- PASS")) < 7 {
		t.Errorf("%#x, %v: %s", status, err, out)
	}
}

func TestASpawnedProcessIsWithinABoundThatItCannotRaise(t *testing.T) {
	const inner = "PADDOCK_TEST_SPAWN_BOUND"
	if os.Getenv(inner) == "" {
		// The bound is not for root, and counts what the user has.
		cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env, cmd.Dir = append(os.Environ(), inner+"=1"), "/"
		if os.Geteuid() == 0 {
			const nobodyInParticular = 64104
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyInParticular, Gid: nobodyInParticular}}
		}
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	var was, is unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &was); err != nil {
		t.Fatal(err)
	}
	have, err := count(os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	const room = 8
	bound := SpawnAttr{PIDs: have + room}
	if got := said(t, "(ulimit -H -u || ulimit -H -p) 2>/dev/null", bound, 1); got != fmt.Sprintln(have+room) {
		t.Errorf("the bound is %d, and it may have %s", have+room, got)
	}
	var all []int
	defer func() {
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			reap(t, pid)
		}
	}()
	for err == nil && len(all) <= room {
		var pid int
		if pid, err = spawn(t, "/bin/sleep", []string{"sleep", "1000"}, bound); err == nil {
			all = append(all, pid)
		}
	}
	if !errors.Is(err, syscall.EAGAIN) || len(all) == 0 {
		t.Errorf("%d began where %d may be, and then: %v", len(all), room, err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &is); err != nil || is != was {
		t.Errorf("this process's own bound was %v, and is %v (%v)", was, is, err)
	}
	pid, err := spawn(t, "/bin/true", []string{"true"}, SpawnAttr{})
	if err != nil {
		t.Fatal("one that is not bounded: ", err)
	}
	reap(t, pid)
}

// count tells how many threads a user has.
func count(uid int) (n int, err error) {
	all, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, name := range all {
		var st unix.Stat_t
		if unix.Stat(name, &st) == nil && int(st.Uid) == uid {
			n++
		}
	}
	return n, err
}

func TestThreadsAreReservedOnceAndStay(t *testing.T) {
	have, err := threads()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ReserveThreads(have + 10); err != nil {
			t.Fatal(err)
		}
		if now, err := threads(); err != nil || now < have+10 || now > have+14 {
			t.Errorf("%d threads of %d, and there were %d (%v)", now, have+10, have, err)
		}
	}
}
