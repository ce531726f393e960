package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// interval is how often a watchdog looks; brisk where memory is near the
	// limit or grows so fast that it could get there before the next look.
	interval = 50 * time.Millisecond
	brisk    = 5 * time.Millisecond

	// tick is the unit of times in /proc: the same on every Linux of ours.
	tick = time.Second / 100

	// crowd is the most processes that are looked at in one sample. A sandbox
	// with more is ended: a watchdog that can be kept busy watches nothing.
	crowd = 32768

	// stubborn is how many samples in a row may be above the limit before the
	// whole sandbox is ended: one that makes processes faster than they are
	// found here does not get away with it.
	stubborn = 10
)

// A Watchdog bounds the memory of a process tree from outside, for hosts where
// no [Group] can be made. It looks every 50 ms or oftener, and where the limit
// is exceeded it kills the largest process. [Watchdog.Findings] names the gap.
// Its methods are safe for many goroutines.
type Watchdog struct {
	proc string
	root identity
	page int64
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex // held while the tree is looked at, so that looks do not mix
	limit  int64      // guarded by mu; zero is none
	usage  paddock.Usage
	kills  int64
	killed map[identity]bool // told to die, and still there in the last sample
	over   int               // samples in a row above the limit
	err    error             // why the watching ended too early
}

// An identity is a process for ever, also when its number is used again.
type identity struct {
	pid   int
	start uint64
}

// Watch begins to watch the process pid and all that descends from it. For a
// sandbox it is the init of its pid namespace, which everything in there
// descends from. The caller must not have waited for pid yet, so that the
// number cannot be another's. The watching ends with the process, or by Remove.
// limit is of memory, in bytes; zero only measures.
func Watch(pid int, limit int64) (*Watchdog, error) {
	if limit < 0 {
		return nil, fmt.Errorf("watch process %d: a negative limit: %w", pid, paddock.Invalid)
	}
	const proc = "/proc"
	w := &Watchdog{
		proc: proc, page: int64(os.Getpagesize()), limit: limit,
		done: make(chan struct{}), killed: map[identity]bool{},
		usage: paddock.Usage{Wall: -1},
	}
	s, err := w.stat(pid)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, classify(err))
	}
	// Without the list of children a tree cannot be followed.
	if _, err := readFile(fmt.Sprintf("%s/%d/task/%d/children", proc, pid, pid), large); err != nil {
		return nil, fmt.Errorf("watch process %d: %w: %w", pid, paddock.Unsupported, err)
	}
	w.root = identity{pid, s.start}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	go w.run(ctx)
	return w, nil
}

// WatchFindings reports how well a Watchdog enforces the limits that a [Group] has.
func WatchFindings() []paddock.Finding {
	none := func(c paddock.Control) paddock.Finding {
		return paddock.Finding{
			Control: c, Strength: paddock.Absent,
			Cause:  "a watchdog only measures it",
			Remedy: "run where control groups can be made",
		}
	}
	return []paddock.Finding{
		{
			Control: paddock.ControlMemory, Strength: paddock.Weak,
			How: "a watchdog looks at the processes every 50 ms, every 5 ms near the limit, and kills the largest when they exceed it; " +
				"what is used and given back between two looks goes unseen, and files in memory and the kernel's own memory are not counted",
			Cause:  "no control group can be made",
			Remedy: "run where control groups can be made",
		},
		none(paddock.ControlCPU), none(paddock.ControlPIDs), none(paddock.ControlIO),
	}
}

func (w *Watchdog) run(ctx context.Context) {
	defer close(w.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		w.mu.Lock()
		before := w.usage.Memory
		there := w.sample()
		next := w.pace(before)
		w.mu.Unlock()
		if !there {
			return
		}
		timer.Reset(next)
	}
}

// pace says when to look again. w.mu is held.
func (w *Watchdog) pace(before int64) time.Duration {
	now := w.usage.Memory
	if w.limit > 0 && (now >= w.limit-w.limit/4 || now+2*(now-before) >= w.limit) {
		return brisk
	}
	return interval
}

// A sighting is a process as one sample saw it.
type sighting struct {
	identity
	parent int
	memory int64
	dead   bool
}

// sample looks at the tree once and acts on the limit. It tells whether the
// root is still there. w.mu is held.
func (w *Watchdog) sample() bool {
	root, err := w.stat(w.root.pid)
	if err != nil || root.start != w.root.start || (root.dead() && root.threads <= 1) {
		w.usage.Memory, w.usage.PIDs = 0, 0
		return false
	}
	seen, threads, ticks, whole := w.tree(root)
	var sum int64
	for _, s := range seen {
		sum += s.memory
	}
	if w.limit > 0 && sum > w.limit {
		sum = w.share(seen)
	}
	w.usage.Memory, w.usage.PIDs = sum, threads
	w.usage.MemoryPeak = max(w.usage.MemoryPeak, sum)
	// Time that nobody waited for is lost with its process; it must not run
	// backwards for that.
	w.usage.CPU = max(w.usage.CPU, time.Duration(min(ticks, 1<<50))*tick)
	w.enforce(seen, whole)
	return true
}

