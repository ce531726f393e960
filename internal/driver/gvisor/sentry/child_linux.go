package sentry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"gvisor.dev/gvisor/pkg/cpuid"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	"gvisor.dev/gvisor/runsc/cli"
	"gvisor.dev/gvisor/runsc/cmd"
	"gvisor.dev/gvisor/runsc/cmd/sentry/sentrycmd"
	"gvisor.dev/gvisor/runsc/cmd/util"
	"gvisor.dev/gvisor/runsc/specutils"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent/emitter"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry/filter"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry/overlaysize"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// isChild tells whether this program was started by gVisor's own code, as one
// of its processes.
func isChild(argv0 string) bool {
	return argv0 == "/proc/self/exe" || strings.HasPrefix(filepath.Base(argv0), "runsc")
}

// child is such a process. gVisor's own code for it comes last; before, what
// makes it start sooner, and what keeps it under the broker.
func child() int {
	what := ""
	for _, arg := range os.Args[1:] {
		if arg == "boot" || arg == "gofer" {
			what = arg
			break
		}
	}
	var err error
	switch what {
	case "boot":
		// What the sentry needs anyway, and does later: here it takes the other
		// processor's time.
		go cpuid.Initialize()
		go seccheck.Initialize()
		// It enlists later: see guard.
		if err = bounded(sentryCaps); err != nil {
			break
		}
		var own func()
		if own, err = offer(); err != nil {
			break
		}
		registerGuard(own)
		emitter.Register()
		overlaysize.Register()
		if err = prepare(filter.InstallBoot); err != nil {
			break
		}
		var umounter *os.File
		if umounter, err = smallUmounter(); err == nil {
			defer umounter.Close() // not before it was executed
		}
	case "gofer":
		if err = bounded(goferCaps); err != nil {
			break
		}
		if err = prepare(filter.InstallGofer); err == nil {
			err = boxinit.Enlist()
		}
	default:
		err = fmt.Errorf("gVisor started %q, which is none of its processes", os.Args)
	}
	if err != nil {
		fail(what, err)
		return 1
	}
	cli.Run(nil, map[util.SubCommand]string{new(sentrycmd.Boot): "", new(cmd.Gofer): ""}, nil)
	return 0
}

// The capabilities that gVisor's processes keep, and nothing that they start can
// have more; the gofer enters directories besides.
const (
	sentryCaps = kernel.FileCaps
	goferCaps  = kernel.FileCaps | kernel.CapSysChroot
)

// boundChildren has gVisor's processes begin with a small bounding set. Their own
// code would make it so by stopping all threads for every capability, which took
// a quarter of the sentry's start; without CAP_SETPCAP it sees that it cannot.
// The file that is given is what they begin with: it stays open.
//
// Of a box whose commands are root's their own code does it: who is root has, after
// an exec, what is in the bounding set and nothing else, and needs more to begin.
func boundChildren() (*os.File, error) {
	if os.Geteuid() == 0 {
		return nil, nil
	}
	if _, err := os.Lstat(boxinit.Program); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it is in memory only: their own code does it
	}
	f, err := kernel.SealedFile("bounded", kernel.Bounded(boxinit.Program, goferCaps, "runsc-sandbox"[6], sentryCaps))
	if err != nil {
		return nil, err
	}
	if f, err = kernel.HighFile(f); err != nil {
		return nil, err
	}
	specutils.ExePath = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	return f, nil
}

// bounded checks what boundChildren did.
func bounded(want uint64) error {
	held, got, err := kernel.Capabilities()
	if err == nil && held&kernel.CapSetPCap == 0 && got != want {
		err = fmt.Errorf("this process's bounding set is %#x, and should be %#x", got, want)
	}
	return err
}

// failure is where a process that cannot begin leaves the reason; its standard
// error leads nowhere.
var failure = filepath.Join(boxinit.State, "failure")

func fail(what string, err error) {
	_ = os.WriteFile(failure, []byte(what+": "+err.Error()), 0o600) //nolint:gosec // the path is a constant
}

