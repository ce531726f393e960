package drivertest

import (
	"bytes"
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func limitPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanPrograms}, limits: []paddock.Control{paddock.ControlMemory}, promises: []promise{
		{"programs see the sandbox's memory, not the host's", memorySeen},
		{"how much memory is free is seen, and changes", freeSeen},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, limits: []paddock.Control{paddock.ControlCPU}, promises: []promise{
		{"programs see the sandbox's processors, not the host's", processorsSeen},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, limits: []paddock.Control{paddock.ControlPIDs}, promises: []promise{
		{"the status names the limit of processes when it was reached, with its flag", pidsTold},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, limits: []paddock.Control{paddock.ControlDisk}, promises: []promise{
		{"the status names the disk limit when it was reached, with its flag", diskTold},
	}}, {limits: []paddock.Control{paddock.ControlMemory}, promises: []promise{
		{"a command that takes too much memory is told as out of memory, with limit and peak", memoryCommand},
		{"a command whose child took too much memory is told as out of memory", memoryChild},
		{"the sandbox stays usable after it was out of memory, or says that this ended it", memoryUsable},
		{"a command that was not out of memory is not told so, though another one was", memoryOther},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, limits: []paddock.Control{paddock.ControlMemory}, promises: []promise{
		{"what waits in sockets counts as memory", memorySockets},
	}}, {limits: []paddock.Control{paddock.ControlPIDs}, promises: []promise{
		{"no more processes can be made than the limit, and a start beyond it is exhausted", pidsLimit},
		{"a fork bomb is contained: the host and the sandbox's owner do not feel it", forkBomb},
	}}, {limits: []paddock.Control{paddock.ControlDisk}, promises: []promise{
		{"a full disk is told inside and out, and is usable again after a removal", diskLimit},
		{"the disk limit is one for all of the private layer", diskSum},
	}}, {limits: []paddock.Control{paddock.ControlFiles}, promises: []promise{
		{"the open files of a process are limited, and it cannot raise that", filesLimit},
	}}, {limits: []paddock.Control{paddock.ControlCPU}, promises: []promise{
		{"processor time is limited", cpuLimit},
	}}}
}

// memorySeen asks by the file and by the call that runtimes ask by.
func memorySeen(t *testing.T, s *suite) {
	const memory = 256 << 20
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Memory = memory })
	for what, script := range map[string]string{
		"meminfo": `while read -r name n rest; do [ $name = MemTotal: ] && echo $((n * 1024)); done </proc/meminfo`,
		"sysinfo": `"$1" size memory`,
	} {
		r := b.sh(t, script, b.helper(t))
		// A kernel of the sandbox's own has taken its part already, or has some more for itself.
		if n, err := strconv.ParseInt(strings.TrimSpace(r.out), 10, 64); err != nil || n > 2*memory || n < memory/2 {
			t.Errorf("%s tells %q bytes of memory, the limit is %d: %+v", what, r.out, memory, r)
		}
	}
	// Nobody inside can change what others read there.
	if r := b.sh(t, `chmod 666 /proc/meminfo 2>/dev/null; { echo "MemTotal: 1 kB" >/proc/meminfo; } 2>/dev/null; cat /proc/meminfo`); !strings.Contains(r.out, "MemTotal:") || strings.Contains(r.out, "MemTotal: 1 kB") {
		t.Errorf("a command changed /proc/meminfo: %+v", r)
	}
}

// processorsSeen does the same with processors.
func processorsSeen(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.CPUs = 0.5 })
	for what, script := range map[string]string{
		"cpuinfo":           `grep -c '^processor' /proc/cpuinfo`,
		"stat":              `grep -c '^cpu[0-9]' /proc/stat`,
		"online":            `case $(cat /sys/devices/system/cpu/online) in 0|0-0) echo 1;; *) cat /sys/devices/system/cpu/online;; esac`,
		"sched_getaffinity": `"$1" size processors`,
	} {
		if r := b.sh(t, script, b.helper(t)); r.out != "1\n" {
			t.Errorf("%s tells %q processors: %+v", what, r.out, r)
		}
	}
}

// freeSeen keeps memory, and looks until it is missing.
func freeSeen(t *testing.T, s *suite) {
	if f, _ := s.info.Finding(paddock.ControlMemory); f.Strength != paddock.Full {
		t.Logf("not expected, since memory is limited weakly: %s", f.How)
		return
	}
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Memory = 256 << 20 })
	const available = `sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo`
	number := func() int {
		t.Helper()
		n, err := strconv.Atoi(strings.TrimSpace(b.must(t, available)))
		if err != nil {
			t.Fatal(err)
		}
		return n << 10
	}
	before := number()
	b.must(t, "head -c 67108864 /dev/zero >taken") // private files are in memory
	until(t, "64 MiB less are available", func() bool { return number() < before-(48<<20) })
	b.must(t, "rm taken")
	until(t, "they are available again", func() bool { return number() > before-(32<<20) })
}

