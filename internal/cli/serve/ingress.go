package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/ingress/access"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server"
)

// ingressFlags say where ports of sandboxes are found from outside.
type ingressFlags struct {
	domain string
}

func (f *ingressFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.domain, "domain", "", "answer at PORT-ID.`DOMAIN[:PORT]` for ports inside sandboxes; with https:// before it where something else encrypts")
}

// check refuses what is no domain.
func (f *ingressFlags) check() error {
	if f.domain == "" {
		return nil
	}
	scheme, name, given := strings.Cut(f.domain, "://")
	if !given {
		name = scheme
	} else if scheme != "https" {
		return cli.WithHint(fmt.Errorf("--domain %s: https:// alone can stand before it: %w", f.domain, paddock.Invalid), "write DOMAIN, DOMAIN:PORT or https://DOMAIN")
	}
	bare, _, _ := strings.Cut(name, ":")
	if _, ok := ingress.Host("a", 80, name); !ok || bare != strings.ToLower(bare) || strings.ContainsAny(bare, "/_*@ ") || net.ParseIP(bare) != nil {
		return cli.WithHint(fmt.Errorf("--domain %s: no names can stand below it: %w", f.domain, paddock.Invalid), "write a name such as box.example.com, to which *.box.example.com leads as well")
	}
	return nil
}

// bareDomain is the name alone.
func (f *ingressFlags) bareDomain() string {
	_, name, given := strings.Cut(f.domain, "://")
	if !given {
		name = f.domain
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// base is how a browser reaches the domain of a server that listens at an address. Where no
// port is given it is the one that the server listens at, unless something stands before it.
func (f *ingressFlags) base(address string) string {
	if f.domain == "" {
		return ""
	}
	if strings.Contains(f.domain, "://") {
		return f.domain
	}
	scheme, place, _ := strings.Cut(address, "://")
	if strings.Contains(f.domain, ":") {
		return scheme + "://" + f.domain
	}
	_, port, err := net.SplitHostPort(place)
	if err != nil || port == map[string]string{"http": "80", "https": "443"}[scheme] {
		return scheme + "://" + f.domain
	}
	return scheme + "://" + f.domain + ":" + port
}

// openAccess lets requests for ports in: those of the keys that the API knows, and whom owners say.
func (c *accounts) openAccess(ctx context.Context, base string) error {
	secret, err := c.store.Secret(ctx, "ports")
	if err != nil {
		return err
	}
	c.access, err = access.New(access.Options{
		Store: c.store, Key: secret, Base: base, Log: c.log,
		Caller: func(r *http.Request) (access.Caller, error) {
			who, err := c.caller(r)
			return access.Caller{Tenant: who.Name, Who: who.Who, ReadOnly: who.ReadOnly}, err
		},
		Live: c.live,
		Dial: c.dialPort,
	})
	return err
}

// live tells whether a tenant's key may still write. That of the command line may while it is given.
func (c *accounts) live(ctx context.Context, tenant, id string) (bool, error) {
	if c.static.Live(tenant, id, key.Write) {
		return true, nil
	}
	return c.ring.Live(ctx, tenant, id, key.Write)
}

// dialPort connects to a port of a tenant's sandbox, as the tenant would.
func (c *accounts) dialPort(ctx context.Context, v access.Visit, id paddock.ID, port int) (net.Conn, error) {
	d, err := c.driver(v.Tenant)
	if err != nil {
		return nil, err
	}
	ctx = server.MarkRequest(ctx, server.Request{ID: v.Request, From: v.From, Caller: server.Caller{Name: v.Tenant, Who: v.Who, Driver: d}})
	sb, err := d.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return sb.Dial(ctx, port)
}

// quietLibraries sends what libraries write by package log where nobody looks: of an answer that has more bytes
// than it says it is what a sandbox chose.
func quietLibraries(log *slog.Logger) {
	slog.SetLogLoggerLevel(slog.LevelDebug)
	slog.SetDefault(log)
}

// names are what a certificate of the server's own is for: this machine, where it listens,
// the domain, and the hosts below it.
func (f *serveFlags) names(hostname string) []string {
	list := []string{"localhost", "127.0.0.1", "::1"}
	host, _, _ := net.SplitHostPort(f.listen) // it was checked
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = hostname
	}
	domain := f.way.bareDomain()
	for _, name := range []string{strings.ToLower(host), domain} {
		if name != "" && name != "localhost" && name != "127.0.0.1" && name != "::1" {
			list = append(list, name)
		}
	}
	if domain != "" {
		list = append(list, "*."+domain)
	}
	return list
}

// checkEncryption refuses what does not go together.
func (f *serveFlags) checkEncryption() error {
	var given []string
	for _, way := range []struct {
		name string
		set  bool
	}{{"tls-cert", f.cert != ""}, {"tls-self", f.tls.self}, {"acme", f.tls.acme != ""}} {
		if way.set {
			given = append(given, "--"+way.name)
		}
	}
	socket := strings.HasPrefix(f.listen, "unix:")
	switch {
	case (f.cert == "") != (f.certKey == ""):
		return cli.WithHint(fmt.Errorf("--tls-cert and --tls-key belong together: %w", paddock.Invalid), "give both, or neither")
	case len(given) > 1:
		return cli.WithHint(fmt.Errorf("%s are two ways to a certificate: %w", strings.Join(given, " and "), paddock.Invalid), "leave one out")
	case socket && len(given) > 0:
		return cli.WithHint(fmt.Errorf("a socket of this machine is not encrypted: %w", paddock.Invalid), "leave %s out", given[0])
	case socket && f.way.domain != "":
		return cli.WithHint(fmt.Errorf("--domain is of a server with tenants, and nobody else reaches a socket: %w", paddock.Invalid), "leave it out, or listen at HOST:PORT; a port of a sandbox is joined to this machine by paddock forward")
	case f.tls.acme == "" && cmp.Or(f.tls.email, f.tls.directory) != "":
		return cli.WithHint(fmt.Errorf("--acme-email and --acme-directory are for --acme: %w", paddock.Invalid), "give --acme DOMAIN")
	case f.tls.acme != "" && f.way.domain != "" && f.way.bareDomain() != f.tls.acme:
		return cli.WithHint(fmt.Errorf("--acme %s is not the domain %s: %w", f.tls.acme, f.way.bareDomain(), paddock.Invalid), "leave --domain out, or name the same")
	}
	return f.way.check()
}

// encrypted tells whether the server does so itself.
func (f *serveFlags) encrypted() bool { return f.cert != "" || f.tls.self || f.tls.acme != "" }
