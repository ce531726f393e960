//go:build linux

package drivertest_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// bare is a driver without any isolation: the guest runs in this process, and its commands
// run on the host. It shows that the suite runs, that the suite expects no more than Info
// claims, and that the suite detects refusals. It is for tests only.
type bare struct {
	state  string
	forks  *forks
	broken string // the promise that this driver breaks on purpose

	mu     sync.Mutex
	closed bool                        // guarded by mu
	boxes  map[paddock.ID]*bareSandbox // guarded by mu; nil during creation
	chosen int                         // guarded by mu: IDs that it chose
}

// opener returns a constructor of bare drivers, broken or not.
func opener(broken string) func(state string) (paddock.Driver, error) {
	shared := &forks{}
	return func(state string) (paddock.Driver, error) {
		return &bare{state: state, forks: shared, broken: broken, boxes: make(map[paddock.ID]*bareSandbox)}, nil
	}
}

// forks lets one sandbox at a time start a process. Between fork and exec, a child holds
// the files that another sandbox's guest, in this same process, is writing.
type forks struct{ mu sync.Mutex }

func (f *forks) start(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fds := make([]uintptr, len(attr.Files))
	for i, file := range attr.Files {
		fds[i] = file.Fd()
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for try := 0; ; try++ {
		pid, err := syscall.ForkExec(argv0, argv, &syscall.ProcAttr{
			Dir: attr.Dir, Env: attr.Env, Files: fds,
			Sys: &syscall.SysProcAttr{Setsid: true, Setctty: attr.Terminal},
		})
		if err != syscall.ETXTBSY || try == 200 {
			return pid, err
		}
		// ForkExec returns while the kernel still closes the child's files, one after the
		// other. The file just written may be the last.
		<-tick.C
	}
}

func TestMain(m *testing.M) {
	// If the tests run with signals ignored (nohup), bare's commands, which are children of
	// this process, would ignore them too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	drivertest.Main(m, opener(""))
}

func bareHarness(broken string) drivertest.Harness {
	return drivertest.Harness{New: opener(broken), Base: paddock.Spec{AllowMissing: absent()}}
}

func TestBare(t *testing.T) { drivertest.Run(t, bareHarness("")) }

func BenchmarkBare(b *testing.B) { drivertest.Bench(b, bareHarness("")) }

// absent returns the controls that bare reports as absent.
func absent() []paddock.Control {
	return []paddock.Control{
		paddock.ControlUserNS, paddock.ControlMountNS, paddock.ControlPIDNS, paddock.ControlNetNS, paddock.ControlIPCNS,
		paddock.ControlUTSNS, paddock.ControlCgroupNS, paddock.ControlTimeNS, paddock.ControlReadOnly, paddock.ControlLandlock,
		paddock.ControlSeccomp, paddock.ControlNoNewPrivs, paddock.ControlCapabilities, paddock.ControlKeyring,
		paddock.ControlIdentity, paddock.ControlProtected, paddock.ControlNetwork, paddock.ControlMemory, paddock.ControlCPU,
		paddock.ControlPIDs, paddock.ControlDisk, paddock.ControlFiles, paddock.ControlDescriptors,
		// ControlIO is not even listed, so asking for it is unsupported.
	}
}

func findings() []paddock.Finding {
	all := []paddock.Finding{
		{Control: paddock.ControlEnvironment, Strength: paddock.Full, How: "made anew from a list"},
	}
	for _, c := range absent() {
		all = append(all, paddock.Finding{Control: c, Strength: paddock.Absent, Cause: "there is no isolation at all", Remedy: "use another driver"})
	}
	return all
}

func (d *bare) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Auto && tier != "bare" && d.broken != answersAnyTier {
		return paddock.Info{}, fmt.Errorf("tier %q: %w", tier, paddock.Unsupported)
	}
	info := paddock.Info{
		Tier:    "bare",
		Version: "1",
		Capabilities: []paddock.Capability{
			paddock.CanTerminal, paddock.CanAttach, paddock.CanWatch, paddock.CanDial, paddock.CanRootHost, paddock.CanPrograms,
		},
		Controls: findings(),
	}
	switch d.broken {
	case claimsTooMuch:
		info.Capabilities = append(info.Capabilities, paddock.CanPause)
	case claimsTooLittle:
		info.Capabilities = info.Capabilities[1:]
	}
	return info, nil
}

