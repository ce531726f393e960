package drivertest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func quotaPromises() []group {
	walls := []paddock.Control{paddock.ControlUserNS, paddock.ControlSeccomp}
	return []group{{can: []paddock.Capability{paddock.CanPrograms}, walls: walls, alone: true, promises: []promise{
		{"a sandbox gets no more than a share of what the kernel gives to all, and the host keeps the rest", quotaShare},
		{"a sandbox has a bound of the sockets that count for the whole machine", quotaSockets},
		{"time stamps of sockets do not make the host's kernel rewrite its code", quotaStamps},
	}}, {can: []paddock.Capability{paddock.CanPrograms, paddock.CanMountWrite}, promises: []promise{
		{"nobody on the host waits for a file of a mount because of a lease that a command took", quotaLease},
		{"a lock of a command holds among commands, and who waits for it can be interrupted", quotaLock},
		{"a lock is one of the thread that takes it, and its wait goes on after a signal whose handler says so", quotaThreads},
	}}, {can: []paddock.Capability{paddock.CanPrograms, paddock.CanMount}, promises: []promise{
		{"nobody on the host waits for a file that a command may only read because the command locked it", quotaReadLock},
		{"a watch tells a command what happens in its own directories and in mounts", quotaWatch},
		{"a watch tells a command nothing of what the host does with its system", quotaHostWatch},
	}}}
}

// A taken is a quota of the kernel, of which a command takes what it can.
type taken struct {
	kind  string
	bound int // the most that a command on the host's kernel gets
}

// quotas returns the quotas that the suite tries to use up. The kernel gives a number of each to a
// user, or to the whole machine.
func quotas(t *testing.T) []taken {
	t.Helper()
	return []taken{
		{"inotify", kernelNumber(t, "/proc/sys/fs/inotify/max_user_instances") / 4},
		{"aio", 0},
		{"timers", 1024},
		{"signals", 1024},
		{"terminals", 64},
		{"queues", 4},
		{"mptcp", 0},
		{"gro", 0},
		{"labels", 0},
		{"groups", 4096},
		{"secret", 0},
		{"filters", 1024},
	}
}

// quotaShare lets one command take at most one of a kind more than it may have.
func quotaShare(t *testing.T, s *suite) {
	b := s.own(t)
	// A kernel of the sandbox's own has quotas of its own, and only the host's matter then.
	own := s.enforces(paddock.ControlKernel)
	if !own {
		b.limitsOf(t)
		b.watchesOf(t)
	}
	list := quotas(t)
	// Timers and queued signals are counted together.
	together := []string{"inotify aio timers terminals queues mptcp gro labels groups secret", "signals"}
	if !own {
		// Filters of a kernel of the sandbox's own are not compiled by the host's, and a thousand of them make
		// each further call of their process slow.
		together = append(together, "filters")
	}
	for _, kinds := range together {
		args := []string{"take"}
		for _, q := range list {
			if slices.Contains(strings.Fields(kinds), q.kind) {
				args = append(args, fmt.Sprintf("%s=%d", q.kind, q.bound+1))
			}
		}
		s.taking(t, b, args, own, list)
	}
}

func (s *suite) taking(t *testing.T, b box, args []string, own bool, list []taken) {
	t.Helper()
	before := hostUse(t)
	end := b.holding(t, args...)
	after := hostUse(t)
	out := end()
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		i := slices.IndexFunc(list, func(q taken) bool { return len(words) > 1 && q.kind == words[0] })
		if i < 0 {
			t.Errorf("the probe says %q", line)
			continue
		}
		if n, err := strconv.Atoi(words[1]); !own && (err != nil || n > list[i].bound) {
			t.Errorf("%s: the bound is %d", strings.TrimSpace(line), list[i].bound)
		} else if !own && n < least(list[i]) {
			t.Errorf("%s: less than a sandbox may have, %d, so nothing was tried", strings.TrimSpace(line), list[i].bound)
		}
	}
	for what, most := range map[string]int{
		"contexts of asynchronous I/O": 0,
		"terminals":                    64,
		"signals":                      1024,
	} {
		if os.Geteuid() == 0 && what == "signals" {
			most = 0 // a sandbox of root's has a user of its own
		}
		// A few that others on the machine take meanwhile do not count.
		if n := after[what] - before[what]; n > most+8 {
			t.Errorf("%d %s of the host's were taken, at most %d may be: %s", n, what, most, out)
		}
	}
}

// least is the smallest number that shows that the bound was reached.
func least(q taken) int {
	switch q.kind {
	case "queues":
		return 0
	case "filters": // each counts for every thread
		return 1
	case "groups": // the kernel has joined some
		return q.bound - 64
	case "signals": // some of the probe's runtime may wait, too
		return q.bound - 8
	}
	return q.bound
}

