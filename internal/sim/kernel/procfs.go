package kernel

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Release is the version of Linux that the computer looks like.
const Release = "6.1.0-paddock"

// Proc returns what /proc holds.
func Proc() vfs.Dynamic { return procRoot{} }

// A made file is a regular one with made-up content.
type made func(t *Task) string

func (made) Mode() uint32                                 { return linux.S_IFREG | 0o444 }
func (made) Lookup(*vfs.View, string) (vfs.Dynamic, bool) { return nil, false }
func (made) Names(*vfs.View) []string                     { return nil }
func (m made) Content(v *vfs.View) ([]byte, error)        { return m.with(v) }
func (m made) with(v *vfs.View) ([]byte, error) {
	t, ok := v.Self.(*Task)
	if !ok {
		return nil, nil // somebody outside, who is no task
	}
	return []byte(m(t)), nil
}

// A madeLink is a symbolic link with made-up text.
type madeLink func(v *vfs.View) (string, error)

func (madeLink) Mode() uint32                                 { return linux.S_IFLNK | 0o777 }
func (madeLink) Lookup(*vfs.View, string) (vfs.Dynamic, bool) { return nil, false }
func (madeLink) Names(*vfs.View) []string                     { return nil }
func (m madeLink) Content(v *vfs.View) ([]byte, error) {
	s, err := m(v)
	return []byte(s), err
}

// A madeDir is a directory with a fixed list of entries.
type madeDir map[string]vfs.Dynamic

func (madeDir) Mode() uint32 { return linux.S_IFDIR | 0o555 }
func (d madeDir) Lookup(_ *vfs.View, name string) (vfs.Dynamic, bool) {
	x, ok := d[name]
	return x, ok
}