// check refuses a spec that is wrong, or that this driver does not support.
func (d *bare) check(spec paddock.Spec) error {
	switch {
	case spec.ID != "" && !spec.ID.Valid():
		return fmt.Errorf("id %.100q: %w", spec.ID, paddock.Invalid)
	case spec.Tier != paddock.Auto && spec.Tier != "bare":
		return fmt.Errorf("tier %.100q: %w", spec.Tier, paddock.Unsupported)
	case spec.Root != paddock.Root{}, len(spec.Mounts) > 0, spec.Hostname != "", spec.Limits.IO != 0,
		spec.Policy.Network.Mode != "" || spec.Policy.Network.Rules != nil:
		if strings.ContainsAny(spec.Hostname, "\x00\n") || len(spec.Hostname) > 64 {
			return fmt.Errorf("host name: %w", paddock.Invalid)
		}
		return fmt.Errorf("without isolation: %w", paddock.Unsupported)
	case spec.Policy.Files.DenyRead != nil, spec.Policy.Files.DenyWrite != nil, spec.Policy.Files.Protect != nil, spec.Policy.Files.Unprotect != nil:
		return fmt.Errorf("policy of files: %w", paddock.Unsupported)
	case spec.Undo != paddock.UndoOff:
		return fmt.Errorf("undo: %w", paddock.Unsupported)
	case spec.Monitor != nil:
		return fmt.Errorf("monitor: %w", paddock.Unsupported)
	case spec.Sudo:
		return fmt.Errorf("sudo: %w", paddock.Unsupported)
	case len(spec.Policy.KeyAgents) > 0:
		return fmt.Errorf("key agents: %w", paddock.Unsupported)
	}
	for _, k := range spec.Policy.Audit {
		if !slices.Contains(paddock.AuditKinds(), k) {
			return fmt.Errorf("audit %q: %w", k, paddock.Invalid)
		}
	}
	if len(spec.Policy.Audit) > 0 && d.broken != dropsAudit {
		return fmt.Errorf("audit: %w", paddock.Unsupported)
	}
	l := spec.Limits
	if l.Memory < 0 || l.CPUs < 0 || math.IsNaN(l.CPUs) || l.PIDs < 0 || l.Disk < 0 || l.Files < 0 || l.Lifetime < 0 {
		return fmt.Errorf("limits %+v: %w", l, paddock.Invalid)
	}
	size := 0
	for name, value := range spec.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("variable %q: %w", name, paddock.Invalid)
		}
		size += len(name) + len(value)
	}
	if size > paddock.MaxEnv {
		return fmt.Errorf("environment of %d bytes: %w", size, paddock.Invalid)
	}
	for _, c := range spec.AllowMissing {
		if !slices.Contains(absent(), c) {
			return fmt.Errorf("control %q: %w", c, paddock.Invalid)
		}
	}
	for _, f := range findings() {
		if f.Strength == paddock.Absent && d.broken != dropsControls && !slices.Contains(spec.AllowMissing, f.Control) {
			return &paddock.MissingError{Finding: f}
		}
	}
	if me, err := user.Current(); err != nil || spec.User != "" && spec.User != me.Username && spec.User != me.Uid {
		return fmt.Errorf("user %q: %w", spec.User, paddock.NotFound)
	}
	if spec.Dir == "" {
		return nil
	}
	if !filepath.IsAbs(spec.Dir) || strings.Contains(spec.Dir, "\x00") {
		return fmt.Errorf("directory %q: %w", spec.Dir, paddock.Invalid)
	}
	if fi, err := os.Stat(spec.Dir); err != nil || !fi.IsDir() {
		return fmt.Errorf("directory %q: %w", spec.Dir, paddock.NotFound)
	}
	return nil
}

func (d *bare) Create(ctx context.Context, spec paddock.Spec) (_ paddock.Sandbox, err error) {
	if err := d.check(spec); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("create: %w", paddock.Canceled)
	}
	d.mu.Lock()
	if spec.ID == "" {
		d.chosen++
		spec.ID = paddock.ID(fmt.Sprintf("bare-%d", d.chosen))
	}
	_, taken := d.boxes[spec.ID]
	closed := d.closed
	if !taken && !closed {
		d.boxes[spec.ID] = nil
	}
	d.mu.Unlock()
	switch {
	case closed:
		return nil, fmt.Errorf("driver is closed: %w", paddock.Unavailable)
	case taken:
		return nil, fmt.Errorf("id %s: %w", spec.ID, paddock.Exists)
	}
	sb, err := d.make(spec)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.boxes, spec.ID)
		return nil, err
	}
	d.boxes[spec.ID] = sb
	return sb, nil
}

func (d *bare) make(spec paddock.Spec) (*bareSandbox, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(me.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(me.Gid)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(d.state, string(spec.ID))
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "USER": me.Username, "LOGNAME": me.Username,
		"SHELL": "/bin/sh", "TERM": "xterm", "LANG": "C.UTF-8", "TMPDIR": home,
	}
	if d.broken == leaksEnvironment {
		for _, v := range os.Environ() {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
	}
	maps.Copy(env, spec.Env)
	if spec.Dir == "" {
		spec.Dir = home
	}
	sb := &bareSandbox{driver: d, spec: spec, home: home, created: time.Now(), labels: maps.Clone(spec.Labels), user: me.Username}
	sb.server, err = guest.New(guest.Options{
		User: guest.User{Name: me.Username, UID: uid, GID: gid, Home: home, Shell: "/bin/sh"},
		Env:  env, Dir: spec.Dir, StartProcess: d.forks.start,
	})
	if err != nil {
		return nil, err
	}
	host, inside, err := socketPair()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	sb.stop = stop
	sb.wg.Go(func() { _ = sb.server.Serve(ctx, inside) })
	sb.Guest, err = guestclient.New(host, guestclient.Options{Lifetime: spec.Limits.Lifetime})
	return sb, err
}

func socketPair() (net.Conn, net.Conn, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conns[i], err = net.FileConn(f)
		if err := f.Close(); err != nil {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return conns[0], conns[1], nil
}

func (d *bare) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("id %q: %w", id, paddock.Invalid)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("driver is closed: %w", paddock.Unavailable)
	}
	if sb := d.boxes[id]; sb != nil {
		return sb, nil
	}
	return nil, fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
}

