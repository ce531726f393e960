package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/ingress/certificate"
	"github.com/paddock-sandbox/paddock/internal/metric"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/tracing"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// operateFlags say how a server is watched, and what it bears.
type operateFlags struct {
	config      string
	check       bool
	metrics     string
	metricsOpen bool
	level       levelFlag
	most        cli.CountFlag
	each        cli.CountFlag

	reload *reload // of --config; nil is none
}

func (f *operateFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.config, "config", "", "`file` in YAML with these flags as keys; a flag that is given wins. docs/server/operations.md describes it")
	fs.BoolVar(&f.check, "check", false, "read and check everything that was given, and end")
	fs.StringVar(&f.metrics, "metrics", "", "`address` for metrics of Prometheus, /healthz and /readyz, without a key: HOST:PORT on loopback, or unix:/path")
	fs.BoolVar(&f.metricsOpen, "metrics-open", false, "let --metrics be beyond loopback: whoever can connect sees how much is going on")
	fs.Var(&f.level, "log-level", "write what is of this `level` or above: debug, info, warn or error (default info)")
	fs.Var(&f.most, "max-connections", "have at most this `number` of connections; idle ones make room (default 16384, or half of the descriptors that this process may have)")
	fs.Var(&f.each, "max-connections-per-address", "have at most this `number` of connections from one address beyond loopback (default a quarter of all)")
}

// levelFlag is how much is logged.
type levelFlag struct{ slog.Level }

func (l *levelFlag) String() string {
	if l.Level == slog.LevelInfo {
		return ""
	}
	return strings.ToLower(l.Level.String())
}

func (l *levelFlag) Type() string { return "level" }

func (l *levelFlag) Set(text string) error {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(level.String(), text) {
			l.Level = level
			return nil
		}
	}
	return errors.New("it is debug, info, warn or error")
}

// usualConnections is how many a server has where nobody says.
const usualConnections = 16384

// connections gives the bounds of a listener.
func (f *operateFlags) connections() server.Connections {
	most := int(f.most)
	if most == 0 {
		most = usualConnections
		if n := descriptors(); n > 0 {
			most = min(most, max(16, n/2)) // a sandbox is some descriptors, too
		}
	}
	return server.Connections{Most: most, Each: cmp.Or(int(f.each), max(1, most/4))}
}

// checkMetrics refuses metrics that anybody could read.
func (f *operateFlags) checkMetrics() error {
	if f.metrics == "" {
		if f.metricsOpen {
			return cli.WithHint(fmt.Errorf("--metrics-open without metrics: %w", paddock.Invalid), "add --metrics ADDRESS")
		}
		return nil
	}
	if path, ok := strings.CutPrefix(f.metrics, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return cli.WithHint(fmt.Errorf("--metrics %s: the path is not absolute: %w", f.metrics, paddock.Invalid), "write it from /")
		}
		return nil
	}
	host, _, err := net.SplitHostPort(f.metrics)
	if err != nil {
		return cli.WithHint(fmt.Errorf("--metrics %s: %w: %w", f.metrics, err, paddock.Invalid), "write unix:/path or HOST:PORT, such as 127.0.0.1:9464")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !f.metricsOpen {
		return cli.WithHint(fmt.Errorf("--metrics %s beyond loopback: whoever can connect sees how much is going on, without a key: %w", f.metrics, paddock.Denied),
			"listen on loopback, or a socket; or, where only those who may can connect: --metrics-open")
	}
	return nil
}

// An operation is what watches a server while it runs. A nil one watches nothing.
type operation struct {
	set   *metric.Set     // nil where there are no metrics
	trace *tracing.Tracer // nil where there are no traces
	level *slog.LevelVar
	log   *slog.Logger
	from  metric.Sources

	images *library // nil is a server without images

	limit    *server.Limit      // of the API's listener
	files    *certificate.Files // its certificate; nil is none in files
	reload   *reload            // nil where there is no file of --config
	stop     context.CancelFunc
	listener net.Listener // of metrics; nil is none
	web      *http.Server
	wg       sync.WaitGroup
}

