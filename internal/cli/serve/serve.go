package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/private"
)

// serveFlags say how a server is reached, and by whom.
type serveFlags struct {
	listen  string
	store   storeFlags
	account accountFlags
	operate operateFlags
	key     string
	keyFile string
	cert    string
	certKey string
	tls     tlsFlags
	way     ingressFlags
	plain   bool
	trusted bool
	tiers   []string
	base    string
	images  imageFlags
	disk    cli.SizeFlag
	private bool
	idle    cli.TimeFlag
}

func serveCommand(a *cli.App) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Make sandboxes for others, over the network or a socket",
		Long: `Make sandboxes of all tiers that this machine has, for callers of an API: paddock
create and the commands beside it, or package client. Sandboxes stay when the
server ends, however it ends, but for those of the tier sim; the next one on the same
--state finds them. Its log goes to standard error. When it can be called, its
address is written to standard output.

A Unix socket is there for the user alone who runs the server, without a key and
without tenants; lifetimes, usage and --audit are as on the network. At any other
address callers show a key: one of a tenant (paddock tenant, paddock key), or for
development the one of --key, --key-file or PADDOCK_KEY, which is that of the tenant
"default", without a quota. A tenant sees its own sandboxes and nobody else's. Beyond
loopback the connection is encrypted (--tls-cert, --acme or --tls-self), unless that is
given up by name (--plain-http). With --trusted, or a key of the scope admin, what the
server's user has can be shown to a sandbox.

SIGTERM and SIGINT end it: it takes no more calls, and gives those under way ten
seconds. Commands go on. /healthz answers while it lives, /readyz while it takes
calls. With --config, SIGHUP or a change of the file has it read again: bounds of
connections and the level of the log change at once, and the log tells what waits for
a restart. Traces go where OTEL_EXPORTER_OTLP_ENDPOINT says. docs/server/operations.md has
the rest.

Exit status: 0 when a signal ended it, 125 if it cannot listen or Paddock itself
failed.`,
		Example: `  paddock serve --listen unix:/run/user/1000/paddock.sock
  PADDOCK_KEY=secret paddock serve --listen 127.0.0.1:7463
  paddock serve --listen :7463 --key-file key --tls-cert cert.pem --tls-key key.pem
  paddock serve --config /etc/paddock/serve.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return serveAs(a, c, f) },
	}
	c.AddCommand(readyCommand())
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.listen, "listen", "127.0.0.1:7463", "`address` to listen at: unix:/path, or HOST:PORT; port 0 is a free one")
	f.store.register(fs)
	fs.StringVar(&f.key, "key", "", "`key` that callers show: for development, since everybody on the machine can read it here (default: PADDOCK_KEY)")
	fs.StringVar(&f.keyFile, "key-file", "", "`file` that holds the key")
	fs.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate, and those that lead to its authority, in PEM")
	fs.StringVar(&f.certKey, "tls-key", "", "`file` with the certificate's key, in PEM")
	f.tls.register(fs)
	fs.BoolVar(&f.plain, "plain-http", false, "listen beyond loopback without encryption: whoever sees the traffic has the key")
	fs.BoolVar(&f.trusted, "trusted", false, "let who has the key name what is this machine's: its files, its network, and controls to do without")
	fs.StringVar(&f.base, "e2b-base", "", "have the template base of E2B's clients begin with this `image` of a registry, which is asked for it, without credentials, when the server starts (default: this machine's system)")
	f.images.register(fs)
	fs.Var(&f.disk, "e2b-disk", "give a sandbox of E2B's clients a disk of this `size`, unless its template or its request asks for another (default: the tier's, 1G)")
	fs.StringSliceVar(&f.tiers, "tiers", nil, "make sandboxes of these `tiers` only, with commas: gvisor,microvm where tenants distrust each other (default all)")
	f.way.register(fs)
	f.account.register(fs)
	f.operate.register(fs)
	fs.BoolVar(&f.private, "private", false, "be the caller's own server")
	fs.Var(&f.idle, "idle", "end after this `time` without a sandbox and without a call")
	for _, name := range []string{"private", "idle"} {
		if err := fs.MarkHidden(name); err != nil {
			panic(err) // the flag is above
		}
	}
	return c
}

// idleTime is how long a caller's own server stays without a use.
const idleTime = 5 * time.Minute

// spareKeepers is how many keepers of a tier that is in use a server has ready.
const spareKeepers = 2

// drainTime is what calls under way get when the server ends, and cutTime what they get to end when they were
// cut. A service manager waits for both, and for the drivers.
const (
	drainTime = 10 * time.Second
	cutTime   = 10 * time.Second
)

// sharedKey gives the key of the flags, the file or the environment; none is empty.
func (f *serveFlags) sharedKey(lookup func(string) (string, bool)) (string, error) {
	key, err := f.key, error(nil)
	switch {
	case f.key != "" && f.keyFile != "":
		return "", cli.WithHint(fmt.Errorf("--key and --key-file are two keys: %w", paddock.Invalid), "leave one out")
	case f.keyFile != "":
		var data []byte
		if data, err = readSecretFile(f.keyFile); err != nil {
			return "", fmt.Errorf("--key-file: %w: %w", err, paddock.Denied)
		}
		key = string(data)
	case f.key == "":
		key, _ = lookup("PADDOCK_KEY")
	}
	key, err = cli.CheckKey(key, nil)
	switch {
	case err != nil:
		return "", err
	case key == "" && f.keyFile != "":
		return "", cli.WithHint(fmt.Errorf("--key-file %s: it is empty: %w", f.keyFile, paddock.Invalid), "write a key into it, such as: openssl rand -hex 32")
	}
	return key, nil
}

// readSmall reads a file that holds a line or a few.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, cli.MaxSiteFile))
}

// check refuses what would leave the server open.
func (f *serveFlags) check() error {
	if err := f.operate.checkMetrics(); err != nil {
		return err
	}
	if err := f.checkEncryption(); err != nil {
		return err
	}
	if strings.HasPrefix(f.listen, "unix:") {
		if f.key != "" || f.keyFile != "" {
			return cli.WithHint(fmt.Errorf("a socket of this machine asks for no key: its own user alone can connect: %w", paddock.Invalid), "leave --key and --key-file out, or listen at HOST:PORT")
		}
		name := f.account.shared()
		switch {
		case name != "":
		case f.store.database != "":
			name = "database"
		case f.trusted:
			name = "trusted"
		case len(f.images.shared) > 0:
			name = "image-shared"
		case f.plain:
			name = "plain-http"
		}
		if name != "" {
			return cli.WithHint(fmt.Errorf("--%s is of a server with tenants, and a socket's one caller is its own user: %w", name, paddock.Invalid), "leave it out, or listen at HOST:PORT")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return cli.WithHint(fmt.Errorf("--listen %s: %w: %w", f.listen, err, paddock.Invalid), "write unix:/path or HOST:PORT, such as 127.0.0.1:7463")
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	if !loopback && !f.encrypted() && !f.plain {
		return cli.WithHint(fmt.Errorf("--listen %s beyond loopback without encryption: whoever sees the traffic has the key: %w", f.listen, paddock.Denied),
			"give a certificate: --tls-cert FILE --tls-key FILE, --acme DOMAIN or --tls-self; or, where something else encrypts: --plain-http")
	}
	return nil
}

// A listening is where a server can be called.
type listening struct {
	net.Listener
	address string // as clients write it
	release func() // what is to be given up when the server has ended
}

// open listens.
func (f *serveFlags) open(ctx context.Context, a *cli.App, o *operation, allow func(context.Context, string) error) (listening, error) {
	nothing := func() {}
	if f.private {
		l, release, err := cli.ListenPrivate(ctx, a.Lookup)
		if err != nil {
			return listening{}, err
		}
		return listening{o.bound(l, true, f.operate.connections()), "unix:" + l.Addr().String(), release}, nil
	}
	if path, ok := strings.CutPrefix(f.listen, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return listening{}, cli.WithHint(fmt.Errorf("--listen %s: the path is not absolute: %w", f.listen, paddock.Invalid), "write it from /")
		}
		l, err := cli.ListenUnix(filepath.Clean(path))
		if err != nil {
			return listening{}, err
		}
		return listening{o.bound(l, true, f.operate.connections()), "unix:" + filepath.Clean(path), nothing}, nil
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return listening{}, wordListen("listen", f.listen, err)
	}
	l = o.bound(l, !f.encrypted(), f.operate.connections())
	config, err := secure(a, f, o, allow)
	if err != nil {
		l.Close()
		return listening{}, err
	}
	if config == nil {
		return listening{l, "http://" + l.Addr().String(), nothing}, nil
	}
	return listening{tls.NewListener(l, config), "https://" + l.Addr().String(), nothing}, nil
}

// wordListen says why the address of a flag cannot be listened at, and what to do about it.
func wordListen(flag, address string, err error) error {
	var cause *net.OpError
	if errors.As(err, &cause) {
		err = cause.Err // without the address, which the message has
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return cli.WithHint(fmt.Errorf("--%s %s: another program listens there: %w", flag, address, paddock.Conflict), "end it, or name another address: --%s HOST:PORT", flag)
	case errors.Is(err, fs.ErrPermission):
		return cli.WithHint(fmt.Errorf("--%s %s: %w: %w", flag, address, err, paddock.Denied), "this user may not listen there; ports from 1024 on are for everybody")
	}
	return cli.WithHint(fmt.Errorf("--%s %s: %w: %w", flag, address, err, paddock.Invalid), "HOST is a name or an address of this machine, PORT a number up to 65535; 0 takes a free port")
}

// gear is what a server's tiers are made with. Without a directory of its own, what
// a socket serves is what its user keeps in any way. Sandboxes of tenants are not:
// paddock rm --all is not to end them, nor is a server of the user's own to stay for
// them.
func (f *serveFlags) gear(a *cli.App) (g cli.Gear, err error) {
	g.Spares = spareKeepers
	if g.Steps, err = f.steps(a); err != nil {
		return g, err
	}
	if g.Private, err = f.kept(a); err != nil {
		return g, err
	}
	if g.State, err = stateDir(a, f.store.state); err != nil || g.State != "" || strings.HasPrefix(f.listen, "unix:") {
		return g, err
	}
	dir, err := f.store.dir(a)
	g.Live = filepath.Join(dir, "live")
	return g, err
}

// steps is the directory of the journal of steps. A server of the user's own has that of the user's other sandboxes, so
// that paddock steps and paddock undo know them without the server. Tenants' steps are the server's.
func (f *serveFlags) steps(a *cli.App) (string, error) {
	if strings.HasPrefix(f.listen, "unix:") || f.private {
		return a.Steps(), nil
	}
	dir, err := f.store.dir(a)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "steps"), nil
}

// kept lists the server's private files: state, database, record, keys and configuration.
func (f *serveFlags) kept(a *cli.App) (p private.Files, err error) {
	dir, err := f.store.dir(a)
	if err != nil {
		return p, err
	}
	here, err := a.Dir()
	if err != nil {
		return p, err
	}
	p.Paths, p.Shown = []string{dir}, []string{filepath.Join(dir, imagesDir)}
	if data, err := a.Data(); err == nil { // with the key that signs the record; a service may have no home
		p.Paths = append(p.Paths, data)
	}
	if f.account.audit != "" {
		p.Paths = append(p.Paths, cli.Absolute(f.account.audit, here))
	}
	for _, name := range []string{f.keyFile, f.certKey, f.operate.config} {
		if name == "" {
			continue
		}
		name = cli.Absolute(name, here)
		p.Paths = append(p.Paths, private.Place(name), private.Place(private.RealPath(name)))
	}
	place, err := f.store.place(a)
	if err != nil {
		return p, err
	}
	if !strings.Contains(place, "://") {
		real := private.RealPath(place) // the others are beside it
		p.Paths = append(p.Paths, real, real+"-wal", real+"-shm")
	}
	return p, nil
}

func serve(ctx context.Context, a *cli.App, f *serveFlags) (err error) {
	if f.tls.acme != "" && f.way.domain == "" {
		f.way.domain = f.tls.acme
	}
	if f.private {
		f.listen = "unix:"
		if f.idle == 0 {
			f.idle = cli.TimeFlag(idleTime)
		}
	}
	key, err := f.sharedKey(a.Lookup)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	o, err := operate(ctx, a, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	ctx, stop := a.Interruptible(ctx, f.operate.hangups()...)
	defer stop()
	if o.images, err = openImages(ctx, a, f, o.log); err != nil {
		return cli.Because(ctx, err)
	}
	var c *accounts
	l, err := f.open(ctx, a, o, func(ctx context.Context, host string) error { return c.access.Certifiable(ctx, host) }) // asked from Serve on
	if err != nil {
		return cli.Because(ctx, err)
	}
	defer l.release()
	g, err := f.gear(a)
	if err != nil {
		l.Close()
		return err
	}
	if o.images != nil {
		g.Images = o.images
	}
	d, err := openTiers(a, g, f.tiers, o)
	if err != nil {
		l.Close()
		return err
	}
	log := o.log
	own := strings.HasPrefix(l.address, "unix:")
	if own {
		c, err = openOwner(ctx, a, d, f, l.address, o) // d is its own from here on
	} else if c, err = openAccounts(ctx, a, d, f, key, o); err == nil {
		if err = c.openAccess(ctx, f.way.base(l.address)); err != nil {
			err = errors.Join(err, c.Close())
		}
	}
	if err != nil {
		l.Close()
		return cli.Because(ctx, err)
	}
	caller := c.ownerCaller
	if !own {
		quietLibraries(log)
		caller = c.caller
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := newService(d, caller, log, c.access)
	if err != nil {
		l.Close()
		return err
	}
	tell := s.api.Asked
	c.asked.Store(&tell)
	if !own {
		h, err := openE2B(ctx, a, c, f, l.address, log, s.api)
		if err != nil {
			l.Close()
			return errors.Join(cli.Because(ctx, err), s.cut())
		}
		s.speak("e2b", h)
		d, err := openDaytona(ctx, a, c, f, log, s.api)
		if err != nil {
			l.Close()
			return errors.Join(cli.Because(ctx, err), s.cut())
		}
		s.speak("daytona", d)
		if err := s.offer(l.address, f.way.base(l.address)); err != nil {
			l.Close()
			return errors.Join(err, s.cut())
		}
	}
	return serveOn(ctx, a, l, s, o, time.Duration(f.idle))
}

// logTo gives where the log goes: a caller's own server keeps its file small.
func logTo(a *cli.App, private bool) io.Writer {
	if file, ok := a.Stderr.(*os.File); ok && private {
		return cli.SmallLog{File: file}
	}
	return a.Stderr
}

// stateDir gives the absolute directory of --state, or of PADDOCK_STATE.
func stateDir(a *cli.App, text string) (string, error) {
	if text == "" {
		if text, _ = a.Lookup("PADDOCK_STATE"); text == "" {
			return "", nil
		}
	}
	dir, err := a.Dir()
	if err != nil && !filepath.IsAbs(text) {
		return "", err
	}
	text = cli.Absolute(text, dir)
	if err := os.MkdirAll(text, 0o700); err != nil {
		return "", fmt.Errorf("--state: %w: %w", err, paddock.Denied)
	}
	if info, err := os.Lstat(text); err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return "", cli.WithHint(fmt.Errorf("--state %s: it is no directory that only you can write: %w", text, paddock.Denied), "make one: mkdir -m 700 DIR")
	}
	return text, nil
}

// serveOn serves until ctx ends or nobody uses the server any more, and lets the
// calls end that are under way.
func serveOn(ctx context.Context, a *cli.App, l listening, s *service, o *operation, idle time.Duration) error {
	h := s.api.HTTP()
	h.Handler, h.ConnState = o.around(s), o.limit.State
	o.begin(a, s)
	var wg sync.WaitGroup
	defer wg.Wait()
	over, cancel := context.WithCancel(ctx)
	defer cancel()
	if idle > 0 {
		wg.Go(func() {
			if s.leave(over, idle) {
				cancel()
			}
		})
	}
	ended := make(chan error, 1)
	wg.Go(func() { ended <- h.Serve(l) })
	s.log.Info("listening", "address", l.address, "pid", os.Getpid())
	if err := a.Say("%s\n", l.address); err != nil {
		return errors.Join(err, s.cut(), h.Close())
	}
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve: %w", err), s.cut())
	case <-over.Done():
	}
	s.log.Info("ending", "why", reason(ctx))
	if idle > 0 {
		l.Close() // who calls from now on starts another one
	}
	err := s.end(context.WithoutCancel(ctx))
	_ = h.Close() // of a listener that may be closed already; no call is left
	return err
}

// reason says in words why a server ends.
func reason(ctx context.Context) string {
	var cut cli.Interrupted
	if errors.As(context.Cause(ctx), &cut) {
		return cut.Signal.String()
	}
	if ctx.Err() != nil {
		return ctx.Err().Error()
	}
	return "idle"
}
