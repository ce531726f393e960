package boxinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Names of the files of a view: sources of a MountView.
const (
	viewMemory     = "meminfo"
	viewProcessors = "cpuinfo"
	viewTimes      = "stat"
	viewOnline     = "online"
)

// A view shows commands on the host's kernel the memory and the processors of the box instead of those of
// the machine, because programs choose by them how much memory they use and how many threads they
// make. It is no wall: the control group enforces the limits.
//
// Four files of a file system of its own, which commands see read-only, are over files of /proc and /sys.
// The calls that tell the same are reported to the broker. The number of processors is only shown: a
// command may run on each processor of the host, as long as the group has time left. If it were bound to
// some, it would get less than its limit when other boxes are bound to the same.
type view struct {
	sizes *os.File // of FileSizes

	// Files of the box's control group, which nobody can write; nil without one.
	used, parts *os.File

	// Files of the host's /proc, and the text of its cpuinfo.
	memory, times *os.File
	processors    []byte

	mount  *os.File            // of the shown files, until they are exposed
	mounts map[string]*os.File // of each, from then on until the tree is built

	mu     sync.Mutex
	shown  map[string]*os.File // guarded by mu
	listed string              // guarded by mu: the processors that are shown

	kicks chan struct{} // has an element when a command was started
}

// newView opens everything while the host's /proc is still there. It returns nil if the host sent no
// sizes.
func newView(files *Files) (v *view, err error) {
	sizes := files.One(FileSizes)
	if sizes == nil {
		return nil, nil
	}
	v = &view{shown: map[string]*os.File{}, kicks: make(chan struct{}, 1)}
	if v.processors, err = os.ReadFile("/proc/cpuinfo"); err != nil {
		return nil, err
	}
	for _, it := range []struct {
		to   **os.File
		file *os.File
	}{{&v.sizes, sizes}, {&v.used, files.One(FileMemoryUsed)}, {&v.parts, files.One(FileMemoryParts)}} {
		if it.file == nil {
			continue
		}
		if *it.to, err = sys.Duplicate(it.file); err != nil { // the others are closed when the tree is built
			return nil, err
		}
	}
	if v.memory, err = os.Open("/proc/meminfo"); err != nil {
		return nil, err
	}
	if v.times, err = os.Open("/proc/stat"); err != nil {
		return nil, err
	}
	const most = 4 << 20 // the largest file takes 1.5 KB for each processor
	v.mount, err = sys.NewMount("tmpfs", sys.NoSUID|sys.NoDev|sys.NoExec,
		sys.Option{Key: "mode", Value: "755"}, sys.Option{Key: "size", Value: strconv.Itoa(most)}, sys.Option{Key: "nr_inodes", Value: "16"})
	if err != nil {
		return nil, err
	}
	names := []string{viewMemory, viewTimes}
	if _, fewer, err := v.affinity(); err != nil {
		return nil, err
	} else if fewer { // otherwise the host's files say the same
		names = append(names, viewProcessors, viewOnline)
	}
	for _, name := range names {
		f, err := sys.CreateOpen(v.mount, name, 0o444)
		if err != nil {
			return nil, err
		}
		v.shown[name] = f
	}
	return v, v.refresh()
}

// expose opens a read-only mount of each file. Before Linux 6.15 only mounts that are attached can be
// copied, so the files are attached meanwhile, over a directory of the tree that build leaves.
func (v *view) expose() error {
	if v == nil {
		return nil
	}
	at, dir, err := vacant()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := sys.Attach(v.mount, dir); err != nil {
		return err
	}
	v.mounts = map[string]*os.File{}
	for name := range v.shown {
		f, err := sys.CloneTree(int(v.mount.Fd()), name, false)
		if err != nil {
			return err
		}
		v.mounts[name] = f
		if err := sys.SetMountAttr(f, sys.ReadOnly|sys.NoSUID|sys.NoDev|sys.NoExec, false); err != nil {
			return err
		}
	}
	return errors.Join(sys.Detach(at), v.mount.Close())
}

// mounted returns the read-only mount of one file; nil if it is not shown.
func (v *view) mounted(name string) *os.File {
	if v == nil {
		return nil
	}
	return v.mounts[name]
}

// size returns the present sizes. What cannot be read is the host's.
func (v *view) size() Sizes {
	if v == nil {
		return Sizes{}
	}
	b := make([]byte, SizesLen)
	if _, err := v.sizes.ReadAt(b, 0); err != nil {
		return Sizes{}
	}
	at := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	return Sizes{Memory: at(0), Processors: int(at(1)), PIDs: int(at(2))}
}

// first cuts a set of processors to those that are shown, and reports whether that removed any.
func (v *view) first(set []byte) bool {
	n := v.size().Processors
	return n > 0 && sys.FirstProcessors(set, n)
}

