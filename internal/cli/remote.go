package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// A Site is the address of a server, and the key for it.
type Site struct {
	Address string `json:"address"`       // unix:/path, http://host:port or https://host[:port]
	Key     string `json:"key,omitempty"` // empty where the connection itself says who calls
}

// local tells whether the server sees this machine's files.
func (p Site) local() bool {
	if strings.HasPrefix(p.Address, "unix:") {
		return true
	}
	u, err := url.Parse(p.Address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// trusts tells whether the server lets this caller accept a weaker control. A server on a socket
// does: whoever can connect is its one caller. One with keys knows the right of each key by itself.
func (p Site) trusts() bool { return strings.HasPrefix(p.Address, "unix:") }

// RemoteFlags are the flags that name the server of a command.
type RemoteFlags struct {
	Server string
}

func (f *RemoteFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.Server, "server", "", "`address` of the server: unix:/path, https://host[:port] or http://host:port (default: PADDOCK_SERVER, or that of paddock login, or one of your own that is started for you)")
}

// RegisterFor is for a command that works here unless the flag names a server.
func (f *RemoteFlags) RegisterFor(fs *pflag.FlagSet, what string) {
	fs.StringVar(&f.Server, "server", "", "ask the server at this `address`, rather than this machine: "+what)
}

// A Remote is the driver of a connected server.
type Remote struct {
	paddock.Driver
	At Site
}

// Open opens a sandbox by its ID. The error of a missing sandbox has a hint.
func (r *Remote) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := r.Driver.Open(ctx, id)
	if errors.Is(err, paddock.NotFound) {
		return nil, WithHint(fmt.Errorf("%s: %w", missing(id, err), paddock.NotFound), "paddock ls lists those that are there")
	}
	return sb, err
}

// missing says that a sandbox is not there: in the server's words, where they tell what
// became of it.
func missing(id paddock.ID, err error) string {
	var left []string
	for _, part := range strings.Split(err.Error(), ": ") {
		switch part {
		case "open sandbox " + string(id), fmt.Sprintf("open sandbox %q", string(id)), "sandbox " + string(id), "status", paddock.NotFound.Error():
		default:
			left = append(left, part)
		}
	}
	if len(left) == 0 {
		return "there is no sandbox " + string(id)
	}
	return strings.Join(left, ": ")
}

// Otherwise adds a hint to an error of a server or tier that does not support the operation. It
// returns any other error unchanged.
func Otherwise(err error, hint string) error {
	var missing *paddock.MissingError
	if errors.Is(err, paddock.Unsupported) && !errors.As(err, &missing) {
		return WithHint(err, "%s", hint)
	}
	return err
}

// connect finds the server, and starts the caller's own where none is named.
func (a *App) connect(ctx context.Context, f *RemoteFlags) (*Remote, error) {
	p, named, err := a.site(f)
	if err != nil {
		return nil, err
	}
	var d paddock.Driver
	const tries = 3 // the caller's own server may be about to end when it answers, as after a logout
	for i := range tries {
		if !named {
			stop := a.progress("starting a server of your own")
			p.Address, err = a.Private(ctx)
			stop()
			if err != nil {
				return nil, err
			}
		}
		d, err = a.Dial(ctx, p)
		if err == nil || named || i == tries-1 || !errors.Is(err, paddock.Unavailable) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", p.Address, err)
	}
	return &Remote{Driver: d, At: p}, nil
}

// site gives the server that was named: by the flag, the environment or
// paddock login, in this order. A key of the environment wins over the one that
// was stored, which goes to its own server alone.
func (a *App) site(f *RemoteFlags) (p Site, named bool, err error) {
	p.Address = f.Server
	if p.Address == "" {
		p.Address, _ = a.Lookup("PADDOCK_SERVER")
	}
	stored, err := a.stored()
	if err != nil {
		return Site{}, false, err
	}
	if p.Address == "" {
		p.Address = stored.Address
	}
	if p.Address == "" {
		return Site{}, false, nil
	}
	if p.Address, err = parseAddress(p.Address); err != nil {
		return Site{}, false, err
	}
	if p.Address == stored.Address {
		p.Key = stored.Key
	}
	if key, ok := a.Lookup("PADDOCK_KEY"); ok && key != "" {
		p.Key = key
	}
	return p, true, nil
}

// parseAddress checks the address of a server, and writes it in one way.
func parseAddress(text string) (string, error) {
	bad := func(why string) (string, error) {
		return "", WithHint(fmt.Errorf("server %s: %s: %w", text, why, paddock.Invalid), "write unix:/path, https://host[:port] or http://host:port")
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !filepath.IsAbs(path) {
			return bad("the path of a socket must be absolute")
		}
		return "unix:" + filepath.Clean(path), nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad("it is no address")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return bad("it is none of the addresses that servers have")
	case u.User != nil:
		return "", WithHint(fmt.Errorf("an address holds no password or key: %w", paddock.Invalid), "give the key to paddock login, or set PADDOCK_KEY")
	case u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/":
		return bad("there is more in it than scheme, host and port")
	}
	return u.Scheme + "://" + u.Host, nil
}

// The file of paddock login, in the caller's directory for configuration.
const siteFile = "server.json"

