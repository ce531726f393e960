package jail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

const keeperArgv0 = "paddock-keeper"

// Names in the state directory of a kept sandbox.
const (
	socketName = "keeper"
	aboutName  = "about.json"
)

// An order is what a keeper is told when it starts, on descriptor 3; the guest
// program comes with it.
type order struct {
	ID       paddock.ID     `json:"id"`
	Dir      string         `json:"dir"` // of this sandbox, in the state directory
	Layout   wireLayout     `json:"layout"`
	Limits   paddock.Limits `json:"limits"`
	Groups   bool           `json:"groups"`
	About    about          `json:"about"`
	Deadline time.Time      `json:"deadline,omitzero"`
}

// A request to a keeper, one packet each.
type request struct {
	Op     string          `json:"op"` // connect, measure, update, pause, resume, remove
	Update *paddock.Update `json:"update,omitempty"`
	Wait   time.Duration   `json:"wait,omitempty"` // how long the caller waits; 0 is removeTime
}

// A response of a keeper; connect's comes with a descriptor.
type response struct {
	Error   string           `json:"error,omitempty"`
	Kind    paddock.Kind     `json:"kind,omitempty"`
	Missing *paddock.Finding `json:"missing,omitempty"` // of a paddock.MissingError
	Measure *measure         `json:"measure,omitempty"`
	About   *about           `json:"about,omitempty"`
}

// keeperMain is the process that owns one kept sandbox.
func keeperMain() {
	debug.SetGCPercent(50)
	kernel.KeepSignals()
	_ = kernel.CloseFrom(4) // what our maker's maker left open
	maker, err := kernel.NewChannel(3)
	if err != nil {
		os.Exit(1) // nobody to tell
	}
	if err := keep(maker); err != nil {
		data, _ := json.Marshal(failed(err))
		_ = maker.Send(data) // a maker that went away needs no answer
		os.Exit(1)
	}
	os.Exit(0)
}

// keep makes the sandbox, tells the maker, and serves until it is over.
func keep(maker *kernel.Channel) error {
	data, files, err := maker.Receive()
	if err != nil || len(files) != 1 {
		return fmt.Errorf("receive the order: %w", errors.Join(err, fmt.Errorf("%d descriptors", len(files))))
	}
	var o order
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !o.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, o.Deadline)
		defer cancel()
	}
	// A maker that goes away before it has its sandbox has none.
	told := make(chan bool, 1)
	go func() {
		_, _, err := maker.Receive()
		told <- err == nil
		if err != nil {
			cancel()
		}
	}()
	k := &keeper{dir: o.Dir, about: o.About, gone: make(chan struct{})}
	listener, err := k.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	var first net.Conn
	k.box, first, err = newBox(ctx, start{name: string(o.ID), layout: o.Layout.layout(), limits: o.Limits, exe: files[0], host: cgroup.Probe(), groups: o.Groups})
	if err != nil {
		return err
	}
	files[0].Close()
	first.Close() // whoever wants the agent asks for a connection
	undo := func(err error) error {
		rm, cancel := context.WithTimeout(context.Background(), removeTime)
		defer cancel()
		return errors.Join(err, k.box.remove(rm))
	}
	k.about.Created, k.about.Limits = k.box.created, o.Limits
	if k.box.group != nil {
		k.about.Groups = k.box.group.Dirs()
	}
	if err := k.write(); err != nil {
		return undo(err)
	}
	if data, err = json.Marshal(response{About: &k.about}); err != nil {
		return undo(err)
	}
	if err := maker.Send(data); err != nil {
		return undo(err)
	}
	if !<-told {
		return undo(fmt.Errorf("the maker went away: %w", paddock.Canceled))
	}
	maker.Close()
	debug.FreeOSMemory()
	k.serve(listener)
	return nil
}

type keeper struct {
	dir  string
	box  *box
	gone chan struct{} // closed when the sandbox was removed

	mu      sync.Mutex
	about   about // guarded by mu
	removed bool  // guarded by mu
}