// operate begins to watch, as the flags and the environment say.
func operate(ctx context.Context, a *cli.App, f *serveFlags) (*operation, error) {
	o := &operation{level: new(slog.LevelVar), reload: f.operate.reload, stop: func() {}}
	o.level.Set(f.operate.level.Level)
	o.log = slog.New(slog.NewJSONHandler(logTo(a, f.private), &slog.HandlerOptions{Level: o.level}))
	v := cli.Build()
	var err error
	failed := func(err error) { o.log.Warn("traces", "error", err.Error()) }
	if o.trace, err = tracing.Open(ctx, a.Lookup, v.Version, failed); err != nil {
		return nil, err
	}
	if f.operate.metrics == "" {
		return o, nil
	}
	o.set = metric.New(metric.Build{Version: v.Version, Revision: v.Revision, Go: v.Go})
	if path, ok := strings.CutPrefix(f.operate.metrics, "unix:"); ok {
		o.listener, err = cli.ListenUnix(filepath.Clean(path))
	} else if o.listener, err = net.Listen("tcp", f.operate.metrics); err != nil {
		err = wordListen("metrics", f.operate.metrics, err)
	}
	if err != nil {
		return nil, errors.Join(err, o.trace.Close(ctx))
	}
	return o, nil
}

// ended counts what a lifetime ended.
func (o *operation) ended(why lifetime.Why) {
	if o.set != nil {
		o.set.Ended(string(why))
	}
}

// around lets requests be seen.
func (o *operation) around(s *service) http.Handler {
	h := o.trace.Around(s.route, s.known, api.RequestHeader, s)
	if o.set != nil {
		h = o.set.Around(s.route, h)
	}
	return h
}

// route is the pattern of a request, or what else a service answers.
func (s *service) route(r *http.Request) string {
	switch r.URL.Path {
	case "/healthz", "/readyz":
		return r.URL.Path
	}
	return s.api.Route(r)
}

// bound puts a bound on the API's listener, below TLS if there is any.
func (o *operation) bound(l net.Listener, plain bool, c server.Connections) net.Listener {
	o.limit = server.NewLimit(l, plain, c)
	return o.limit
}

// begin answers metrics, of a service too, and reads again what changes, until close.
func (o *operation) begin(a *cli.App, s *service) {
	var ctx context.Context
	ctx, o.stop = context.WithCancel(context.Background())
	if o.reload != nil {
		o.wg.Go(func() { o.follow(ctx, a) })
	}
	if o.set == nil {
		return
	}
	from := o.from
	from.List = s.driver.List
	from.Held = func() []metric.Held {
		var all []metric.Held
		for _, h := range s.api.Held() {
			all = append(all, metric.Held(h))
		}
		return all
	}
	if o.limit != nil {
		from.Connections = func() metric.Connections {
			c := o.limit.Crowd()
			return metric.Connections{Open: c.Open, Max: c.Most, Full: c.Full, Crowded: c.Crowded, Closed: c.Evicted}
		}
	}
	o.set.Watch(from)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.set.Handler())
	mux.Handle("GET /healthz", s)
	mux.Handle("GET /readyz", s)
	few := server.NewLimit(o.listener, true, server.Connections{Most: 64})
	o.web = &http.Server{
		Handler: forPrograms(mux, o.listener.Addr()), ConnState: few.State, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug),
	}
	o.log.Info("metrics", "address", o.listener.Addr().String())
	o.wg.Go(func() {
		if err := o.web.Serve(few); !errors.Is(err, http.ErrServerClosed) {
			o.log.Error("metrics", "error", err.Error())
		}
	})
}

// forPrograms refuses, on loopback, requests to a host that is a name: a page of the web
// may have it lead here.
func forPrograms(h http.Handler, at net.Addr) http.Handler {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if net.ParseIP(host) == nil && !strings.EqualFold(host, "localhost") {
			http.Error(w, "ask by the address, or as localhost", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// close ends what begin and operate began: the last traces are sent.
func (o *operation) close() error {
	var errs []error
	o.stop()
	if o.web != nil {
		errs = append(errs, o.web.Close())
	}
	if o.listener != nil {
		if err := o.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	o.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), cli.Patience)
	defer cancel()
	if err := o.trace.Close(ctx); err != nil {
		o.log.Warn("traces", "error", err.Error()) // no reason to end otherwise than well
	}
	return errors.Join(errs...)
}