// MaxSiteFile is the maximum size of the file that paddock login writes, in bytes.
const MaxSiteFile = 64 << 10

// configDir is where what the caller set up is kept.
func configDir(lookup func(string) (string, bool)) (string, error) {
	if dir, _ := lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock"), nil
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "paddock"), nil
	}
	return "", WithHint(fmt.Errorf("there is no directory for configuration: %w", paddock.Unsupported), "set HOME or XDG_CONFIG_HOME, or PADDOCK_SERVER and PADDOCK_KEY")
}

// stored reads what paddock login kept; a zero site where there is nothing.
func (a *App) stored() (Site, error) {
	dir, err := configDir(a.Lookup)
	if err != nil {
		return Site{}, nil // without a directory nothing was stored there
	}
	name := filepath.Join(dir, siteFile)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Site{}, nil
	}
	if err != nil {
		return Site{}, fmt.Errorf("login: %w: %w", err, paddock.Denied)
	}
	defer f.Close()
	var p Site
	if err := json.NewDecoder(io.LimitReader(f, MaxSiteFile)).Decode(&p); err != nil {
		return Site{}, WithHint(fmt.Errorf("login: %s: %w: %w", name, jsonbody.Explain(err), paddock.Invalid), "write it anew: paddock login URL")
	}
	return p, nil
}

func (a *App) loginCommand() *cobra.Command {
	var fromInput bool
	c := &cobra.Command{
		Use:   "login URL [flags]",
		Short: "Use a server from now on",
		Long: `Store the address of a server and the key for it, for all commands that work on a
server. They are kept in your directory for configuration, readable by you
alone. --server and PADDOCK_SERVER win over what is stored, and PADDOCK_KEY over
its key.

The key comes from PADDOCK_KEY, from the terminal, or with --key-stdin from
standard input. It is tried before it is stored.

Exit status: 0, or 125 if the server does not answer, or not to this key.`,
		Example: `  paddock login https://paddock.example.com
  paddock login https://paddock.example.com --key-stdin < key`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.login(c.Context(), args[0], fromInput) },
	}
	c.Flags().BoolVar(&fromInput, "key-stdin", false, "read the key from standard input")
	return c
}

func (a *App) login(ctx context.Context, address string, fromInput bool) error {
	address, err := parseAddress(address)
	if err != nil {
		return err
	}
	p := Site{Address: address}
	if p.Key, err = a.readKey(fromInput); err != nil {
		return err
	}
	d, err := a.Dial(ctx, p)
	if err != nil {
		return fmt.Errorf("server %s: %w", address, err)
	}
	defer d.Close() //nolint:errcheck // a connection that was used to the end
	if _, err := d.List(ctx); err != nil {
		hint := "nothing was stored; is the address right, and the key?"
		if p.Key == "" && errors.Is(err, paddock.Denied) {
			hint = "nothing was stored; give the key by PADDOCK_KEY, at the terminal, or with --key-stdin from standard input"
		}
		return WithHint(fmt.Errorf("server %s: %w", address, err), "%s", hint)
	}
	dir, err := configDir(a.Lookup)
	if err != nil {
		return err
	}
	return keepSite(dir, p)
}

// readKey gets a key from where keys may come from: a command line is not among
// them, because everybody on the machine can read it.
func (a *App) readKey(fromInput bool) (string, error) {
	if !fromInput {
		if key, _ := a.Lookup("PADDOCK_KEY"); key != "" {
			return key, nil
		}
		if !isTerminal(a.Stdin) {
			return "", nil // a socket of this machine needs none; any other server says so
		}
		fmt.Fprint(a.Stderr, "key (it is not shown): ")
		key, err := readHidden(a.Stdin)
		fmt.Fprintln(a.Stderr)
		return CheckKey(key, err)
	}
	data, err := io.ReadAll(io.LimitReader(a.Stdin, MaxSiteFile))
	return CheckKey(string(data), err)
}

// CheckKey returns the key without surrounding white space. It returns an error if err is not nil,
// or if the key has characters that no key has.
func CheckKey(key string, err error) (string, error) {
	key = strings.TrimSpace(key)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the key: %w", err)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", WithHint(fmt.Errorf("a key is printable ASCII without blanks: %w", paddock.Invalid), "was something else on standard input?")
	}
	return key, nil
}

// keepSite keeps a site for its owner alone: the old file stays until the new one
// is whole.
func keepSite(dir string, p Site) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("login: %w: %w", err, paddock.Denied)
	}
	f, err := os.CreateTemp(dir, siteFile+".") // of mode 0600
	if err != nil {
		return fmt.Errorf("login: %w: %w", err, paddock.Denied)
	}
	err = json.NewEncoder(f).Encode(p)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, siteFile))
	}
	if err != nil {
		return fmt.Errorf("login: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

func (a *App) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget the server of paddock login, and its key",
		Long: `Forget the server of paddock login, and its key. From then on commands use
PADDOCK_SERVER, or a server of your own. Its sandboxes stay.

Exit status: 0, also if nothing was stored, or 125 if it cannot be removed.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := configDir(a.Lookup)
			if err != nil {
				return err
			}
			if err := os.Remove(filepath.Join(dir, siteFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("logout: %w: %w", err, paddock.Denied)
			}
			return nil
		},
	}
}
