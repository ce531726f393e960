package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/ingress/access"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/usage"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// storeFlags say where a server keeps tenants, keys and what was used.
type storeFlags struct {
	state    string
	database string
}

func (f *storeFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.state, "state", "", "`directory` for what the server must find again (default: PADDOCK_STATE, or server where this user's data are)")
	fs.StringVar(&f.database, "database", "", "where tenants, keys and usage are: a `file` of SQLite, or postgres://… (default: PADDOCK_DATABASE, or server.db in --state)")
}

// place gives what [store.Open] opens.
func (f *storeFlags) place(a *cli.App) (string, error) {
	if f.database == "" {
		f.database, _ = a.Lookup("PADDOCK_DATABASE")
	} else if u, err := url.Parse(f.database); err == nil {
		if _, secret := u.User.Password(); secret {
			return "", cli.WithHint(fmt.Errorf("--database has a password, which everybody on the machine can read there: %w", paddock.Denied), "give it as PADDOCK_DATABASE, or by the password file of PostgreSQL")
		}
	}
	if f.database != "" {
		if strings.Contains(f.database, "://") || filepath.IsAbs(f.database) {
			return f.database, nil
		}
		dir, err := a.Dir()
		return cli.Absolute(f.database, dir), err
	}
	dir, err := f.dir(a)
	return filepath.Join(dir, "server.db"), err
}

func (f *storeFlags) open(ctx context.Context, a *cli.App) (*store.Store, error) {
	place, err := f.place(a)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, place)
	if err != nil {
		return nil, cli.WithHint(err, "--database names another place")
	}
	return s, nil
}

// accountFlags say what callers may have.
type accountFlags struct {
	host       string
	most       cli.CountFlag
	overcommit cli.CountFlag
	idlePause  cli.TimeFlag
	idleRemove cli.TimeFlag
	longest    cli.TimeFlag
	keepUsage  cli.CountFlag
	keepHours  cli.CountFlag
	warm       []string
	audit      string
	bucket     string
	monitor    string
}

func (f *accountFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.host, "host", "", "`name` of this machine among the servers of one database (default: its host name)")
	fs.Var(&f.most, "max-sandboxes", "make no more than this `number` of sandboxes (default 1000)")
	fs.Var(&f.overcommit, "overcommit", "promise this `number` of times the memory that the machine has (default 100)")
	fs.Var(&f.idlePause, "idle-pause", "pause a sandbox that nobody used for this `time`; the next call wakes it; of sandboxes whose maker gave no terms, as E2B's clients always do")
	fs.Var(&f.idleRemove, "idle-remove", "remove a sandbox that nobody used for this `time`; of sandboxes whose maker gave no terms, as E2B's clients always do")
	fs.Var(&f.longest, "max-life", "remove every sandbox this `time` after it was made")
	fs.Var(&f.keepUsage, "keep-usage", "forget what was used this `number` of days ago (default 400)")
	fs.Var(&f.keepHours, "keep-usage-hours", "know for this `number` of days what was used in each hour, and from then on what was used in each day, of sandboxes that are alike together (default 35, at least 2)")
	fs.StringArrayVar(&f.warm, "warm", nil, "keep sandboxes ready, so that whoever asks for exactly that gets one at once: `WHAT=MIN[:MAX][,ttl=TIME]`, of a tier, e2b or e2b:TIER for what clients of E2B ask for, or a file with a spec in JSON (repeatable)")
	fs.StringVar(&f.audit, "audit", "", "record who did what in files of this `DIR`, as signed lines of JSON; docs/security/audit.md describes them")
	fs.StringVar(&f.monitor, "monitor", "", "`who` judges a sandbox whose maker names no monitor, as E2B's clients never do: rules (the built-in ones) or off (the default); no boundary (docs/use/monitor.md)")
	fs.StringVar(&f.bucket, "audit-bucket", "", "copy finished files of the record to a store that speaks S3: `https://HOST/BUCKET/PREFIX/`")
}

func (f *accountFlags) terms() lifetime.Terms {
	return lifetime.Terms{IdlePause: time.Duration(f.idlePause), IdleRemove: time.Duration(f.idleRemove), Wake: f.idlePause > 0}
}