// reached waits until the status tells that a limit was reached, and by which flag it is raised.
func (b box) reached(t testing.TB, limit, flag string) {
	t.Helper()
	var last paddock.Status
	until(t, limit+" is told", func() bool {
		var err error
		last, err = b.Status(bounded(t))
		return err == nil && slices.ContainsFunc(last.Refused, func(r paddock.Refusal) bool {
			return strings.Contains(r.Rule, limit) && strings.Contains(r.Remedy, flag)
		})
	})
}

func (b box) nothingReached(t testing.TB) {
	t.Helper()
	if st, err := b.Status(bounded(t)); err != nil || slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return strings.Contains(r.Rule, "limit") }) {
		t.Errorf("before: %+v, %v", st.Refused, err)
	}
}

func pidsTold(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.PIDs = 64 })
	b.must(t, "true")
	b.nothingReached(t)
	b.sh(t, "i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done")
	b.reached(t, "limit of 64 processes", "--pids")
}

func diskTold(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Disk = 16 << 20 })
	b.must(t, "head -c 4194304 /dev/zero >fits")
	b.nothingReached(t)
	b.sh(t, "head -c 67108864 /dev/zero >big")
	b.reached(t, "disk limit of 16 MiB", "--disk")
}

const memoryLimit = 128 << 20

func (s *suite) small(t testing.TB) box {
	t.Helper()
	return s.own(t, func(spec *paddock.Spec) { spec.Limits.Memory = memoryLimit })
}

// doubling makes the shell itself grow. tailing makes a child of the shell grow.
const (
	doubling = "x=0123456789abcdef; while :; do x=$x$x; done"
	tailing  = "head -c 4000000000 /dev/zero | tail"
)

func wantOutOfMemory(t testing.TB, exit paddock.Exit) {
	t.Helper()
	if exit.Cause != paddock.OutOfMemory || exit.Reason == "" {
		t.Errorf("%+v, want it out of memory with a reason", exit)
	}
	if exit.Limit != memoryLimit {
		t.Errorf("limit %d, want %d", exit.Limit, memoryLimit)
	}
	// A watchdog that enforces the limit looks only at intervals.
	if exit.Peak < memoryLimit/2 || exit.Peak > 4*memoryLimit {
		t.Errorf("peak %d is not near the limit %d", exit.Peak, memoryLimit)
	}
	if exit.Code == 0 {
		t.Errorf("code %d", exit.Code)
	}
}

func memoryCommand(t *testing.T, s *suite) {
	b := s.small(t)
	exit := b.sh(t, doubling).exit
	wantOutOfMemory(t, exit)
	if exit.Signal != sigKill {
		t.Errorf("signal %v", exit.Signal)
	}
}

func memoryChild(t *testing.T, s *suite) {
	wantOutOfMemory(t, s.small(t).sh(t, tailing).exit)
}

func memoryUsable(t *testing.T, s *suite) {
	b := s.small(t)
	b.put(t, b.in("before"), []byte("kept"), 0)
	for range 3 {
		wantOutOfMemory(t, b.sh(t, tailing).exit)
		if s.ended(t, b) {
			return
		}
		if got := b.must(t, "cat before"); got != "kept" {
			t.Errorf("%q", got)
		}
	}
	if st, err := b.Status(bounded(t)); err != nil || st.State != paddock.Ready {
		t.Errorf("status %+v, %v", st, err)
	}
}

// ended reports whether a sandbox has ended because it was out of memory. A sandbox may, if
// its kernel holds the memory of its commands.
func (s *suite) ended(t *testing.T, b box) bool {
	st, err := b.Status(bounded(t))
	if err != nil || st.State != paddock.Dead || !s.enforces(paddock.ControlKernel) {
		return false
	}
	if !strings.Contains(st.Reason, "memory limit") {
		t.Errorf("it is dead without saying why: %+v", st)
	}
	return true
}