// watchesOf checks the bound of watches by its number. To reach it takes a directory for each of tens
// of thousands, which the attack matrix does.
func (b box) watchesOf(t *testing.T) {
	t.Helper()
	got := b.must(t, "cat /proc/sys/user/max_inotify_watches")
	bound := kernelNumber(t, "/proc/sys/fs/inotify/max_user_watches") / 4
	if n, err := strconv.Atoi(strings.TrimSpace(got)); err != nil || n > bound {
		t.Errorf("watches: %q, and the bound is %d", got, bound)
	}
}

// orphans is how many connections of TCP the machine may have that nobody has open.
const orphans = "/proc/sys/net/ipv4/tcp_max_orphans"

// quotaSockets makes sockets in several processes, because each has a limit of open files.
func quotaSockets(t *testing.T, s *suite) {
	if s.enforces(paddock.ControlKernel) {
		t.Log("not expected, since the sandbox's own kernel makes them: their memory is its own")
		return
	}
	const each = 1500
	most := map[string]int{"netlink": 512, "datagrams": 4096, "streams": 1024}
	// Each may leave two connections that nobody has open: a quarter of those of the machine, in all.
	if _, err := os.Stat(orphans); err == nil {
		most["streams"] = max(kernelNumber(t, orphans)/8, 64)
	}
	for kind, bound := range most {
		b := s.own(t)
		probe := b.helper(t)
		got, refused := 0, false
		for i := range bound/each + 2 {
			file := b.in(fmt.Sprint(kind, i))
			var out syncBuffer
			b.start(t, paddock.Cmd{Args: []string{probe, "take", fmt.Sprintf("%s=%d", kind, each), file}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
			until(t, "a command holds what it got", func() bool { return b.exists(t, file) })
			var n int
			until(t, "it says how many", func() bool {
				_, err := fmt.Sscanf(out.String(), kind+" %d", &n)
				return err == nil
			})
			got += n
			refused = refused || strings.Contains(out.String(), "no buffer space")
		}
		if got > bound || got == 0 || !refused {
			t.Errorf("%d sockets of kind %s with a bound of %d, refused: %v", got, kind, bound, refused)
		}
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return r.What == "socket" && r.Target == kind && r.Remedy != "" }) {
			t.Errorf("the status does not tell that there were too many sockets: %+v", st.Refused)
		}
	}
}

// quotaStamps counts the calls by which the processors of the host are stopped. Each rewriting takes
// several of them. Others on the host cause such calls too, so one quiet try of several is enough.
func quotaStamps(t *testing.T, s *suite) {
	const times = 500
	if _, ok := callsOfProcessors(t); !ok {
		t.Skip("this kernel does not count calls of processors")
	}
	b := s.own(t)
	probe := b.helper(t)
	least := math.MaxInt
	for range 20 {
		before, _ := callsOfProcessors(t)
		if r := b.run(t, paddock.Cmd{Args: []string{probe, "stamps", strconv.Itoa(times)}}); r.exit.Code != 0 {
			t.Fatalf("%+v", r)
		}
		after, _ := callsOfProcessors(t)
		if least = min(least, after-before); least < 4*times {
			return
		}
	}
	t.Errorf("the processors were called %d times or more, of %d switches", least, 2*times)
}

// callsOfProcessors returns how often a function was called on another processor since the host's start,
// and whether this is known.
func callsOfProcessors(t *testing.T) (n int, ok bool) {
	t.Helper()
	data, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "CAL:" { // with one processor there is nobody to call
			continue
		}
		for _, word := range words[1:] {
			of, err := strconv.Atoi(word)
			if err != nil {
				break // the name
			}
			n += of
		}
		return n, true
	}
	return 0, false
}

// limitsOf checks limits of processes as the kernel shows them.
func (b box) limitsOf(t *testing.T) {
	t.Helper()
	got := b.must(t, "cat /proc/self/limits")
	for name, most := range map[string]int{"Max pending signals": 1024, "Max msgqueue size": 400_000, "Max locked memory": 4 << 20} {
		_, rest, _ := strings.Cut(got, name)
		words := strings.Fields(rest)
		if len(words) < 2 {
			t.Fatalf("%q", got)
		}
		for _, word := range words[:2] { // soft and hard
			if n, err := strconv.Atoi(word); err != nil || n > most {
				t.Errorf("%s: %s, at most %d", name, word, most)
			}
		}
	}
}