// usualOvercommit is how many times the machine's memory is promised: a sandbox
// without a limit of its own is promised 4 GiB, and an idle one takes 5 MB. What
// keeps the machine is the look at what is really left, before each is made.
const usualOvercommit cli.CountFlag = 100

// usualKeep is for how many days what was used is kept: a year, and a month to
// write its bill.
const usualKeep cli.CountFlag = 400

// usualHours is for how many days it is kept by the hour: a month, and some days to look
// into its bill.
const usualHours cli.CountFlag = 35

// shared names the first flag that was given of those for servers with tenants.
func (f *accountFlags) shared() string {
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"host", f.host != ""}, {"max-sandboxes", f.most != 0}, {"overcommit", f.overcommit != 0}, {"warm", len(f.warm) > 0},
	} {
		if flag.set {
			return flag.name
		}
	}
	return ""
}

// check refuses what could not be, whatever is there.
func (f *accountFlags) check(a *cli.App) error {
	if err := (lifetime.Options{Default: f.terms(), Longest: time.Duration(f.longest)}).Check(); err != nil {
		return err
	}
	if err := f.checkMonitor(); err != nil {
		return err
	}
	if f.keepHours == 1 {
		return cli.WithHint(fmt.Errorf("--keep-usage-hours 1: hours of yesterday may still be counted: %w", paddock.Invalid), "give 2 or more")
	}
	if f.bucket != "" {
		if f.audit == "" {
			return cli.WithHint(fmt.Errorf("--audit-bucket without a directory to record in: %w", paddock.Invalid), "add --audit DIR")
		}
		if _, err := uploader(a, nil, f.bucket, nil); err != nil {
			return err
		}
	}
	if _, err := shelves(a, f.warm, func(paddock.Tier) (bool, error) { return false, nil }); err != nil {
		return err
	}
	_, err := f.hostName()
	return err
}

// developer is the tenant of the one key that the command line gives.
const developer = "default"

// accounts are the callers of a server: the keys that they show, and the sandboxes
// that are theirs.
type accounts struct {
	app   *cli.App
	flags *serveFlags
	watch *operation
	log   *slog.Logger

	store   *store.Store
	ring    *key.Ring
	static  key.Static
	host    string         // of what is in the store, what is here
	release func() error   // of the claim that this is the one server here; nil is none
	shelves []pool.Shelf   // of --warm
	ready   []paddock.Tier // of which it keeps what clients of E2B ask for
	shared  paddock.Driver // what all tenants share; the tenants' set closes it once there is one
	pool    *pool.Pool     // a layer of it; nil keeps nothing ready
	own     bool           // the caller is the server's own user, on a socket
	meter   *usage.Meter
	tenants *tenant.Set
	record  *journal                                           // nil records nothing
	asked   atomic.Pointer[func(tenant string, id paddock.ID)] // is told that a monitor asks; nil before somebody can hear it
	sums    chan struct{}                                      // has one for each sum of use that is being made
	access  *access.Control                                    // of ports; nil until openAccess

	mu      sync.Mutex
	drivers map[string]paddock.Driver // guarded by mu; by tenant
	summing map[string]chan struct{}  // guarded by mu; by tenant; has one while a sum of it is in the line
}