// memorySockets has sockets hold more than the limit, if nothing stops them.
func memorySockets(t *testing.T, s *suite) {
	if f, _ := s.info.Finding(paddock.ControlMemory); f.Strength != paddock.Full {
		t.Logf("not expected, since memory is limited weakly: %s", f.How)
		return
	}
	const bytes = 3 * memoryLimit / 2
	b := s.small(t)
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "fill", strconv.Itoa(bytes)}})
	if r.exit.Cause == paddock.OutOfMemory {
		return
	}
	if n, err := strconv.Atoi(strings.TrimSpace(r.out)); err != nil || n > memoryLimit {
		t.Errorf("%q bytes waited in sockets with a limit of %d: %+v", r.out, memoryLimit, r)
	}
}

func memoryOther(t *testing.T, s *suite) {
	b := s.small(t)
	wantOutOfMemory(t, b.sh(t, doubling).exit)
	for again := 0; s.ended(t, b); again++ {
		if again == 4 {
			t.Fatal("it ends each time")
		}
		b = s.small(t)
		wantOutOfMemory(t, b.sh(t, doubling).exit)
	}
	if r := b.sh(t, "kill -TERM $$"); r.exit.Cause != paddock.Signaled {
		t.Errorf("a command that killed itself afterwards: %+v", r.exit)
	}
	if r := b.sh(t, "exit 3"); r.exit.Cause != paddock.Exited || r.exit.Code != 3 {
		t.Errorf("a command that failed afterwards: %+v", r.exit)
	}
}

func pidsLimit(t *testing.T, s *suite) {
	const limit = 64
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.PIDs = limit })
	r := b.sh(t, "i=0; while [ $i -lt 500 ]; do sleep 1000 & i=$((i+1)); echo $i; done")
	last, err := strconv.Atoi(lastLine(r.out))
	if err != nil || last < limit/4 || last > limit {
		t.Errorf("%q processes were made, the limit is %d (%v)", lastLine(r.out), limit, err)
	}
	// The shell that ended left one process free. Use it up.
	until(t, "a start is exhausted", func() bool {
		p, err := b.Start(bounded(t), paddock.Cmd{Args: []string{"sleep", "1000"}})
		if err == nil {
			p.Release()
			return false
		}
		wantKind(t, "start in a full sandbox", err, paddock.Exhausted)
		return true
	})
	st, err := b.Status(bounded(t))
	if err != nil || st.Usage.PIDs > limit || st.Usage.PIDs < limit/4 {
		t.Errorf("status %+v, %v", st.Usage, err)
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

func forkBomb(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.PIDs = 128 })
	// The bomb itself exceeds the limit and may have ended before the test looks. So it
	// starts when most processes are used up.
	cmd := b.shell("i=0; while [ $i -lt 80 ]; do sleep 1000 & i=$((i+1)); done; f() { f | f & }; f; wait")
	cmd.Output = paddock.Output{Detached: true}
	p := b.start(t, cmd)
	p.Release()
	full := func() bool {
		st, err := b.Status(bounded(t))
		return err == nil && st.Usage.PIDs > 64
	}
	until(t, "the bomb went off", full)
	if out, err := exec.Command("true").CombinedOutput(); err != nil {
		t.Errorf("the host cannot start a program: %v %s", err, out)
	}
	other := s.box(t)
	other.must(t, "echo not disturbed")
	if err := b.Remove(bounded(t)); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func diskLimit(t *testing.T, s *suite) {
	const limit = 16 << 20
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Disk = limit })
	r := b.sh(t, "head -c 67108864 /dev/zero > big")
	if r.exit.Code == 0 || !strings.Contains(r.err, "No space") && !strings.Contains(r.err, "quota") {
		t.Errorf("filling the disk inside: %+v", r)
	}
	fi, err := b.FS().Stat(bounded(t), b.in("big"))
	if err != nil || fi.Size > limit || fi.Size < limit/2 {
		t.Errorf("%d bytes fitted on %d: %v", fi.Size, limit, err)
	}
	err = b.write(bounded(t), b.in("more"), bytes.NewReader(make([]byte, 2*limit)), paddock.CreateOptions{})
	wantKind(t, "writing to a full disk from outside", err, paddock.Exhausted)
	b.must(t, "rm -f big more")
	b.put(t, b.in("after"), make([]byte, limit/4), 0)
	b.must(t, "head -c 4194304 /dev/zero > inside")
}

func diskSum(t *testing.T, s *suite) {
	const limit = 16 << 20
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Disk = limit })
	got := b.must(t, `for d in "$HOME" /tmp /var/tmp /run; do
	f=$d/fill-$$
	{ head -c 67108864 /dev/zero > "$f"; } 2>/dev/null
	[ -f "$f" ] && wc -c < "$f"
done; exit 0`)
	var sum int64
	for f := range strings.FieldsSeq(got) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatalf("%q", got)
		}
		sum += n
	}
	if sum > limit*5/4 || sum < limit/2 {
		t.Errorf("%d bytes fitted on %d in all", sum, limit)
	}
}

