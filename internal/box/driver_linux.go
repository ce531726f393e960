package box

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/inventory"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Options configure a [Driver].
type Options struct {
	// State is the directory for sandboxes that outlive the process that made them. It is
	// made if needed, for its owner only. Empty means a directory of the calling user that
	// exists until the machine restarts.
	State string

	// Environ is the caller's environment, in the form of os.Environ. PATH decides which
	// programs can be found inside, HOME where homes are, and so on. Little of it enters a
	// sandbox: see paddock.Spec.Env. Nil means empty.
	Environ []string

	// Cache is the directory in which the guest program is kept as a file, because
	// executing a file is faster than copying it to memory first. It is made if needed, for
	// its owner only. Empty means a directory of the calling user. If nothing can be kept
	// or executed there, the driver works without it.
	Cache string

	// Guest is the guest program (cmd/paddock-guest). If it is unset, the calling program
	// itself is executed as the guest. It must then call [Main] first.
	Guest program.Program

	// Data is the directory for saved sandboxes: paused ones, and snapshots. It is made if
	// needed, for its owner only. Empty means a directory of the calling user on a disk.
	Data string

	// Snapshots is the directory for snapshots of files, which drivers of several tiers may share. It is made if needed,
	// for its owner only. Empty means one in Data, or beside that of
	// all tiers.
	Snapshots string

	// Private lists the caller's files that no sandbox may see.
	Private private.Files

	// Gateway is the gateway program (cmd/paddock-gateway). If it is unset, the calling
	// program itself is executed as the gateway. It must then call gateway.Main first.
	Gateway program.Program

	// Keeper is the program that owns a sandbox which outlives the process that made it
	// (cmd/paddock-keeper). A small program starts faster. If it is unset, the calling
	// program itself is executed as the keeper. It must then call [Main] first.
	Keeper program.Program

	// Ask is called if no rule of an ephemeral sandbox decides. Nil denies. The context
	// ends when nobody waits for the answer any more. Ask may be called concurrently.
	Ask func(context.Context, gatewayclient.Question) gatewayclient.Answer
	// Judge decides about what the rules, or a person, allow an ephemeral sandbox to reach; see [gatewayclient.Options].
	Judge gatewayclient.Judge
	// Login keeps the tokens of logins outside of ephemeral sandboxes; see [gatewayclient.Login].
	Login gatewayclient.Login
	// Watch is told of the steps of ephemeral sandboxes; see [step.Options].
	Watch step.Watcher

	// Hosts are addresses of names that gateways do not look up. Roots are certificates in
	// PEM that gateways trust in addition to the system's.
	Hosts map[string][]netip.Addr
	Roots []byte

	// Spares is the number of keepers that are started before a sandbox needs one, for
	// callers that make many sandboxes which outlive them. Each takes some memory.
	Spares int

	// Scope moves this process from the control group of a login session to one that it may
	// divide. It is called at most once for each driver. Nil means not possible.
	Scope func() error

	// Audit receives the kernel's events on processes of ephemeral sandboxes, whose owner
	// this process is, and the decisions of their gateways. Nil disables events. A sandbox
	// that outlives this process records its events itself, in State.
	Audit audit.Sink

	// Steps is the directory of the journal of steps (package step), for sandboxes with paddock.Spec.Undo. It is made if
	// needed, for its owner only, and must be out of every sandbox's reach. Empty refuses such sandboxes.
	Steps string

	// Layers has directories that take what changes in mounts with Overlay of an ephemeral sandbox, by the source of the
	// mount. In each are directories upper and work. They are the caller's, who reads and removes them when the sandbox
	// is gone. One serves one sandbox.
	Layers map[string]string

	// Images has the images with which sandboxes may begin. Nil refuses paddock.RootImage.
	Images image.Source

	// Changing is called with the source of a mount in Layers and a path below it, before commands change what they see
	// there. The sandbox reports it, so it may be forged.
	Changing func(source, path string)
}