// affinity returns the set of processors that are shown, and whether the host has more.
func (v *view) affinity() (set []byte, fewer bool, err error) {
	set = make([]byte, processorsMax/8)
	n, err := sys.Affinity(0, set)
	if err != nil {
		return nil, false, err
	}
	set = set[:n]
	return set, v.first(set), nil
}

// processorsMax is more processors than a kernel can have.
const processorsMax = 64 << 10

// usage is what the box has of the memory, in bytes.
type usage struct {
	sys.Size
	available, cached, anonymous, slab uint64
}

// usage returns the present use of memory, and false if the box has no smaller size than the host.
func (v *view) usage() (u usage, smaller bool) {
	host := fieldsOf(v.memory, 1<<10)
	u.Total = uint64(max(v.size().Memory, 0))
	if u.Total == 0 || u.Total >= host["MemTotal"] {
		return u, false
	}
	used := uint64(0)
	if v.used != nil {
		text := contentOf(v.used)
		used, _ = strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	}
	if v.parts != nil {
		parts := fieldsOf(v.parts, 1)
		of := func(v1, v2 string) uint64 {
			if n, ok := parts["total_"+v1]; ok { // version 1, with groups below
				return n
			}
			return parts[v2]
		}
		// Version 1 has no number for memory of the kernel in this file.
		u.cached, u.Shared, u.anonymous, u.slab = of("cache", "file"), of("shmem", "shmem"), of("rss", "anon"), parts["slab_reclaimable"]
	}
	used = min(used, u.Total) // it may have just been lowered
	u.cached = min(u.cached, used)
	u.Shared = min(u.Shared, u.cached)
	u.Free = u.Total - used
	u.available = min(u.Total-used+u.cached-u.Shared+min(u.slab, used-u.cached), host["MemAvailable"])
	return u, true
}

// refresh writes what is shown anew.
func (v *view) refresh() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	if f := v.shown[viewMemory]; f != nil {
		if u, smaller := v.usage(); smaller {
			errs = append(errs, show(f, u.text()))
		} else {
			errs = append(errs, show(f, contentOf(v.memory)))
		}
	}
	set, _, err := v.affinity()
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, show(v.shown[viewTimes], timesOf(contentOf(v.times), set)))
	if now := listOf(set); v.shown[viewOnline] != nil && now != v.listed {
		v.listed = now
		errs = append(errs, show(v.shown[viewProcessors], processorsOf(v.processors, set)), show(v.shown[viewOnline], []byte(now)))
	}
	return errors.Join(errs...)
}

// show replaces the content of a file. Somebody who reads it meanwhile may see a part of each.
func show(f *os.File, content []byte) error {
	if _, err := f.WriteAt(content, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(content)))
}

// refreshTime is how old the shown use of memory may be while commands run.
const refreshTime = time.Second

// keep keeps what is shown up to date, for as long as the box lives. While no command runs, it does
// nothing.
func (v *view) keep() {
	for range v.kicks {
		for {
			_ = v.refresh() // otherwise the older numbers stay
			select {
			case <-v.kicks:
				continue
			case <-time.After(refreshTime):
			}
			if !sys.HasChildren() {
				break
			}
		}
	}
}

// kick says that a command was started.
func (v *view) kick() {
	if v == nil {
		return
	}
	select {
	case v.kicks <- struct{}{}:
	default: // somebody has said so
	}
}

// text returns the content of /proc/meminfo, with the fields that programs use.
func (u usage) text() []byte {
	var b bytes.Buffer
	for _, f := range []struct {
		name  string
		bytes uint64
	}{
		{"MemTotal", u.Total}, {"MemFree", u.Free}, {"MemAvailable", u.available}, {"Buffers", 0}, {"Cached", u.cached},
		{"SwapCached", 0}, {"Active", u.anonymous + (u.cached-u.Shared)/2}, {"Inactive", (u.cached - u.Shared) / 2},
		{"Unevictable", 0}, {"Mlocked", 0}, {"SwapTotal", 0}, {"SwapFree", 0}, {"Dirty", 0}, {"Writeback", 0},
		{"AnonPages", u.anonymous}, {"Mapped", 0}, {"Shmem", u.Shared}, {"KReclaimable", u.slab}, {"Slab", u.slab}, {"SReclaimable", u.slab}, {"SUnreclaim", 0},
		{"CommitLimit", u.Total}, {"Committed_AS", u.anonymous + u.Shared},
	} {
		fmt.Fprintf(&b, "%-15s %8d kB\n", f.name+":", f.bytes>>10)
	}
	return b.Bytes()
}

// contentMax bounds what is read of a file of /proc.
const contentMax = 4 << 20