// tree finds the root and its descendants. whole is false where there are more
// than may be looked at.
func (w *Watchdog) tree(root stat) (seen []sighting, threads int, ticks uint64, whole bool) {
	found := map[int]bool{root.pid: true}
	for queue := []int{root.pid}; len(queue) > 0; {
		pid := queue[0]
		queue = queue[1:]
		s, err := w.stat(pid)
		if err != nil || s.pid != pid {
			continue // it has ended meanwhile
		}
		one := sighting{identity: identity{pid, s.start}, parent: s.parent, dead: s.dead() && s.threads <= 1}
		if b, err := readFile(fmt.Sprintf("%s/%d/statm", w.proc, pid), small); err == nil {
			if pages, err := parseStatm(b); err == nil {
				one.memory = pages * w.page
			}
		}
		seen = append(seen, one)
		if !one.dead {
			threads += s.threads
		}
		ticks += s.ticks + s.waited
		for _, child := range w.children(pid) {
			if child == 0 || found[child] {
				continue
			}
			if len(found) >= crowd {
				return seen, threads, ticks, false
			}
			found[child] = true
			queue = append(queue, child)
		}
	}
	return seen, threads, ticks, true
}

// children lists the children of all threads of a process.
func (w *Watchdog) children(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("%s/%d/task", w.proc, pid))
	if err != nil {
		return nil
	}
	var all []int
	for _, t := range threads {
		b, err := readFile(fmt.Sprintf("%s/%d/task/%s/children", w.proc, pid, t.Name()), large)
		if err != nil {
			continue
		}
		list, err := parsePIDs(b)
		if err == nil {
			all = append(all, list...)
		}
	}
	return all
}

func (w *Watchdog) stat(pid int) (stat, error) {
	b, err := readFile(fmt.Sprintf("%s/%d/stat", w.proc, pid), small)
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// share counts shared pages once where that can be seen, for the largest
// processes; it is expensive, so only near the limit. It gives the new sum.
func (w *Watchdog) share(seen []sighting) (sum int64) {
	slices.SortFunc(seen, func(a, b sighting) int { return cmp.Compare(b.memory, a.memory) })
	for i := range seen {
		s := &seen[i]
		if i < 64 && s.memory > 0 {
			if b, err := readFile(fmt.Sprintf("%s/%d/smaps_rollup", w.proc, s.pid), small); err == nil {
				if pss, err := parseRollup(b); err == nil {
					s.memory = min(s.memory, pss)
				}
			}
		}
		sum += s.memory
	}
	return sum
}

// enforce kills the largest process where the living ones exceed the limit.
// w.mu is held.
func (w *Watchdog) enforce(seen []sighting, whole bool) {
	still := map[identity]bool{}
	var sum int64
	var victim *sighting
	for i := range seen {
		s := &seen[i]
		if w.killed[s.identity] {
			// It gives its memory back as fast as it can.
			if !s.dead {
				still[s.identity] = true
			}
			continue
		}
		sum += s.memory
		// The root is the sandbox itself: it goes only if nothing else is left.
		if !s.dead && s.identity != w.root && (victim == nil || s.memory > victim.memory) {
			victim = s
		}
	}
	w.killed = still
	if whole && (w.limit <= 0 || sum <= w.limit) {
		w.over = 0
		return
	}
	w.over++
	target := w.root
	if victim != nil && victim.memory > 0 && whole && w.over < stubborn {
		target = victim.identity
	}
	if w.kill(target) {
		w.kills++
		w.killed[target] = true
	}
}

// kill ends a process, if it is still the one that was seen.
func (w *Watchdog) kill(id identity) bool {
	// It holds on to the process from here on, not to the number.
	p, err := os.FindProcess(id.pid)
	if err != nil {
		return false
	}
	defer p.Release()
	if s, err := w.stat(id.pid); err != nil || s.start != id.start {
		return false
	}
	err = p.Signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		w.err = fmt.Errorf("watch process %d: kill %d: %w", w.root.pid, id.pid, classify(err))
	}
	return err == nil
}

// Usage looks at the processes and tells what they use, as [Group.Usage] does.
// Memory is what is resident; the peak is the most that was seen.
func (w *Watchdog) Usage() (paddock.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.done:
	default:
		w.sample()
	}
	return w.usage, w.err
}

// OOM returns the number of processes that the watchdog killed at the limit, and the highest memory
// use that it saw.
func (w *Watchdog) OOM() (kills, peak int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kills, w.usage.MemoryPeak, w.err
}

// PIDsHit returns -1, because a watchdog refuses no processes.
func (w *Watchdog) PIDsHit() (int64, error) { return -1, nil }

// Update changes the limit of memory, if it is not zero. Others are
// [paddock.Unsupported].
func (w *Watchdog) Update(l paddock.Limits, _ ...string) error {
	if err := check(l); err != nil {
		return fmt.Errorf("update watchdog: %w", err)
	}
	if l.CPUs > 0 || l.PIDs > 0 || l.IO > 0 {
		return fmt.Errorf("update watchdog: it can only limit memory: %w", paddock.Unsupported)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.Memory > 0 {
		w.limit = l.Memory
	}
	return nil
}

// PIDs lists the processes that are watched, in ascending order.
func (w *Watchdog) PIDs() ([]int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	root, err := w.stat(w.root.pid)
	if err != nil || root.start != w.root.start {
		return nil, nil // it has ended
	}
	seen, _, _, _ := w.tree(root)
	var list []int
	for _, s := range seen {
		if !s.dead {
			list = append(list, s.pid)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Remove ends the watching and waits until it has. It ends no process. Twice
// is fine.
func (w *Watchdog) Remove(ctx context.Context) error {
	w.stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop watching process %d: %w: %w", w.root.pid, paddock.Canceled, ctx.Err())
	}
}