// An environ is an environment by name.
type environ map[string]string

func newEnviron(list []string) environ {
	env := make(environ, len(list))
	for _, v := range list {
		if name, value, ok := strings.Cut(v, "="); ok {
			env[name] = value
		}
	}
	return env
}

func (e environ) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// Main must be the first call in the main function of a program that uses this package. If
// the program was started as a part of a sandbox, it runs that part and does not return.
// Otherwise it returns false. The runtimes are those of the tiers whose sandboxes the
// program may own.
func Main(runtimes ...*Runtime) bool {
	if len(os.Args) == 0 {
		return false
	}
	switch os.Args[0] {
	case boxinit.Argv0:
		boxinit.Main(nil)
	case guestinit.Argv0:
		guestinit.Main()
	case keeperArgv0:
		keeperMain(runtimes)
	case sweeperArgv0:
		sweeperMain()
	default:
		if filepath.Base(os.Args[0]) != sudo.Name {
			return false
		}
		sudo.Main()
	}
	return true
}

// A Driver makes sandboxes of one tier.
type Driver struct {
	tier Tier
	site *Site

	gateway  func() (*os.File, error) // the program of gateways
	sweepers sweepers
	spares   spareKeepers
	recents  recents
	swept    sync.Once
	reading  *readers  // of the journal of steps
	found    sync.Once // paused sandboxes that were lost are remembered again

	ephemeral inventory.Set[*Sandbox] // and the IDs of all that are being made
}

// New returns a driver of a tier. It changes nothing on the host, and does not fail if no
// sandbox can be made; Info and Create report that.
func New(s *Site, t Tier) *Driver {
	d := &Driver{tier: t, site: s, gateway: s.Open(s.o.Gateway), reading: newReaders(readAtOnce), spares: spareKeepers{most: s.o.Spares}}
	if !s.o.Keeper.Self() {
		d.spares.program = s.Open(s.o.Keeper)
	}
	return d
}

// readAtOnce is how many calls read the journal of steps at the same time.
const readAtOnce = 2

func defaultState(env environ) string {
	if os.Geteuid() == 0 {
		return "/run/paddock"
	}
	if dir := env["XDG_RUNTIME_DIR"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("paddock-%d", os.Geteuid()))
}

// DefaultData returns the default directory for saved sandboxes of all tiers, for a caller
// with this environment.
func DefaultData(environ []string) string {
	env := newEnviron(environ)
	return defaultData(env, filepath.Join(defaultState(env), "any"))
}

// defaultData returns a directory on a disk or, if the caller has none, one beside the
// state.
func defaultData(env environ, state string) string {
	if os.Geteuid() == 0 {
		return "/var/lib/paddock"
	}
	if dir := env["XDG_DATA_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock")
	}
	if home := env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "paddock")
	}
	return filepath.Join(filepath.Dir(state), "data")
}

// Create implements paddock.Driver.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := d.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	return sb, nil
}

func (d *Driver) create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, EndKind(err))
	}
	if spec.ID == "" {
		spec.ID = newID()
	}
	if err := d.check(&spec); err != nil {
		return nil, err
	}
	if err := d.reserve(spec.ID); err != nil {
		return nil, err
	}
	if !spec.Ephemeral {
		defer d.ephemeral.Forget(spec.ID)
		return d.createKept(ctx, &spec)
	}
	sb, err := d.createHere(ctx, &spec)
	if err != nil {
		d.ephemeral.Forget(spec.ID)
		return nil, err
	}
	if err := d.ephemeral.Add(sb.Sandbox); err != nil { // the driver was closed meanwhile
		ctx, cancel := context.WithTimeout(context.Background(), removeTime)
		defer cancel()
		return nil, errors.Join(err, sb.Remove(ctx))
	}
	return sb, nil
}