// hostUse returns how much of some quotas is in use: of the machine's, and of this user's.
func hostUse(t *testing.T) map[string]int {
	t.Helper()
	use := map[string]int{
		"contexts of asynchronous I/O": kernelNumber(t, "/proc/sys/fs/aio-nr"),
		"terminals":                    kernelNumber(t, "/proc/sys/kernel/pty/nr"),
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nSigQ:\t")
	number, _, _ := strings.Cut(rest, "/")
	if use["signals"], err = strconv.Atoi(number); err != nil {
		t.Fatalf("/proc/self/status: %v", err)
	}
	return use
}

func kernelNumber(t *testing.T, name string) int {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// quotaLease opens a file on the host that a command wants a lease on. The open would wait for 45
// seconds, the time that the kernel gives the holder of a lease.
func quotaLease(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"leased": "x"})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	b.must(t, `rm -f /mnt/desk/leased; echo y > /mnt/desk/leased`) // the command's own, or there would be no lease
	end := b.holding(t, "lease", "/mnt/desk/leased")
	f, err := os.OpenFile(dir+"/leased", os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("the host cannot write to it: %v", err)
	}
	f.Close()
	t.Log(end())
}

// holding runs the probe with these arguments until the returned function is called, which returns what
// the probe has printed.
func (b box) holding(t *testing.T, args ...string) (end func() string) {
	t.Helper()
	file := b.in(args[0])
	args = slices.Concat([]string{b.helper(t)}, args, []string{file})
	p := b.start(t, paddock.Cmd{Args: args, Output: paddock.Output{Detached: true}})
	until(t, "the probe has tried", func() bool { return b.exists(t, file) })
	return func() string {
		t.Helper()
		if err := b.FS().Remove(bounded(t), file, false); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		again, err := b.Attach(bounded(t), p.ID(), paddock.Output{Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := again.Wait(bounded(t)); err != nil || exit.Code != 0 {
			t.Fatalf("%+v %v: %s", exit, err, out.String())
		}
		return out.String()
	}
}

func quotaReadLock(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"locked": "x"})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{{Source: dir, Target: "/mnt/read"}} })
	end := b.holding(t, "lock", "/mnt/read/locked")
	f, err := os.Open(dir + "/locked")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("the host cannot lock it: %v", err)
	}
	t.Log(end())
}

func quotaLock(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"locked": "x"})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	if b.must(t, "command -v flock || echo none") == "none\n" {
		t.Skip("there is no flock in this sandbox")
	}
	for _, name := range []string{b.in("locked"), "/mnt/desk/locked"} {
		end := b.hold(t, name)
		if r := b.sh(t, `flock -n "$1" true`, name); r.exit.Code != 1 {
			t.Errorf("%s was locked twice: %+v", name, r)
		}
		if r := b.sh(t, `flock -w 0.2 "$1" true`, name); r.exit.Code != 1 {
			t.Errorf("%s: waiting for the lock was not interrupted: %+v", name, r)
		}
		var out syncBuffer
		p := b.start(t, paddock.Cmd{Args: []string{"flock", name, "echo", "got it"}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		end()
		if exit, err := p.Wait(bounded(t)); err != nil || exit.Code != 0 || out.String() != "got it\n" {
			t.Errorf("%s: waiting for the lock: %+v %v %q", name, exit, err, out.String())
		}
	}
}

func quotaThreads(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"locked": "x"})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	for _, name := range []string{b.in("mine"), "/mnt/desk/mine"} {
		if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "threads", name}}); r.exit.Code != 0 || r.out != "as the kernel\n" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// hold locks a file until the returned function is called.
func (b box) hold(t *testing.T, name string) (end func()) {
	t.Helper()
	b.must(t, `: > "$1"`, name)
	p, _ := b.announce(t, "exec 9< "+name+"; flock 9; echo locked; exec sleep 1000")
	return func() {
		t.Helper()
		if err := p.Signal(bounded(t), sigKill); err != nil {
			t.Error(err)
		}
		p.Release()
	}
}

func quotaWatch(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"watched/x": "x"})
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = []paddock.Mount{s.desk(dir), {Source: dir, Target: "/mnt/read"}}
	})
	for _, name := range []string{b.in("watched"), "/mnt/desk/watched", "/mnt/read/watched"} {
		b.must(t, `mkdir -p "$1"`, name)
		end := b.holding(t, "watch", name)
		b.must(t, `ls "$1" > /dev/null`, name)
		if got := end(); got != "watching true <nil>\ntold true\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func quotaHostWatch(t *testing.T, s *suite) {
	const dir = "/usr/bin"
	b := s.own(t)
	end := b.holding(t, "watch", dir)
	if _, err := os.ReadDir(dir); err != nil {
		t.Fatal(err)
	}
	if got := end(); !strings.Contains(got, "told false") {
		t.Errorf("%q", got)
	}
}