// listen opens the socket by a short name, because socket paths are.
func (k *keeper) listen() (*net.UnixListener, error) {
	d, err := os.Open(k.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socketIn(d), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

func socketIn(dir *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + socketName
}

func (k *keeper) write() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writeLocked()
}

// writeLocked writes what a later driver needs when the keeper is gone. The
// caller holds mu.
func (k *keeper) writeLocked() error {
	data, err := json.Marshal(k.about)
	if err != nil {
		return err
	}
	tmp := filepath.Join(k.dir, aboutName+".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("remember the sandbox: %w", err)
	}
	return os.Rename(tmp, filepath.Join(k.dir, aboutName))
}

// serve answers until the sandbox was removed or has died.
func (k *keeper) serve(l *net.UnixListener) {
	go func() {
		select {
		case <-k.gone:
		case <-k.box.ended:
			k.bury()
		}
		l.Close()
	}()
	var wg sync.WaitGroup
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			break
		}
		wg.Go(func() {
			defer c.Close()
			k.converse(c)
		})
	}
	select { // a removal that is under way is finished
	case <-k.gone:
	case <-time.After(removeTime):
	}
}

// bury records how the sandbox died and removes what it still holds, unless it
// is being removed.
func (k *keeper) bury() {
	k.mu.Lock()
	if k.removed {
		k.mu.Unlock()
		return
	}
	k.about.Dead = k.box.reason()
	_ = k.writeLocked() // without it the next driver says that the keeper is gone
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	_ = k.box.remove(ctx) // what is left is told by the next Remove
	os.Exit(0)
}

func (k *keeper) converse(c *net.UnixConn) {
	ch, err := channelOf(c)
	if err != nil {
		return
	}
	defer ch.Close()
	for {
		data, extra, err := ch.Receive()
		for _, f := range extra {
			f.Close()
		}
		if err != nil {
			return
		}
		var q request
		var r response
		var files []*os.File
		if err := json.Unmarshal(data, &q); err != nil {
			r = failed(fmt.Errorf("request: %w: %w", err, paddock.Invalid))
		} else {
			r, files = k.answer(q)
		}
		if data, err = json.Marshal(r); err == nil {
			err = ch.Send(data, files...)
		}
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			return
		}
		if q.Op == "remove" && r.Error == "" {
			k.finish()
			return
		}
	}
}

func (k *keeper) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.gone:
	default:
		close(k.gone)
	}
}

func failed(err error) response {
	r := response{Error: err.Error(), Kind: paddock.KindOf(err)}
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		r.Missing = &missing.Finding
	}
	return r
}

func (k *keeper) answer(q request) (response, []*os.File) {
	wait := q.Wait
	if wait <= 0 {
		wait = removeTime
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var err error
	switch q.Op {
	case "connect":
		var f *os.File
		if f, err = k.box.connect(); err == nil {
			return response{}, []*os.File{f}
		}
	case "measure":
	case "update":
		err = k.update(q.Update)
	case "pause":
		err = k.box.pause(ctx)
	case "resume":
		err = k.box.resume()
	case "remove":
		k.mu.Lock()
		k.removed = true
		k.mu.Unlock()
		if err = k.box.remove(ctx); err == nil {
			err = os.RemoveAll(k.dir)
		}
	default:
		err = fmt.Errorf("request %q: %w", q.Op, paddock.Unsupported)
	}
	if err != nil {
		return failed(err), nil
	}
	m := k.box.measure()
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.about
	a.Labels = maps.Clone(a.Labels)
	return response{Measure: &m, About: &a}, nil
}

func (k *keeper) update(u *paddock.Update) error {
	if u == nil {
		return nil
	}
	if u.Limits != nil {
		if err := k.box.update(*u.Limits); err != nil {
			return err
		}
	}
	if u.Labels != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.about.Labels = u.Labels
		return k.writeLocked()
	}
	return nil
}

// createKept makes a sandbox that a keeper owns.
func (d *Driver) createKept(ctx context.Context, spec *paddock.Spec) (sb *sandbox, err error) {
	s, findings, err := d.prepare(spec)
	if err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	dir, err := d.claim(spec.ID)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	o := order{ID: spec.ID, Dir: dir, Layout: s.layout.wire(), Limits: s.limits, Groups: s.groups, About: about{
		User: s.layout.config.User.Name, Dir: s.layout.config.Dir, Labels: spec.Labels, Enforced: findings,
		Lifetime: s.limits.Lifetime, Brokered: s.layout.brokered(),
	}}
	if t, ok := ctx.Deadline(); ok {
		o.Deadline = t
	}
	a, err := employ(ctx, o, s.exe)
	if err != nil {
		return nil, err
	}
	return d.adopt(spec.ID, dir, *a), nil
}