// reserve reserves an ID, so that no other sandbox gets that name, neither in this driver
// nor, if the ID's directory exists, in another process.
func (d *Driver) reserve(id paddock.ID) error {
	if err := d.ephemeral.Reserve(id); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(d.site.state, string(id))); err == nil {
		d.ephemeral.Forget(id)
		return fmt.Errorf("sandbox %s: %w", id, paddock.Exists)
	}
	return nil
}

func newID() paddock.ID {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return paddock.ID("sb-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])))
}

// createHere makes an ephemeral sandbox, which this process owns.
func (d *Driver) createHere(ctx context.Context, spec *paddock.Spec) (*newborn, error) {
	p, err := d.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	var watched struct {
		sync.Mutex
		done func() // guarded by Mutex
	}
	watched.done = func() {}
	// watch makes the sweeper watch a box's control group, and no longer that of the
	// previous box.
	watch := func(now func()) {
		watched.Lock()
		defer watched.Unlock()
		watched.done()
		watched.done = now
	}
	done := func() { watch(func() {}) }
	var sb *Sandbox
	own := &Life{plan: p.plan, tier: d.tier.Name, data: d.site.Data, files: d.site.Files, ephemeral: true, watching: d.site.o.Watch, turn: make(chan struct{}, 1)}
	how := d.recording(spec)
	judged := d.monitored(spec)
	if judged != nil {
		own.guardedBy(newGuard(spec.ID, d.tier.Name, judged, spec.Policy.Network.Secrets, d.site.o.Audit), own.pause)
	}
	if err := own.record(spec.ID, how, spec.Root.Kind == paddock.RootSnapshot); err != nil {
		own.plan.Close()
		return nil, err
	}
	if own.steps != nil {
		own.steps.audit = d.site.o.Audit
	}
	if d.site.o.Changing != nil && how == nil {
		own.plan.witness = (&layered{changing: d.site.o.Changing}).watch
	}
	own.plan.made = func(b *Box) {
		if b.Group != nil {
			watch(d.sweepers.watch(b.Group.Dirs()))
		}
	}
	sb = &Sandbox{id: spec.ID, driver: d, owner: own, dialing: make(chan struct{}, 1), about: about{
		User: own.plan.Layout.Config.User.Name, Dir: own.plan.Layout.Config.Dir, Labels: maps.Clone(spec.Labels),
		Enforced: p.findings, Lifetime: own.plan.Limits.Lifetime, Limits: own.plan.Limits, Network: own.plan.Gateway != nil, Keys: len(spec.Policy.KeyAgents) > 0, Undo: how, Monitor: judged,
	}}
	var attached error
	own.plan.connected = func(conn net.Conn) {
		// While the box is being built, there is time for the remains of drivers that were
		// killed before they had a sweeper. The next driver removes what cannot be removed
		// now.
		d.swept.Do(func() { _, _ = d.site.host().Sweep(d.keeps) })
		if attached = sb.attach(conn, nil, own.plan.Limits.Lifetime); attached == nil {
			sb.warm()
		}
	}
	_, err = own.begin(ctx)
	if err == nil && attached != nil {
		err = errors.Join(attached, own.remove(context.WithoutCancel(ctx)))
	}
	if err != nil {
		own.plan.Close()
		own.guard.leave()
		own.steps.close()
		if sb.link != nil {
			_ = sb.link.Close()
		}
		done()
		return nil, err
	}
	d.sweepers.made()
	sb.done, sb.about.Created = done, own.made
	st := sb.born(own)
	return &newborn{sb, &st}, nil
}

// Open implements paddock.Driver.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %q: %w", string(id), err)
	}
	return sb, nil
}

