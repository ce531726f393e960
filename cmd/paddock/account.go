package main

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
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/ingress/gate"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/usage"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
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
func (f *storeFlags) place(a *app) (string, error) {
	if f.database == "" {
		f.database, _ = a.lookup("PADDOCK_DATABASE")
	} else if u, err := url.Parse(f.database); err == nil {
		if _, secret := u.User.Password(); secret {
			return "", withHint(fmt.Errorf("--database has a password, which everybody on the machine can read there: %w", paddock.Denied), "give it as PADDOCK_DATABASE, or by the password file of PostgreSQL")
		}
	}
	if f.database != "" {
		if strings.Contains(f.database, "://") || filepath.IsAbs(f.database) {
			return f.database, nil
		}
		dir, err := a.dir()
		return absolute(f.database, dir), err
	}
	dir, err := f.dir(a)
	return filepath.Join(dir, "server.db"), err
}

func (f *storeFlags) open(ctx context.Context, a *app) (*store.Store, error) {
	place, err := f.place(a)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, place)
	if err != nil {
		return nil, withHint(err, "--database names another place")
	}
	return s, nil
}

// accountFlags say what callers may have.
type accountFlags struct {
	host       string
	most       countFlag
	overcommit countFlag
	idlePause  timeFlag
	idleRemove timeFlag
	longest    timeFlag
	keepUsage  countFlag
	keepHours  countFlag
	warm       []string
	audit      string
	bucket     string
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
	fs.StringVar(&f.audit, "audit", "", "record who did what in files of this `DIR`, as signed lines of JSON; docs/AUDIT.md describes them")
	fs.StringVar(&f.bucket, "audit-bucket", "", "copy finished files of the record to a store that speaks S3: `https://HOST/BUCKET/PREFIX/`")
}

func (f *accountFlags) terms() lease.Terms {
	return lease.Terms{IdlePause: time.Duration(f.idlePause), IdleRemove: time.Duration(f.idleRemove), Wake: f.idlePause > 0}
}

// usualOvercommit is how many times the machine's memory is promised: a sandbox
// without a limit of its own is promised 4 GiB, and an idle one takes 5 MB. What
// keeps the machine is the look at what is really left, before each is made.
const usualOvercommit countFlag = 100

// usualKeep is for how many days what was used is kept: a year, and a month to
// write its bill.
const usualKeep countFlag = 400

// usualHours is for how many days it is kept by the hour: a month, and some days to look
// into its bill.
const usualHours countFlag = 35

// given names the first of these flags that was given.
func (f *accountFlags) given() string {
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"host", f.host != ""}, {"max-sandboxes", f.most != 0}, {"overcommit", f.overcommit != 0}, {"idle-pause", f.idlePause != 0},
		{"idle-remove", f.idleRemove != 0}, {"max-life", f.longest != 0}, {"keep-usage", f.keepUsage != 0}, {"keep-usage-hours", f.keepHours != 0}, {"warm", len(f.warm) > 0}, {"audit", f.audit != ""}, {"audit-bucket", f.bucket != ""},
	} {
		if flag.set {
			return flag.name
		}
	}
	return ""
}

// check refuses what could not be, whatever is there.
func (f *accountFlags) check(a *app) error {
	if err := (lease.Options{Default: f.terms(), Longest: time.Duration(f.longest)}).Check(); err != nil {
		return err
	}
	if f.keepHours == 1 {
		return withHint(fmt.Errorf("--keep-usage-hours 1: hours of yesterday may still be counted: %w", paddock.Invalid), "give 2 or more")
	}
	if f.bucket != "" {
		if f.audit == "" {
			return withHint(fmt.Errorf("--audit-bucket without a directory to record in: %w", paddock.Invalid), "add --audit DIR")
		}
		if _, err := a.uploader(nil, f.bucket, nil); err != nil {
			return err
		}
	}
	if _, err := a.shelves(f.warm, func(paddock.Tier) (bool, error) { return false, nil }); err != nil {
		return err
	}
	_, err := f.hostName()
	return err
}

// whose says whose turn it is where sandboxes wait to be made.
func whose(ctx context.Context, _ paddock.Spec) string {
	q, _ := server.RequestOf(ctx)
	return q.Caller.Name
}

// developer is the tenant of the one key that the command line gives.
const developer = "default"

// accounts are the callers of a server: the keys that they show, and the sandboxes
// that are theirs.
type accounts struct {
	store   *store.Store
	host    string // of what is in the store, what is here
	house   *tenant.House
	meter   *usage.Meter
	ring    *key.Ring
	static  key.Static
	log     *slog.Logger
	release func() error   // of the claim that this is the one server here; nil is none
	record  *journal       // nil records nothing
	sums    chan struct{}  // has one for each sum of use that is being made
	pool    *pool.Pool     // nil keeps nothing ready
	ready   []paddock.Tier // of which it keeps what clients of E2B ask for
	gate    *gate.Gate     // of ports; nil until openGate

	mu      sync.Mutex
	drivers map[string]paddock.Driver // guarded by mu; by tenant
}