// openAccounts builds what stands between callers and a driver: keys, the layers of
// stack.go, usage and the record. It owns the driver from here on, and closes it if it
// fails.
func openAccounts(ctx context.Context, a *cli.App, d paddock.Driver, f *serveFlags, shown string, o *operation) (_ *accounts, err error) {
	c := &accounts{app: a, flags: f, watch: o, log: o.log, shared: d, sums: make(chan struct{}, sumsAtOnce), drivers: map[string]paddock.Driver{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, stage := range []func(context.Context) error{
		func(ctx context.Context) error { return c.openKeys(ctx, shown) },
		c.claim,
		c.readShelves,
		c.openRecord,
		func(ctx context.Context) (err error) {
			c.shared, err = wrapAll(ctx, c.shared, c.sharedLayers())
			return err
		},
		c.openTenants,
		c.adopt,
	} {
		if err := stage(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// openKeys opens the database, and refuses a server that nobody could call.
func (c *accounts) openKeys(ctx context.Context, shown string) (err error) {
	if c.store, err = c.flags.store.open(ctx, c.app); err != nil {
		return err
	}
	c.watch.from.Failures = c.store.Failures
	c.ring = key.New(c.store, c.app.Wall)
	if err := c.admit(ctx, shown, c.flags.trusted); err != nil {
		return err
	}
	if ok, err := c.open(ctx, shown); err != nil || !ok {
		return errors.Join(err, cli.WithHint(fmt.Errorf("--listen %s without a key: nobody could call: %w", c.flags.listen, paddock.Denied),
			"make one: `paddock tenant create NAME`, `paddock key create NAME`; or give one for development: --key-file FILE or PADDOCK_KEY; or listen on a socket of yours: --listen unix:/path"))
	}
	return nil
}

// claim makes this the one server of its host name in the database.
func (c *accounts) claim(ctx context.Context) (err error) {
	if c.host, err = c.flags.account.hostName(); err != nil {
		return err
	}
	if c.release, err = c.store.Claim(ctx, c.host); err != nil {
		return cli.WithHint(err, "another server is there: end it first, or give this one a directory or a name of its own: --state DIR, --host NAME")
	}
	return nil
}

// readShelves reads --warm.
func (c *accounts) readShelves(ctx context.Context) (err error) {
	sudo := askOnce(func(tier paddock.Tier) (bool, error) { return hasSudo(ctx, c.shared, tier) })
	if c.shelves, err = shelves(c.app, c.flags.account.warm, sudo); err != nil {
		return err
	}
	for i, s := range c.shelves {
		if err := c.watch.images.ready(&c.shelves[i].Spec); err != nil {
			return err
		}
		has, err := sudo(s.Spec.Tier)
		if err != nil {
			return err
		}
		if reflect.DeepEqual(s.Spec, e2b.Ready(s.Spec.Tier, has)) {
			c.ready = append(c.ready, s.Spec.Tier)
			c.shelves[i].Spec.Limits.Disk = int64(c.flags.disk)
		}
	}
	return nil
}

// openTenants meters what sandboxes use, and keeps tenants apart.
func (c *accounts) openTenants(context.Context) (err error) {
	f := &c.flags.account
	if c.meter, err = usage.New(usage.Options{
		Driver: c.shared, Store: c.store, Place: c.host, Log: c.log,
		Keep: days(f.keepUsage, usualKeep), Hours: days(f.keepHours, usualHours),
	}); err != nil {
		return err
	}
	images := c.watch.images.forTenants(c.store, c.host)
	c.tenants, err = tenant.New(c.shared, tenant.Options{Store: c.store, Place: c.host, Meter: c.meter, Now: c.app.Wall, Images: images, Whole: c.own})
	return err
}

// openRecord opens the record of --audit.
func (c *accounts) openRecord(context.Context) (err error) {
	if c.record, err = openJournal(c.app, c.flags.account.audit, c.flags.account.bucket, c.log); err != nil {
		return err
	}
	if c.record != nil && c.record.uploader != nil {
		c.watch.from.Uploads = c.record.uploader.Waiting
	}
	return nil
}

// adopt goes on with the sandboxes that an earlier server left.
func (c *accounts) adopt(ctx context.Context) error {
	found, err := c.tenants.Adopt(ctx)
	if err != nil {
		return err
	}
	c.log.Info("sandboxes of before", "kept", len(found.Kept), "removed", len(found.Removed), "lost", len(found.Lost), "not ours", len(found.Left))
	return nil
}

// days gives a number of days, or the usual one.
func days(n, usual cli.CountFlag) time.Duration {
	return time.Duration(cmp.Or(n, usual)) * 24 * time.Hour
}

// hostName is what this machine is called in the database.
func (f *accountFlags) hostName() (string, error) {
	if f.host != "" {
		return f.host, nil
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "", cli.WithHint(fmt.Errorf("this machine has no name: %w: %w", err, paddock.Invalid), "give one: --host NAME")
	}
	return name, nil
}

// admit lets the key of the command line in, with a tenant of its own.
func (c *accounts) admit(ctx context.Context, shown string, trusted bool) error {
	if shown == "" {
		return nil
	}
	who := key.Principal{Key: "command-line", Tenant: developer, Scopes: []key.Scope{key.Read, key.Write}}
	if trusted {
		who.Scopes = append(who.Scopes, key.Admin)
	}
	var err error
	if c.static, err = key.NewStatic(shown, who); err != nil {
		return err
	}
	return c.addUnbounded(ctx, developer)
}

// addUnbounded adds a tenant without a quota, if it is not there yet.
func (c *accounts) addUnbounded(ctx context.Context, id string) error {
	all := store.Quota{
		Sandboxes: store.Unbounded, CPU: store.Unbounded, Memory: store.Unbounded, PIDs: store.Unbounded,
		Disk: store.Unbounded, Snapshots: store.Unbounded, Rate: store.Unbounded,
	}
	err := c.store.AddTenant(ctx, store.Tenant{ID: id, Quota: all, Created: time.Now()})
	if errors.Is(err, paddock.Exists) {
		return nil
	}
	return err
}

// open tells whether anybody could call.
func (c *accounts) open(ctx context.Context, shown string) (bool, error) {
	if shown != "" {
		return true, nil
	}
	tenants, err := c.store.Tenants(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tenants {
		keys, err := c.ring.List(ctx, t.ID)
		if err != nil {
			return false, err
		}
		for _, k := range keys {
			if k.Revoked.IsZero() && (k.Expires.IsZero() || k.Expires.After(time.Now())) {
				return true, nil
			}
		}
	}
	return false, nil
}

// caller says who makes a request, by the key that it carries.
func (c *accounts) caller(r *http.Request) (server.Caller, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return server.Caller{}, fmt.Errorf("the key is missing: %w", paddock.Denied)
	}
	return c.holder(r.Context(), text)
}

// holder says whose a key is.
func (c *accounts) holder(ctx context.Context, text string) (server.Caller, error) {
	who, err := c.static.Verify(ctx, text)
	if err != nil {
		who, err = c.ring.Verify(ctx, text)
	}
	switch {
	case errors.Is(err, paddock.Denied):
		return server.Caller{}, err
	case err != nil: // which may name the database
		c.log.Error("keys cannot be looked up", "error", err)
		return server.Caller{}, fmt.Errorf("keys cannot be looked up now: %w", paddock.Unavailable)
	case !who.May(key.Read) && !who.May(key.Write):
		return server.Caller{}, fmt.Errorf("key %s has neither the scope %s nor %s: %w", who.Key, key.Read, key.Write, paddock.Denied)
	}
	d, err := c.driver(who.Tenant)
	if err != nil {
		return server.Caller{}, err
	}
	one := server.Caller{Name: who.Tenant, Who: who.Key, Driver: d, Trusted: who.May(key.Admin), ReadOnly: !who.May(key.Write), Usage: c.used(who.Tenant), Images: c.imagesOf(who.Tenant, who.May(key.Admin))}
	if who.May(key.Admin) {
		one.Keys = ownKeys{c, who}
	}
	return one, nil
}

// driver gives a tenant's driver, the same one each time.
func (c *accounts) driver(id string) (paddock.Driver, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.drivers[id]; d != nil {
		return d, nil
	}
	d, err := wrapAll(context.Background(), c.shared, c.tenantLayers(id))
	if err != nil {
		return nil, err
	}
	c.drivers[id] = d
	return d, nil
}

// Close closes all drivers and the database. Sandboxes go on.
func (c *accounts) Close() error {
	var errs []error
	if c.access != nil {
		c.access.Close()
	}
	if c.meter != nil {
		errs = append(errs, c.meter.Close())
	}
	if c.tenants != nil {
		errs = append(errs, c.tenants.Close())
	} else {
		errs = append(errs, c.shared.Close())
	}
	errs = append(errs, c.record.close())
	if c.release != nil {
		errs = append(errs, c.release())
	}
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	return errors.Join(errs...)
}
