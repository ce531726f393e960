package boxinit

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// reached remembers which limits the box has reached, and since when that is known.
type reached struct {
	mu   sync.Mutex
	list []paddock.Refusal // guarded by mu; one for each limit
}

// The limits. A refusal by a limit is told like one by a rule, with the flag that raises the limit.
func processesReached(most int) paddock.Refusal {
	return paddock.Refusal{What: "start", Target: "a process", Rule: fmt.Sprintf("the limit of %d processes and threads was reached", most), Remedy: "more processes: --pids"}
}

func filesReached(most int) paddock.Refusal {
	return paddock.Refusal{What: "open", Target: "a file", Rule: fmt.Sprintf("the limit of %d open files of a process was reached", most), Remedy: "more open files: --files"}
}

func diskReached(most int64) paddock.Refusal {
	return paddock.Refusal{What: "write", Target: "the sandbox's own files", Rule: fmt.Sprintf("the disk limit of %s was reached", mebibytes(most)), Remedy: "a larger disk: --disk"}
}

// mebibytes returns a size in words.
func mebibytes(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MiB", (n+1<<19)>>20)
}

// add records that a limit was reached.
func (l *reached) add(r paddock.Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, have := range l.list {
		if have.What == r.What {
			l.list[i].Rule = r.Rule // the limit may have changed
			return
		}
	}
	r.Time, r.Count = time.Now(), 1
	l.list = append(l.list, r)
}

// with adds what was recorded to other refusals.
func (l *reached) with(others []paddock.Refusal) []paddock.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == 0 {
		return others
	}
	return byTime(others, slices.Clone(l.list))
}

// A tally is what the kernel counts of the box's processes, in files of its control group that nobody can
// write.
type tally struct {
	peak, events *os.File // nil where the kernel does not count it
}

// newTally takes the files over from those that the host sent.
func newTally(files *Files) (t tally, err error) {
	for name, to := range map[string]**os.File{FilePIDsPeak: &t.peak, FilePIDsEvents: &t.events} {
		if f := files.One(name); f != nil && err == nil {
			*to, err = sys.Duplicate(f)
		}
	}
	return t, err
}

// hit reports whether there were so many processes and threads that there was no further one.
// Commands inherit a limit that the kernel does not count, so the largest number so far tells. If the
// limit was lowered, the control group refuses.
func (t tally) hit(inherited int) bool {
	if t.events != nil && fieldsOf(t.events, 1)["max"] > 0 {
		return true
	}
	var n int
	var err error
	if t.peak != nil {
		n, err = strconv.Atoi(strings.TrimSpace(string(contentOf(t.peak))))
	} else {
		n, err = sys.Tasks() // only the present number
		n++                  // of the program that found no room, which ends then
	}
	return err == nil && n >= inherited
}

// look records the limits of a jail that were reached by now.
func (p *initProcess) look() {
	if most := p.config.PIDs - SpareThreads; p.tally.hit(most) {
		most -= AgentThreads
		if now := p.view.size().PIDs; now > 0 {
			most = min(most, now)
		}
		p.reached.add(processesReached(most))
	}
	for _, dir := range p.config.private() {
		if size, full := guestinit.Full(dir); full {
			p.reached.add(diskReached(size))
		}
	}
}

// private returns a directory of each of a jail's own file systems: that of its private directories, which
// every root has, and the layer over a root directory.
func (c *Config) private() []string {
	dirs := []string{"/dev/shm"}
	if i := slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.Layer && !m.IsFile }); i >= 0 {
		dirs = append(dirs, c.Mounts[i].Target)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(c.Hosts, dir) })
}
