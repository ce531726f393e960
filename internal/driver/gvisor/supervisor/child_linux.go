package supervisor

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
	"sync"
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
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/filter"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/hostwatch"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/overlaysize"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// isChild reports whether gVisor's own code started this program as one of its processes.
func isChild(argv0 string) bool {
	return argv0 == "/proc/self/exe" || strings.HasPrefix(filepath.Base(argv0), "runsc")
}

// child runs as such a process. It prepares a faster start and the supervision by the
// broker, and then runs gVisor's own code.
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
		// The sentry needs these later anyway. Here they use the other processor.
		go cpuid.Initialize()
		go seccheck.Initialize()
		// It enlists with the broker later: see guard.
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
		hostwatch.Register()
		if err = prepare(filter.InstallBoot); err != nil {
			break
		}
		if os.Args, err = sized(os.Args); err != nil {
			break
		}
		var umounter *os.File
		if umounter, err = smallUmounter(); err == nil {
			defer umounter.Close() // not before gVisor has executed it
		}
	case "gofer":
		if err = bounded(goferCaps); err != nil {
			break
		}
		if err = prepare(filter.InstallGofer); err == nil {
			err = boxinit.Enlist()
		}
	default:
		err = fmt.Errorf("gVisor started the unknown process %q", os.Args)
	}
	if err != nil {
		fail(what, err)
		return 1
	}
	cli.Run(nil, map[util.SubCommand]string{new(sentrycmd.Boot): "", new(cmd.Gofer): ""}, nil)
	return 0
}

// The capabilities that gVisor's processes keep. They also bound those of every process
// that they start. The gofer additionally needs CAP_SYS_CHROOT.
const (
	sentryCaps = sys.FileCaps
	goferCaps  = sys.FileCaps | sys.CapSysChroot
)

// boundChildren makes gVisor's processes start with a small bounding set. gVisor's own code
// would stop all threads to drop each capability, which took a quarter of the sentry's
// start. Without CAP_SETPCAP it skips that. The returned file is the program that the
// processes start with, and must stay open.
//
// If commands run as root, gVisor's own code drops the capabilities. Root gets the whole
// bounding set at exec, and needs more capabilities at first.
func boundChildren() (*os.File, error) {
	if os.Geteuid() == 0 {
		return nil, nil
	}
	if _, err := os.Lstat(boxinit.Program); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the program is only in memory, so gVisor's own code does it
	}
	f, err := sys.SealedFile("bounded", sys.Bounded(boxinit.Program, goferCaps, "runsc-sandbox"[6], sentryCaps))
	if err != nil {
		return nil, err
	}
	if f, err = sys.HighFile(f); err != nil {
		return nil, err
	}
	specutils.ExePath = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	return f, nil
}

// bounded checks the result of boundChildren.
func bounded(want uint64) error {
	held, got, err := sys.Capabilities()
	if err == nil && held&sys.CapSetPCap == 0 && got != want {
		err = fmt.Errorf("this process's bounding set is %#x, not %#x", got, want)
	}
	return err
}

// failure is the file in which a process that cannot start leaves the reason, because its
// standard error is discarded.
var failure = filepath.Join(boxinit.State, "failure")

func fail(what string, err error) {
	_ = os.WriteFile(failure, []byte(what+": "+err.Error()), 0o600) //nolint:gosec // the path is a constant
}

// reason adds that text to an error.
func reason(err error) error {
	said, e := os.ReadFile(failure)
	if e != nil {
		return err
	}
	return fmt.Errorf("%w: %s", err, said)
}

// quiet is the time after a start without garbage collection. A start leaves little
// garbage, and a collection would delay it.
const quiet = 300 * time.Millisecond

func prepare(programs func() error) error {
	// Grow the table of descriptors in parallel. Once threads share the table, growing it
	// waits for all processors. It is over before gVisor's filter, which kills for that call.
	var grown sync.WaitGroup
	defer grown.Wait()
	grown.Go(sys.GrowTable)
	debug.SetGCPercent(-1)
	time.AfterFunc(quiet, func() { debug.SetGCPercent(100) })
	if err := programs(); err != nil {
		// Then gVisor compiles its programs, as it does without the embedded ones.
		fmt.Fprintln(os.Stderr, "paddock:", err)
	}
	return awaitIdentity()
}

// offer makes this process and its children the first choice of the OOM killer. The first
// children are the processes in which the guest's code runs. When they exist, own restores
// the score of this process. Otherwise the kernel would sometimes kill the sentry and so
// end the box.
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
		_, _ = f.WriteAt(was[:n], 0) // lowering back to the old score is always allowed
		_ = f.Close()
	}, nil
}

// alike sets an OOM score for the processes that are started until restore is called. The
// text of the score is as long as that of offer. gVisor's code reads the sentry's score in
// two steps, perhaps while offer writes it. With texts of different length it would read a
// mixture.
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
		_, _ = f.WriteAt(was[:n], 0) // lowering back to the old score is always allowed
		_ = f.Close()
	}, nil
}

// awaitIdentity waits until this process's user is mapped into its user namespace. gVisor's
// code would execute the program again for that, to change to the mapped user. Here the
// user is the same before and after, which awaitIdentity verifies.
func awaitIdentity() error {
	const flag = "--sync-userns-fd="
	args := os.Args[:0:0]
	want := map[string]int{"--uid=": 0, "--gid=": 0} // absent arguments mean zero
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
		return fmt.Errorf("this process's user is %d, not %d", os.Getuid(), uid)
	}
	if gid := want["--gid="]; gid != os.Getgid() || gid != os.Getegid() {
		return fmt.Errorf("this process's group is %d, not %d", os.Getgid(), gid)
	}
	os.Args = args
	return nil
}

// smallUmounter makes a small program unmount /proc from the sentry after the sentry's
// setup. gVisor would start this whole program only to read a byte and to make one call,
// which is a large part of a box's start time.
func smallUmounter() (*os.File, error) {
	f, err := sys.SealedFile("umount", sys.DetachProc())
	if err != nil {
		return nil, err
	}
	if f, err = sys.HighFile(f); err != nil {
		return nil, err
	}
	// From here on this process executes only that program.
	specutils.ExePath = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	return f, nil
}