func (d *bare) all() ([]*bareSandbox, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []*bareSandbox
	for _, sb := range d.boxes {
		if sb != nil {
			all = append(all, sb)
		}
	}
	slices.SortFunc(all, func(a, b *bareSandbox) int { return a.created.Compare(b.created) })
	return all, d.closed
}

func (d *bare) RemoveSnapshot(context.Context, paddock.SnapshotID) error {
	if _, closed := d.all(); closed {
		return fmt.Errorf("driver is closed: %w", paddock.Unavailable)
	}
	return fmt.Errorf("remove a snapshot: %w", paddock.Unsupported)
}

func (d *bare) List(ctx context.Context) ([]paddock.Status, error) {
	all, closed := d.all()
	if closed {
		return nil, fmt.Errorf("driver is closed: %w", paddock.Unavailable)
	}
	var list []paddock.Status
	for _, sb := range all {
		st, err := sb.Status(ctx)
		if err != nil {
			continue // removed meanwhile
		}
		list = append(list, st)
	}
	return list, nil
}

func (d *bare) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	all, _ := d.all()
	for _, sb := range all {
		if err := sb.Remove(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

type bareSandbox struct {
	*guestclient.Guest
	driver  *bare
	spec    paddock.Spec
	user    string
	home    string
	created time.Time
	server  *guest.Server
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu     sync.Mutex
	labels map[string]string // guarded by mu
	gone   bool              // guarded by mu

	removing sync.Mutex
}

func (s *bareSandbox) ID() paddock.ID { return s.spec.ID }

func (s *bareSandbox) Born() (paddock.Status, bool) {
	return paddock.Status{ID: s.ID()}, s.driver.broken == inventsBirth
}

func (s *bareSandbox) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	if s.driver.broken == mixesStreams {
		cmd.Output.Stderr = cmd.Output.Stdout
	}
	return s.Guest.Start(ctx, cmd)
}

func (s *bareSandbox) Status(context.Context) (paddock.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return paddock.Status{}, fmt.Errorf("sandbox %s was removed: %w", s.spec.ID, paddock.Unavailable)
	}
	return paddock.Status{
		ID: s.spec.ID, Tier: "bare", State: paddock.Ready, Created: s.created, User: s.user, Dir: s.spec.Dir,
		Limits: s.spec.Limits, Labels: maps.Clone(s.labels), Enforced: findings(),
		Usage: paddock.Usage{Wall: time.Since(s.created), CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1},
	}, nil
}

func (s *bareSandbox) Update(_ context.Context, u paddock.Update) error {
	if u.Limits != nil || u.Policy != nil {
		return fmt.Errorf("update of limits or policy: %w", paddock.Unsupported)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return fmt.Errorf("sandbox %s was removed: %w", s.spec.ID, paddock.Unavailable)
	}
	if u.Labels != nil {
		s.labels = maps.Clone(u.Labels)
	}
	return nil
}

func (s *bareSandbox) Snapshot(context.Context, paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	return "", fmt.Errorf("snapshot: %w", paddock.Unsupported)
}

func (s *bareSandbox) Pause(context.Context) error {
	return fmt.Errorf("pause: %w", paddock.Unsupported)
}

func (s *bareSandbox) Resume(context.Context) error {
	return fmt.Errorf("resume: %w", paddock.Unsupported)
}

func (s *bareSandbox) Remove(context.Context) error {
	s.removing.Lock()
	defer s.removing.Unlock()
	s.mu.Lock()
	gone := s.gone
	s.gone = true
	s.mu.Unlock()
	if gone && s.driver.broken == removesOnce {
		return fmt.Errorf("sandbox %s: %w", s.spec.ID, paddock.NotFound)
	}
	if gone {
		return nil
	}
	s.driver.mu.Lock()
	delete(s.driver.boxes, s.spec.ID)
	s.driver.mu.Unlock()
	if err := s.Close(); err != nil {
		return err
	}
	s.stop()
	s.wg.Wait()
	if err := s.server.Close(); err != nil {
		return err
	}
	if s.driver.broken == leavesFiles {
		return nil
	}
	return os.RemoveAll(s.home)
}