// employ starts a keeper and waits until its sandbox is ready.
func employ(ctx context.Context, o order, guest *os.File) (*about, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if len(data) > kernel.PacketMax {
		return nil, fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(data)>>10, kernel.PacketMax>>10, paddock.Invalid)
	}
	mine, theirs, err := kernel.NewChannelPair()
	if err != nil {
		return nil, err
	}
	defer mine.Close()
	defer theirs.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{keeperArgv0}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2"}, Files: []*os.File{null, null, null, theirs}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	theirs.Close()
	// It is not ours any more: whoever comes after us must be able to wait
	// for nothing. While we live, its end is noticed here.
	go func() { _, _ = p.Wait() }()
	if err := mine.Send(data, guest); err != nil {
		return nil, fmt.Errorf("instruct the keeper: %w", err)
	}
	stop := mine.Until(ctx)
	defer stop()
	data, _, err = mine.Receive()
	if e := ctx.Err(); e != nil {
		return nil, fmt.Errorf("%w: %w", e, kindOf(e))
	}
	if err != nil {
		return nil, fmt.Errorf("the keeper ended before the sandbox was ready: %w: %w", err, paddock.Internal)
	}
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("the keeper's answer: %w", err)
	}
	if r.Error != "" || r.About == nil {
		return nil, r.err()
	}
	if !stop() {
		return nil, fmt.Errorf("%w: %w", ctx.Err(), kindOf(ctx.Err()))
	}
	if err := mine.Send([]byte{1}); err != nil {
		return nil, fmt.Errorf("accept the sandbox: %w", err)
	}
	return r.About, nil
}

// A toldError is an error that another process tells, with its kind.
type toldError struct {
	text string
	kind paddock.Kind
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.kind }

func (r *response) err() error {
	if r.Missing != nil {
		return &paddock.MissingError{Finding: *r.Missing}
	}
	return &toldError{r.Error, r.Kind}
}

// claim makes the directory that stands for a sandbox.
func (d *Driver) claim(id paddock.ID) (string, error) {
	if err := ownDirectory(d.state); err != nil {
		return "", err
	}
	dir := filepath.Join(d.state, string(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("sandbox %s: %w", id, paddock.Exists)
		}
		return "", fmt.Errorf("remember the sandbox: %w", err)
	}
	return dir, nil
}

// ownDirectory makes a directory that nobody else may enter, and refuses one
// that somebody else has prepared.
func ownDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		st, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok || !st.IsDir() || sys.Uid != uint32(os.Geteuid()) || st.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("state directory %s is not a directory that only the calling user may write to: %w", dir, paddock.Denied)
		}
		if filepath.Base(filepath.Dir(dir)) != fmt.Sprintf("paddock-%d", os.Geteuid()) {
			return nil
		}
	}
}