// contentOf returns the present content of a file of /proc or of a control group; what cannot be read is
// left out.
func contentOf(f *os.File) []byte {
	data, _ := io.ReadAll(io.NewSectionReader(f, 0, contentMax))
	return data
}

// fieldsOf returns the numbers of a file with a name and a number in each line, times unit.
func fieldsOf(f *os.File, unit uint64) map[string]uint64 {
	m := map[string]uint64{}
	for line := range bytes.Lines(contentOf(f)) {
		words := bytes.Fields(line)
		if len(words) < 2 {
			continue
		}
		if n, err := strconv.ParseUint(string(words[1]), 10, 64); err == nil && n <= math.MaxInt64/unit {
			m[strings.TrimSuffix(string(words[0]), ":")] = n * unit
		}
	}
	return m
}

// holds reports whether a processor is in a set.
func holds(set []byte, processor int) bool {
	return processor >= 0 && processor/8 < len(set) && set[processor/8]&(1<<(processor%8)) != 0
}

// processorsOf returns those parts of /proc/cpuinfo that are about processors of a set, or about none.
func processorsOf(text []byte, set []byte) []byte {
	var out [][]byte
	for part := range bytes.SplitSeq(text, []byte("\n\n")) {
		first, _, _ := bytes.Cut(part, []byte("\n"))
		name, value, _ := bytes.Cut(first, []byte(":"))
		if string(bytes.TrimSpace(name)) == "processor" {
			if n, err := strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || !holds(set, n) {
				continue
			}
		}
		out = append(out, part)
	}
	return bytes.Join(out, []byte("\n\n"))
}

// timesOf returns /proc/stat with the processors of a set, and their sums. It tells no numbers of interrupts, each of
// which shows what the host does, such as when a key is pressed.
func timesOf(text []byte, set []byte) []byte {
	var lines, rest []byte
	var sums []uint64
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case string(words[0]) == "intr", string(words[0]) == "softirq":
			rest = append(append(rest, words[0]...), " 0\n"...)
			continue
		case !bytes.HasPrefix(words[0], []byte("cpu")):
			rest = append(rest, line...)
			continue
		}
		if n, err := strconv.Atoi(string(words[0][len("cpu"):])); err != nil || !holds(set, n) {
			continue // the sum of all, or another one
		}
		lines = append(lines, line...)
		for i, w := range words[1:] {
			n, _ := strconv.ParseUint(string(w), 10, 64)
			if i == len(sums) {
				sums = append(sums, 0)
			}
			sums[i] += n
		}
	}
	out := []byte("cpu ")
	for _, n := range sums {
		out = strconv.AppendUint(append(out, ' '), n, 10)
	}
	return append(append(append(out, '\n'), lines...), rest...)
}

// listOf returns a set of processors as /sys lists it: "0-3,6".
func listOf(set []byte) string {
	var list []string
	for i := 0; i < 8*len(set); i++ {
		if !holds(set, i) {
			continue
		}
		first := i
		for holds(set, i+1) {
			i++
		}
		if i == first {
			list = append(list, strconv.Itoa(i))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", first, i))
		}
	}
	return strings.Join(list, ",") + "\n"
}

// sysinfo tells the size of the box in place of the machine's.
func (c *call) sysinfo() reply {
	if c.view == nil {
		return goOn
	}
	u, smaller := c.view.usage()
	if !smaller {
		return goOn
	}
	data, err := sys.SystemInfo(u.Size)
	if err != nil {
		return goOn
	}
	return c.tell(c.args[0], data, 0)
}

// affinity tells the processors of a thread, at most as many as the box has. A thread that has bound
// itself to fewer sees those.
func (c *call) affinity() reply {
	if c.view == nil {
		return goOn
	}
	tid, size := c.fd(0), int(min(uint64(uint32(c.args[1])), processorsMax/8))
	if tid == 0 {
		tid = c.tid
	}
	set := make([]byte, size)
	n, err := sys.Affinity(tid, set)
	if err != nil || !c.view.first(set[:n]) {
		return goOn // the kernel says the same
	}
	return c.tell(c.args[2], set[:n], n)
}

// tell writes data to the caller's memory, and answers num. The kernel answers by itself if that memory
// cannot be opened: the caller sees more than the box has, which harms nobody.
func (c *call) tell(addr uint64, data []byte, num int) reply {
	// The memory is opened before the call is known to wait still. So it is the caller's, whoever has
	// its number later.
	memory, err := sys.OpenMemory(c.tid)
	if err != nil {
		return goOn
	}
	defer memory.Close()
	if !sys.NotifValid(c.listener, c.id) {
		return reply{err: syscall.ESRCH}
	}
	if err := memory.Write(addr, data); err != nil {
		return reply{err: syscall.EFAULT}
	}
	return reply{num: num}
}