func (d madeDir) Names(*vfs.View) []string {
	names := make([]string, 0, len(d))
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
func (madeDir) Content(*vfs.View) ([]byte, error) { return nil, linux.EISDIR }

type procRoot struct{}

func (procRoot) Mode() uint32                      { return linux.S_IFDIR | 0o555 }
func (procRoot) Content(*vfs.View) ([]byte, error) { return nil, linux.EISDIR }

func (procRoot) Lookup(v *vfs.View, name string) (vfs.Dynamic, bool) {
	if pid, err := strconv.Atoi(name); err == nil {
		t, ok := v.Self.(*Task)
		if !ok {
			return nil, false
		}
		other, ok := t.K.Task(pid)
		if !ok {
			return nil, false
		}
		return taskDir(other), true
	}
	x, ok := system()[name]
	return x, ok
}

func (procRoot) Names(v *vfs.View) []string {
	var names []string
	if t, ok := v.Self.(*Task); ok {
		for _, other := range t.K.Tasks() {
			names = append(names, strconv.Itoa(other.PID))
		}
	}
	names = append(names, system().Names(v)...)
	slices.Sort(names)
	return names
}

func fixed(text string) made { return func(*Task) string { return text } }

// system is what /proc tells of the computer as a whole.
func system() madeDir {
	return madeDir{
		"self": madeLink(func(v *vfs.View) (string, error) {
			if t, ok := v.Self.(*Task); ok {
				return strconv.Itoa(t.PID), nil
			}
			return "", linux.ENOENT
		}),
		"version":     fixed("Linux version " + Release + " (paddock) #1 SMP\n"),
		"cmdline":     fixed("\n"),
		"filesystems": fixed("nodev\tproc\nnodev\ttmpfs\n"),
		"swaps":       fixed("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
		"mounts":      madeLink(func(*vfs.View) (string, error) { return "self/mounts", nil }),
		"uptime": made(func(t *Task) string {
			up := time.Since(t.K.booted).Seconds()
			return fmt.Sprintf("%.2f %.2f\n", up, up)
		}),
		"loadavg": made(func(t *Task) string { return fmt.Sprintf("0.00 0.00 0.00 1/%d %d\n", len(t.K.Tasks()), t.PID) }),
		"meminfo": made(func(t *Task) string {
			total, used := t.K.heap.Limit()/1024, t.K.heap.Used()/1024
			return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nBuffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n",
				total, total-used, total-used)
		}),
		"cpuinfo": made(func(*Task) string {
			var b strings.Builder
			for i := range runtime.NumCPU() {
				fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: Paddock\nmodel name\t: Paddock simulated processor\n\n", i)
			}
			return b.String()
		}),
		"stat": made(func(t *Task) string {
			return fmt.Sprintf("cpu  0 0 0 0 0 0 0 0 0 0\nbtime %d\nprocesses %d\n", t.K.booted.Unix(), t.PID)
		}),
		"net": madeDir{
			"dev": fixed("Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n"),
		},
		"sys": madeDir{"kernel": madeDir{
			"hostname":  made(func(t *Task) string { return t.K.Hostname + "\n" }),
			"ostype":    fixed("Linux\n"),
			"osrelease": fixed(Release + "\n"),
			"pid_max":   fixed("4194304\n"),
			"random": madeDir{
				"uuid":    made(func(*Task) string { return uuid() }),
				"boot_id": made(func(t *Task) string { return t.K.bootID }),
			},
		}},
	}
}

// uuid makes a random one.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// taskDir is what /proc tells of one task. What only its own goroutine knows
// it tells itself alone.
func taskDir(t *Task) vfs.Dynamic {
	own := func(v *vfs.View) error {
		if v.Self != any(t) {
			return linux.EACCES
		}
		return nil
	}
	d := madeDir{
		"cmdline": made(func(*Task) string {
			var b strings.Builder
			for _, a := range t.known().args {
				b.WriteString(a)
				b.WriteByte(0)
			}
			return b.String()
		}),
		"environ": made(func(*Task) string {
			var b strings.Builder
			for _, e := range t.known().env {
				b.WriteString(e)
				b.WriteByte(0)
			}
			return b.String()
		}),
		"comm":   made(func(*Task) string { return t.comm() + "\n" }),
		"status": made(func(*Task) string { return t.statusText() }),
		"stat": made(func(*Task) string {
			return fmt.Sprintf("%d (%s) %s %d %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0 0\n", t.PID, t.comm(), t.state(), t.PPID, t.PGID(), t.PGID())
		}),
		"statm":     fixed("0 0 0 0 0 0 0\n"),
		"maps":      fixed(""),
		"mounts":    fixed("tmpfs / tmpfs rw 0 0\nproc /proc proc rw 0 0\n"),
		"mountinfo": fixed("1 0 0:1 / rw - tmpfs rw\n2 1 0:2 / /proc rw - proc rw\n"),
		"cgroup":    fixed("0::/\n"),
		"limits": made(func(*Task) string {
			n := t.K.MaxDescriptors()
			return fmt.Sprintf("Limit                     Soft Limit           Hard Limit           Units     \nMax open files            %-20d %-20d files     \n", n, n)
		}),
		"root": madeLink(func(*vfs.View) (string, error) { return "/", nil }),
		"cwd": madeLink(func(v *vfs.View) (string, error) {
			if err := own(v); err != nil {
				return "", err
			}
			return v.LockedGetwd()
		}),
		"exe": madeLink(func(*vfs.View) (string, error) { return "/usr/bin/" + t.comm(), nil }),
		"fd":  &fdDir{t},
	}
	d["task"] = madeDir{strconv.Itoa(t.PID): madeDir{"comm": d["comm"], "status": d["status"], "stat": d["stat"]}}
	return d
}

func (t *Task) comm() string {
	args := t.known().args
	if len(args) == 0 {
		return "?"
	}
	name := args[0]
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return name[:min(15, len(name))]
}

func (t *Task) state() string { return "R" }

func (t *Task) statusText() string {
	k := t.known()
	var ignored, caught uint64
	return fmt.Sprintf(`Name:	%s
State:	R (running)
Tgid:	%d
Pid:	%d
PPid:	%d
Uid:	%d	%d	%d	%d
Gid:	%d	%d	%d	%d
FDSize:	64
Groups:	%d
Threads:	1
SigIgn:	%016x
SigCgt:	%016x
CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
`, t.comm(), t.PID, t.PID, t.PPID, k.uid, k.uid, k.uid, k.uid, k.gid, k.gid, k.gid, k.gid, k.gid, ignored, caught)
}

// fdDir lists a task's own descriptors.
type fdDir struct{ t *Task }

func (*fdDir) Mode() uint32                      { return linux.S_IFDIR | 0o555 }
func (*fdDir) Content(*vfs.View) ([]byte, error) { return nil, linux.EISDIR }

func (d *fdDir) Lookup(v *vfs.View, name string) (vfs.Dynamic, bool) {
	fd, err := strconv.Atoi(name)
	if err != nil || v.Self != any(d.t) {
		return nil, false
	}
	desc := d.t.FD(fd)
	if desc == nil {
		return nil, false
	}
	return &fdLink{fd, desc}, true
}

// An fdLink leads to what a descriptor of the asking task leads to.
type fdLink struct {
	fd   int
	desc *Desc
}

func (*fdLink) Mode() uint32                                 { return linux.S_IFLNK | 0o777 }
func (*fdLink) Lookup(*vfs.View, string) (vfs.Dynamic, bool) { return nil, false }
func (*fdLink) Names(*vfs.View) []string                     { return nil }

// Content names the file, as far as it has a name.
func (l *fdLink) Content(*vfs.View) ([]byte, error) {
	if l.desc.Name == "pipe" {
		return fmt.Appendf(nil, "pipe:[%d]", 1000+l.fd), nil
	}
	name := l.desc.Name
	if f, ok := l.desc.onDisk(); ok {
		path, err := f.LockedPath()
		switch err {
		case nil:
			name = path
		case linux.ENOENT:
			name += " (deleted)"
		}
	}
	return []byte(name), nil
}

// File gives the number of the file, if it is on the computer's disk.
func (l *fdLink) File() (vfs.Ino, bool) {
	f, ok := l.desc.onDisk()
	if !ok || f.Ino() == 0 {
		return 0, false
	}
	return f.Ino(), true
}

// Info describes a file that is not.
func (l *fdLink) Info() (vfs.Info, error) { return l.desc.File.Info() }

func (d *fdDir) Names(v *vfs.View) []string {
	if v.Self != any(d.t) {
		return nil
	}
	var names []string
	for _, fd := range d.t.FDs() {
		names = append(names, strconv.Itoa(fd))
	}
	return names
}