// reason adds what one of the processes left to an error about them.
func reason(err error) error {
	said, e := os.ReadFile(failure)
	if e != nil {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

// quiet is how long nothing is collected after a start: what a start leaves is
// little, and looking for it takes time.
const quiet = 300 * time.Millisecond

func prepare(programs func() error) error {
	// The table of descriptors grows beside the rest of the start; when threads
	// share it, that waits for all processors.
	go kernel.GrowTable()
	debug.SetGCPercent(-1)
	time.AfterFunc(quiet, func() { debug.SetGCPercent(100) })
	if err := programs(); err != nil {
		// gVisor compiles its programs then, as it does without ours.
		fmt.Fprintln(os.Stderr, "paddock:", err)
	}
	return awaitIdentity()
}

// offer offers this process, and what it makes, to be killed for lack of memory.
// What it makes first are the processes that the guest's code runs in; when they
// are there, own takes the offer back for this process alone. Without that the
// host's kernel would now and then choose the sentry, and end the box.
func offer() (own func(), err error) {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	was := make([]byte, 16)
	n, err := f.ReadAt(was, 0)
	if n == 0 {
		return nil, err
	}
	if _, err := f.WriteAt([]byte("1000"), 0); err != nil {
		return nil, err
	}
	return func() {
		_, _ = f.WriteAt(was[:n], 0) // a lower score is always allowed back
		_ = f.Close()
	}, nil
}

// alike has what is started until restore is called begin with a score whose text
// is as long as that of offer. gVisor's code reads the sentry's score, in two
// steps, maybe just when offer writes it: of a short and a longer text it would
// read half of each.
func alike() (restore func(), err error) {
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	was := make([]byte, 16)
	n, err := f.ReadAt(was, 0)
	if n == 0 {
		return nil, errors.Join(err, f.Close())
	}
	if n < len("100\n") {
		if _, err := f.WriteAt([]byte("100"), 0); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return func() {
		_, _ = f.WriteAt(was[:n], 0) // a lower score is always allowed back
		_ = f.Close()
	}, nil
}

// awaitIdentity waits until this process's user is mapped into its user
// namespace, which gVisor's code would do by executing the program once more:
// it wants to change to that user then. Here the user is the same before and
// after, which is made certain of.
func awaitIdentity() error {
	const flag = "--sync-userns-fd="
	args := os.Args[:0:0]
	want := map[string]int{"--uid=": 0, "--gid=": 0} // which are not said where they are zero
	for _, arg := range os.Args {
		if v, ok := strings.CutPrefix(arg, flag); ok {
			fd, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%s: %w", arg, err)
			}
			if fd < 0 {
				continue
			}
			f := os.NewFile(uintptr(fd), "user namespace")
			_, err = io.Copy(io.Discard, f)
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("wait for the user namespace: %w", err)
			}
			continue
		}
		for _, name := range []string{"--uid=", "--gid="} {
			if v, ok := strings.CutPrefix(arg, name); ok {
				n, err := strconv.Atoi(v)
				if err != nil {
					return fmt.Errorf("%s: %w", arg, err)
				}
				want[name] = n
			}
		}
		args = append(args, arg)
	}
	if uid := want["--uid="]; uid != os.Getuid() || uid != os.Geteuid() {
		return fmt.Errorf("this process's user is %d, and should be %d", os.Getuid(), uid)
	}
	if gid := want["--gid="]; gid != os.Getgid() || gid != os.Getegid() {
		return fmt.Errorf("this process's group is %d, and should be %d", os.Getgid(), gid)
	}
	os.Args = args
	return nil
}

// smallUmounter has another program than this one take /proc away from the
// sentry when that has set itself up. gVisor starts this program once more for
// it, only to read a byte and to make one call; that start is among the longer
// parts of a box's.
func smallUmounter() (*os.File, error) {
	f, err := kernel.SealedFile("umount", kernel.DetachProc())
	if err != nil {
		return nil, err
	}
	if f, err = kernel.HighFile(f); err != nil {
		return nil, err
	}
	// From here on this process executes nothing else.
	specutils.ExePath = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	return f, nil
}