func filesLimit(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.Files = 256 })
	got := b.must(t, "ulimit -n; ulimit -Hn; ulimit -n 257 2>/dev/null || echo refused")
	if got != "256\n256\nrefused\n" {
		t.Errorf("%q", got)
	}
}

// cpuLimit cannot fail on a busy machine: that only gives less time.
func cpuLimit(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.CPUs = 0.25 })
	cmd := b.shell("while :; do :; done")
	cmd.Timeout = 2 * time.Second
	exit := b.run(t, cmd).exit
	if exit.Cause != paddock.TimedOut && exit.Cause != paddock.OutOfBudget { // a tier may count loop iterations too
		t.Fatalf("%+v", exit)
	}
	if exit.Usage.CPU > exit.Usage.Wall/2 {
		t.Errorf("used %v in %v with a quarter of a processor", exit.Usage.CPU, exit.Usage.Wall)
	}
	if b.run(t, b.shell("command -v sqlite3")).exit.Code == 0 {
		cpuLimitOfLibrary(t, b)
	}
}

// cpuLimitOfLibrary has a library compute without end: a tier that runs tools by itself has no other
// process to hold to the limit.
func cpuLimitOfLibrary(t *testing.T, b box) {
	const query = "SELECT 1 UNION ALL SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c)"
	p := b.start(t, b.shell("for i in 1 2 3; do sqlite3 :memory: '"+query+"' >/dev/null 2>&1 & done; wait"))
	usage := func() paddock.Usage {
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		return st.Usage
	}
	before := usage()
	if before.CPU < 0 {
		return // it is not known
	}
	var had, of time.Duration
	within := eventually(3*time.Minute, func() bool { // who holds it to the limit may get no processor for a while
		now := usage()
		had, of = now.CPU-before.CPU, now.Wall-before.Wall
		return of > 4*time.Second && had > 100*time.Millisecond && had <= of/2
	})
	if !within {
		t.Errorf("a library used %v in %v with a quarter of a processor", had, of)
	}
	kill(t, p)
	wait(t, p)
}

// limitless lists the limits whose control Info does not list. A spec that sets one of them
// is unsupported.
func limitless(info paddock.Info) map[paddock.Control]func(*paddock.Limits) {
	all := map[paddock.Control]func(*paddock.Limits){
		paddock.ControlMemory: func(l *paddock.Limits) { l.Memory = memoryLimit },
		paddock.ControlCPU:    func(l *paddock.Limits) { l.CPUs = 0.5 },
		paddock.ControlPIDs:   func(l *paddock.Limits) { l.PIDs = 100 },
		paddock.ControlDisk:   func(l *paddock.Limits) { l.Disk = 64 << 20 },
		paddock.ControlFiles:  func(l *paddock.Limits) { l.Files = 100 },
		paddock.ControlIO:     func(l *paddock.Limits) { l.IO = 64 << 20 },
	}
	for c := range all {
		if _, listed := info.Finding(c); listed {
			delete(all, c)
		}
	}
	return all
}

// refusesAbsent creates sandboxes without accepting that a control is absent.
func refusesAbsent(t *testing.T, s *suite) {
	for _, f := range s.info.Controls {
		if f.Strength != paddock.Absent {
			continue
		}
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
			spec.AllowMissing = without(spec.AllowMissing, f.Control)
			if ask := limits()[f.Control]; ask != nil {
				ask(&spec.Limits, true) // a default is enforced as well as the host can
			}
		}))
		if err == nil {
			s.removeAfter(t, sb)
			t.Errorf("%s is absent, nobody accepted that, and a sandbox was made", f.Control)
			continue
		}
		var missing *paddock.MissingError
		if !errors.As(err, &missing) || missing.Finding.Control != f.Control || missing.Finding.Cause == "" || missing.Finding.Remedy == "" {
			t.Errorf("%s is absent: %v, want a MissingError with cause and remedy", f.Control, err)
		}
		wantKind(t, string(f.Control), err, paddock.Unsupported)
	}
}

func without(cs []paddock.Control, c paddock.Control) []paddock.Control {
	var rest []paddock.Control
	for _, have := range cs {
		if have != c {
			rest = append(rest, have)
		}
	}
	return rest
}