// openAccounts builds what is between callers and a driver, which it closes if it
// fails, and with itself: what is ready, room on the machine, lifetimes, tenants.
func (a *app) openAccounts(ctx context.Context, d paddock.Driver, f *serveFlags, shown string, o *operation) (_ *accounts, err error) {
	log := o.log
	c := &accounts{log: log, sums: make(chan struct{}, sumsAtOnce), drivers: map[string]paddock.Driver{}}
	defer func() {
		if err == nil {
			return
		}
		if c.house == nil {
			err = errors.Join(err, d.Close())
		}
		err = errors.Join(err, c.Close())
	}()
	if c.store, err = f.store.open(ctx, a); err != nil {
		return nil, err
	}
	c.ring = key.New(c.store, a.wall)
	if err := c.admit(ctx, shown, f.trusted); err != nil {
		return nil, err
	}
	if ok, err := c.open(ctx, shown); err != nil || !ok {
		return nil, errors.Join(err, withHint(fmt.Errorf("--listen %s without a key: nobody could call: %w", f.listen, paddock.Denied),
			"make one: `paddock tenant create NAME`, `paddock key create NAME`; or give one for development: --key-file FILE or PADDOCK_KEY; or listen on a socket of yours: --listen unix:/path"))
	}
	host, err := f.account.hostName()
	if err != nil {
		return nil, err
	}
	c.host = host
	release, err := c.store.Claim(ctx, host)
	if err != nil {
		return nil, withHint(err, "another server is there: end it first, or give this one a directory or a name of its own: --state DIR, --host NAME")
	}
	c.release = release
	sudo := askOnce(func(tier paddock.Tier) (bool, error) { return hasSudo(ctx, d, tier) })
	shelves, err := a.shelves(f.account.warm, sudo)
	if err != nil {
		return nil, err
	}
	for _, s := range shelves {
		has, err := sudo(s.Spec.Tier)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(s.Spec, e2b.Ready(s.Spec.Tier, has)) {
			c.ready = append(c.ready, s.Spec.Tier)
		}
	}
	room := admission.Options{Sandboxes: int(f.account.most), Overcommit: float64(cmp.Or(f.account.overcommit, usualOvercommit)), Key: whose}
	if c.pool, err = warm(ctx, d, shelves, c.store.ID()+"."+host, log); err != nil {
		return nil, err
	}
	if c.pool != nil {
		d, room.Besides, o.from.Pools = c.pool, c.pool.Ready, c.pool.Counts
	}
	full, err := admission.New(ctx, d, room)
	if err != nil {
		return nil, err
	}
	o.from.Load, o.from.Failures = full.Load, c.store.Failures
	d = o.arrive(full)
	leased, err := lease.New(ctx, d, lease.Options{Store: store.LeasesOf[lease.Record](c.store, host), Default: f.account.terms(), Of: tenant.Marked(c.store.ID()), Longest: time.Duration(f.account.longest), Log: log, Ended: o.ended, Wall: a.wall})
	if err != nil {
		return nil, err
	}
	d = leased
	if c.meter, err = usage.New(usage.Options{Driver: d, Store: c.store, Place: host, Keep: days(f.account.keepUsage, usualKeep), Hours: days(f.account.keepHours, usualHours), Log: log}); err != nil {
		return nil, err
	}
	if c.house, err = tenant.New(d, tenant.Options{Store: c.store, Place: host, Meter: c.meter, Now: a.wall}); err != nil {
		return nil, err
	}
	if c.record, err = a.openJournal(f.account.audit, f.account.bucket, log); err != nil {
		return nil, err
	}
	if c.record != nil && c.record.uploader != nil {
		o.from.Uploads = c.record.uploader.Waiting
	}
	found, err := c.house.Adopt(ctx)
	if err != nil {
		return nil, err
	}
	log.Info("sandboxes of before", "kept", len(found.Kept), "removed", len(found.Removed), "lost", len(found.Lost), "not ours", len(found.Left))
	return c, nil
}

// days gives a number of days, or the usual one.
func days(n, usual countFlag) time.Duration {
	return time.Duration(cmp.Or(n, usual)) * 24 * time.Hour
}

// hostName is what this machine is called in the database.
func (f *accountFlags) hostName() (string, error) {
	if f.host != "" {
		return f.host, nil
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "", withHint(fmt.Errorf("this machine has no name: %w: %w", err, paddock.Invalid), "give one: --host NAME")
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
	all := store.Quota{
		Sandboxes: store.Unbounded, CPU: store.Unbounded, Memory: store.Unbounded, PIDs: store.Unbounded,
		Disk: store.Unbounded, Snapshots: store.Unbounded, Rate: store.Unbounded,
	}
	err = c.store.AddTenant(ctx, store.Tenant{ID: developer, Quota: all, Created: time.Now()})
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
	one := server.Caller{Name: who.Tenant, Who: who.Key, Driver: d, Trusted: who.May(key.Admin), ReadOnly: !who.May(key.Write), Usage: c.used(who.Tenant)}
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
	var d paddock.Driver = c.house.Driver(id)
	if c.record != nil {
		var err error
		d, err = actionlog.New(d, actionlog.Options{
			Sink: c.record.lines, Failed: c.record.lines.Failed(),
			Caller: func(ctx context.Context) actionlog.Caller {
				q, _ := server.RequestOf(ctx)
				return actionlog.Caller{Who: q.Caller.Who, Tenant: id, From: q.From, Request: q.ID, Rule: ruleOf(q.Caller.Who)}
			},
		})
		if err != nil {
			return nil, err
		}
	}
	c.drivers[id] = d
	return d, nil
}

// ruleOf is what let somebody in: a key, but for those that the ways to ports name.
func ruleOf(who string) string {
	switch who {
	case "sandbox-token", "traffic-token", "public", "signed URL":
		return who
	}
	return "key"
}

// Close lets go of everything. Sandboxes stay.
func (c *accounts) Close() error {
	var errs []error
	if c.gate != nil {
		c.gate.Close()
	}
	if c.meter != nil {
		errs = append(errs, c.meter.Close())
	}
	if c.house != nil {
		errs = append(errs, c.house.Close())
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