// keptIDs lists the sandboxes in the state directory.
func (d *Driver) keptIDs() ([]paddock.ID, error) {
	entries, err := os.ReadDir(d.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []paddock.ID
	for _, e := range entries {
		if id := paddock.ID(e.Name()); e.IsDir() && id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// keeps tells whether a control group's sandbox is remembered.
func (d *Driver) keeps(name string) bool {
	_, err := os.Lstat(filepath.Join(d.state, name))
	return err == nil
}

func (d *Driver) openKept(ctx context.Context, id paddock.ID) (*sandbox, error) {
	dir := filepath.Join(d.state, string(id))
	if _, err := os.Lstat(dir); err != nil {
		return nil, fmt.Errorf("%w", paddock.NotFound)
	}
	r := remoteOwner{dir: dir, driver: d}
	got, err := r.ask(ctx, request{Op: "measure"}, nil)
	if err != nil && !errors.Is(err, paddock.Unavailable) {
		return nil, err
	}
	if err == nil && got.About != nil {
		return d.adopt(id, dir, *got.About), nil
	}
	a, err := r.read()
	if err != nil {
		return nil, err
	}
	return d.adopt(id, dir, a), nil
}

func (d *Driver) adopt(id paddock.ID, dir string, a about) *sandbox {
	return &sandbox{id: id, driver: d, owner: remoteOwner{dir: dir, driver: d}, about: a}
}

// remoteOwner is a keeper.
type remoteOwner struct {
	dir    string
	driver *Driver
}

// ask sends one request and waits for the answer. Where there is no keeper the
// error is Unavailable; where there is no sandbox, NotFound.
func (r remoteOwner) ask(ctx context.Context, q request, file **os.File) (*response, error) {
	d, err := os.Open(r.dir)
	if err != nil {
		return nil, fmt.Errorf("%w", paddock.NotFound)
	}
	defer d.Close()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socketIn(d), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	ch, err := channelOf(c)
	if err != nil {
		return nil, err
	}
	defer ch.Close()
	defer ch.Until(ctx)()
	if t, ok := ctx.Deadline(); ok {
		q.Wait = max(time.Until(t), time.Millisecond)
	}
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if err := ch.Send(data); err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	data, files, err := ch.Receive()
	if e := ctx.Err(); e != nil {
		return nil, fmt.Errorf("%w: %w", e, kindOf(e))
	}
	if err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	for _, f := range files {
		if file == nil || *file != nil {
			f.Close()
		} else {
			*file = f
		}
	}
	var got response
	if err := json.Unmarshal(data, &got); err != nil {
		return nil, fmt.Errorf("the keeper's answer: %w", err)
	}
	if got.Error != "" {
		return nil, got.err()
	}
	return &got, nil
}

// channelOf takes over a connection of packets.
func channelOf(c *net.UnixConn) (*kernel.Channel, error) {
	defer c.Close()
	f, err := c.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return kernel.NewChannel(fd)
}

// read gives what was remembered of a sandbox whose keeper is gone.
func (r remoteOwner) read() (about, error) {
	var a about
	data, err := os.ReadFile(filepath.Join(r.dir, aboutName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(r.dir); err != nil {
			return a, fmt.Errorf("%w", paddock.NotFound)
		}
		a.Dead = "it was never finished: its keeper ended while making it"
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read what is remembered: %w", err)
	}
	if a.Dead == "" {
		a.Dead = "its keeper was killed, and the sandbox with it"
	}
	return a, nil
}

func (r remoteOwner) connect(ctx context.Context) (net.Conn, error) {
	var f *os.File
	if _, err := r.ask(ctx, request{Op: "connect"}, &f); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("the keeper sent no connection: %w", paddock.Internal)
	}
	defer f.Close()
	return net.FileConn(f)
}

func (r remoteOwner) measure(ctx context.Context) (measure, error) {
	got, err := r.ask(ctx, request{Op: "measure"}, nil)
	switch {
	case err == nil && got.Measure != nil:
		return *got.Measure, nil
	case err == nil:
		return measure{}, fmt.Errorf("the keeper sent no measure: %w", paddock.Internal)
	case !errors.Is(err, paddock.Unavailable):
		return measure{}, err
	}
	a, err := r.read()
	if err != nil {
		return measure{}, err
	}
	return measure{State: paddock.Dead, Reason: a.Dead, Limits: a.Limits, Usage: paddock.Usage{CPU: -1, Memory: 0, MemoryPeak: -1}}, nil
}

func (r remoteOwner) update(ctx context.Context, u paddock.Update) error {
	_, err := r.ask(ctx, request{Op: "update", Update: &u}, nil)
	return err
}

func (r remoteOwner) pause(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "pause"}, nil)
	return err
}

func (r remoteOwner) resume(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "resume"}, nil)
	return err
}

func (r remoteOwner) remove(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "remove"}, nil)
	if !errors.Is(err, paddock.Unavailable) {
		return err
	}
	// No keeper any more, and the box died with it: what is left is a control
	// group and the directory.
	a, err := r.read()
	if err != nil {
		return err
	}
	if len(a.Groups) > 0 {
		g, err := r.driver.host().Open(filepath.Base(r.dir), a.Groups...)
		switch {
		case errors.Is(err, paddock.NotFound):
		case err != nil:
			return err
		default:
			if err := g.Remove(ctx); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("forget the sandbox: %w", err)
	}
	return nil
}