func (d *Driver) open(ctx context.Context, id paddock.ID) (*Sandbox, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("not a name: %w", paddock.Invalid)
	}
	sb, err := d.ephemeral.Open(id)
	if !errors.Is(err, paddock.NotFound) {
		return sb, err
	}
	return d.openKept(ctx, id)
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) {
	if err := d.ephemeral.Err(); err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	found := d.ephemeral.All()
	kept, list, err := d.keptIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	inside, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	states, errs := make([]paddock.Status, len(found)+len(kept)), make([]error, len(found)+len(kept))
	var asking sync.WaitGroup
	places := make(chan struct{}, listAtOnce)
	for i := range states {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			if i < len(found) {
				states[i], errs[i] = found[i].status(ctx, inside)
				return
			}
			states[i], errs[i] = d.statusOf(ctx, inside, kept[i-len(found)])
		})
	}
	asking.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			list = append(list, states[i])
		case errors.Is(err, paddock.NotFound) || errors.Is(err, paddock.Unavailable): // removed meanwhile
		default:
			return nil, fmt.Errorf("list sandboxes: %w", err)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Created.Before(list[j].Created) })
	return list, nil
}

// Sandboxes that do not answer must not delay the list by the sum of their times, because it may
// be of many users.
const (
	listTime   = 5 * time.Second // how long the list waits for what only the insides of sandboxes know
	listAtOnce = 64              // sandboxes that are asked at the same time
)

// statusOf returns the status of a sandbox that a keeper owns.
func (d *Driver) statusOf(ctx, inside context.Context, id paddock.ID) (paddock.Status, error) {
	if sb := d.recents.find(id); sb != nil && sb.shown() && sb.stands() {
		return sb.status(ctx, inside)
	}
	sb, err := d.look(ctx, id)
	if err != nil {
		return paddock.Status{}, err
	}
	defer sb.letGo()
	return sb.status(ctx, inside)
}

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	err := d.ephemeral.Err()
	switch {
	case err != nil:
	case d.tier.Snapshots == nil:
		err = fmt.Errorf("this tier takes none: %w", paddock.Unsupported)
	default:
		err = d.tier.Snapshots.Remove(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	return nil
}

// SnapshotTier implements paddock.SnapshotKeeper.
func (d *Driver) SnapshotTier(_ context.Context, id paddock.SnapshotID) (paddock.Tier, error) {
	if err := d.ephemeral.Err(); err != nil {
		return "", fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	if d.tier.Snapshots == nil {
		return "", fmt.Errorf("snapshot %q: %w", string(id), paddock.NotFound)
	}
	return d.tier.Snapshots.Taker(id)
}

// Layer opens the private layer of a snapshot of files, an archive in tar. Of a removed file there is a character device
// 0:0, and a directory through which nothing shows has the attribute trusted.overlay.opaque. What was inside the sandbox
// wrote it: its bytes are hostile.
func (d *Driver) Layer(ctx context.Context, id paddock.SnapshotID) (*os.File, error) {
	if d.tier.Snapshots == nil {
		return nil, fmt.Errorf("the layer of snapshot %q: the tier %s takes none: %w", string(id), d.tier.Name, paddock.Unsupported)
	}
	f, err := d.tier.Snapshots.Layer(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("the layer of snapshot %q: %w", string(id), err)
	}
	return f, nil
}

// Close implements paddock.Driver.
func (d *Driver) Close() error {
	left, first := d.ephemeral.Shut()
	if !first {
		return nil
	}
	d.site.stop()
	d.spares.close()
	d.recents.close()
	var errs []error
	for _, sb := range left {
		ctx, cancel := context.WithTimeout(context.Background(), removeTime)
		errs = append(errs, sb.Remove(ctx))
		cancel()
	}
	return errors.Join(append(errs, d.site.close())...)
}

const removeTime = 30 * time.Second

func (d *Driver) forget(sb *Sandbox) {
	d.recents.drop(sb)
	d.ephemeral.Forget(sb.id)
}

// Defaults returns the limits that replace zeros of a spec.
func Defaults() paddock.Limits {
	memory := int64(4 << 30)
	var si syscall.Sysinfo_t
	if syscall.Sysinfo(&si) == nil {
		memory = min(memory, int64(si.Totalram)*int64(si.Unit)/2)
	}
	return paddock.Limits{Memory: memory, CPUs: float64(runtime.NumCPU()), PIDs: 1024, Disk: 1 << 30, Files: 4096}
}
