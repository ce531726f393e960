// Package agentlogin keeps the tokens of an agent's login on the host. The box gets a file of the same shape with
// placeholders. The owner of the box answers the gateway about each request to a host of the login: it names the access
// token for the header of the requests that the profile lists, and it answers the endpoint of the refresh token itself,
// so that neither the box nor the gateway ever has a refresh token.
//
// Everything in a request is the box's, and everything in an answer of the endpoint is a stranger's. What goes from one
// to the other is written anew from the few fields that are known.
package agentlogin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Options configure [Prepare].
type Options struct {
	Sections []Section
	Home     string   // the user's home on the host
	Lock     string   // a directory of Paddock's own, for locks; it is made if it is missing
	State    string   // names the files that the box shares with others: one at a time has a login there; empty shares none
	Shared   []string // directories of the host that the box is given; a login's file must not be in one

	// Client does the exchanges. Nil is one that trusts what this machine trusts, and uses its proxy.
	Client *http.Client
}

// A File is a file for the home of the box.
type File struct {
	Path    string // relative to the home
	Content []byte
	Mode    os.FileMode
}

// A Login is the logins of one agent in one box. It is safe for concurrent use.
type Login struct {
	client *http.Client
	held   []*held
	alone  io.Closer // the lock of the state; nil is none

	busy   sync.RWMutex // held for reading by each exchange
	closed bool         // guarded by busy
}

var _ gatewayclient.Login = (*Login)(nil)

// A held login is one section whose tokens are on the host.
type held struct {
	section   Section
	endpoints []endpoint
	uses      []use
	vault     *vault // nil where the host has no login
	lock      string

	mu      sync.Mutex
	access  given   // guarded by mu
	refresh given   // guarded by mu
	id      given   // guarded by mu
	unsaved *change // guarded by mu; tokens that could not be stored
	room    *room   // guarded by mu; for them

	seen tokens // guarded by mu; of the last time that the file could be read
	last tokens // guarded by mu; of the last exchange
}

// A use is a compiled [Use].
type use struct {
	host    decide.Host
	port    uint16
	rule    paddock.NetworkRule
	rules   *decide.Rules
	headers []string
	methods []string
	paths   []string
}

// givenMax is the number of placeholders of a token that stay valid.
const givenMax = 8

// given are the placeholders of a token, the newest last, and the token that the newest was made for.
type given struct {
	real string
	list []string
}

// next returns the placeholder of a token, and makes one if the token is another one than before.
func (g *given) next(real string) (string, error) {
	if real == "" {
		return "", nil
	}
	if g.real == real {
		return g.list[len(g.list)-1], nil
	}
	p, err := mask(real)
	if err != nil {
		return "", err
	}
	g.real, g.list = real, append(g.list, p)
	if len(g.list) > givenMax {
		g.list = slices.Delete(g.list, 0, 1)
	}
	return p, nil
}

// Prepare finds the logins on the host. Sections without a login there are no error: see [Login.Words]. A file that is
// not as its agent writes it, or that the box is given, is Invalid. It is a Conflict if another box has a login in the state.
func Prepare(o Options) (*Login, error) {
	l := &Login{client: client(o.Client)}
	if err := os.MkdirAll(o.Lock, 0o700); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	for _, s := range o.Sections {
		h, err := prepare(s, o)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.held = append(l.held, h)
	}
	if err := l.hold(o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// hold takes the lock of the state. A second box would write its placeholders over those of the first, whose agent would
// then take itself for logged out.
func (l *Login) hold(o Options) error {
	if o.State == "" || !slices.ContainsFunc(l.held, func(h *held) bool { return h.vault != nil }) {
		return nil
	}
	dir := filepath.Join(o.Lock, "state-"+lockName(o.State))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("login: %w", err)
	}
	var err error
	l.alone, err = tryLockDir(dir)
	return err
}

func prepare(s Section, o Options) (*held, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	h := &held{section: s}
	for _, text := range s.Endpoints {
		e, err := parseEndpoint(text)
		if err != nil {
			return nil, err
		}
		h.endpoints = append(h.endpoints, e)
	}
	for _, u := range s.Use {
		rules, err := u.compile()
		if err != nil {
			return nil, err
		}
		rule, err := u.rule()
		if err != nil {
			return nil, err
		}
		host, port, err := destination(u.Host)
		if err != nil {
			return nil, err
		}
		h.uses = append(h.uses, use{host, port, rule, rules, u.headers(), u.Methods, u.Paths})
	}
	name := filepath.Join(o.Home, filepath.FromSlash(strings.TrimPrefix(s.File, "~/")))
	v, err := openVault(name)
	if paddock.KindOf(err) == paddock.NotFound {
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("login %q: %w", s.Name, err)
	}
	if err := h.open(v, o); err != nil {
		return nil, errors.Join(fmt.Errorf("login %q: %w", s.Name, err), v.dir.Close())
	}
	if h.vault == nil {
		return h, v.dir.Close()
	}
	return h, nil
}

// open takes the file over, if it has a login.
func (h *held) open(v *vault, o Options) error {
	d, err := v.read()
	if paddock.KindOf(err) == paddock.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ok := d.tokens(h.section); !ok {
		return nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(v.path))
	if err != nil {
		return fmt.Errorf("find the directory of %s: %w", v.path, err)
	}
	for _, shared := range o.Shared {
		real, err := filepath.EvalSymlinks(shared)
		if err == nil && (real == dir || strings.HasPrefix(dir, strings.TrimSuffix(real, "/")+"/")) {
			return fmt.Errorf("%s is in %s, which the box is given with the real tokens; do not share that directory: %w", v.path, shared, paddock.Invalid)
		}
	}
	h.lock = filepath.Join(o.Lock, lockName(filepath.Join(dir, v.name)))
	if err := os.MkdirAll(h.lock, 0o700); err != nil {
		return err
	}
	v.path, h.vault = filepath.Join(dir, v.name), v
	return nil
}

// lockName makes one name of a path.
func lockName(p string) string { return url.PathEscape(p) }

// Files returns the files for the home of the box. They have fresh placeholders on the first call.
func (l *Login) Files() ([]File, error) {
	var list []File
	for _, h := range l.held {
		if h.vault == nil {
			continue
		}
		name := path.Clean(strings.TrimPrefix(h.section.File, "~/"))
		i := slices.IndexFunc(list, func(f File) bool { return f.Path == name })
		if i < 0 {
			list = append(list, File{Path: name, Content: []byte("{}"), Mode: 0o600})
			i = len(list) - 1
		}
		content, err := h.file(list[i].Content)
		if err != nil {
			return nil, fmt.Errorf("login %q: %w", h.section.Name, err)
		}
		list[i].Content = content
	}
	return list, nil
}

// file adds what the box sees of the host's file.
func (h *held) file(content []byte) ([]byte, error) {
	t, err := h.current()
	if err != nil {
		return nil, err
	}
	real, err := h.vault.read()
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(content)
	if err != nil {
		return nil, err
	}
	for _, at := range append(slices.Clone(h.section.Keep), h.section.Expires.At, h.section.Refreshed, h.section.Scopes) {
		value, ok := real.value(at)
		if !ok {
			continue
		}
		if slices.ContainsFunc([]string{t.access, t.refresh, t.id}, func(s string) bool { return s != "" && strings.Contains(string(value), s) }) {
			return nil, fmt.Errorf("%s: %s holds a token: %w", h.vault.path, at, paddock.Invalid)
		}
		if err := d.set(at, value); err != nil {
			return nil, err
		}
	}
	masked, err := h.masked(t)
	if err != nil {
		return nil, err
	}
	for at, v := range map[string]string{h.section.Access: masked.access, h.section.Refresh: masked.refresh, h.section.ID: masked.id} {
		if at == "" || v == "" {
			continue
		}
		if err := d.set(at, v); err != nil {
			return nil, err
		}
	}
	return d.bytes()
}

// masked returns the newest placeholders of tokens.
func (h *held) masked(t tokens) (m tokens, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m = tokens{expires: t.expires, scope: t.scope}
	if m.access, err = h.access.next(t.access); err != nil {
		return tokens{}, err
	}
	if m.refresh, err = h.refresh.next(t.refresh); err != nil {
		return tokens{}, err
	}
	m.id, err = h.id.next(t.id)
	return m, err
}

// Rules returns the rules that the logins need. They allow the hosts, and at the endpoints only what is answered.
func (l *Login) Rules() []paddock.NetworkRule {
	var list []paddock.NetworkRule
	for _, h := range l.held {
		for _, e := range h.endpoints {
			list = append(list, e.rule())
		}
		if h.vault == nil {
			continue
		}
		for _, u := range h.uses {
			rule := u.rule
			if l.endpointAt(u.host, u.port) { // whose other addresses may give tokens too
				rule.Scheme, rule.Methods, rule.Paths = "https", u.methods, u.paths
			}
			list = append(list, rule)
		}
	}
	return list
}

func (l *Login) endpointAt(host decide.Host, port uint16) bool {
	return slices.ContainsFunc(l.held, func(h *held) bool {
		return slices.ContainsFunc(h.endpoints, func(e endpoint) bool { return e.host == host && e.port == port })
	})
}

// Private returns the host's directories with tokens, which no box may see. They are directories and not files, because
// a file that is replaced is another one.
func (l *Login) Private() []string {
	var list []string
	for _, h := range l.held {
		if h.vault == nil {
			continue
		}
		for _, dir := range []string{filepath.Dir(h.vault.path), h.lock} {
			if !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	return list
}

// Words says for the screen which logins there are.
func (l *Login) Words() []string {
	var list []string
	for _, h := range l.held {
		if h.vault == nil {
			list = append(list, fmt.Sprintf("no %s on this machine; to use one, log in outside first: %s", h.section.Name, h.section.Login))
			continue
		}
		list = append(list, h.section.Name+": its tokens stay outside of the box")
	}
	return list
}

// Close waits for exchanges that run, stores what could not be stored, and closes the directories of the files.
func (l *Login) Close() error {
	l.busy.Lock()
	defer l.busy.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var all error
	for _, h := range l.held {
		all = errors.Join(all, h.close())
	}
	if l.alone != nil {
		all = errors.Join(all, l.alone.Close())
	}
	return all
}

// Hosts implements [gatewayclient.Login].
func (l *Login) Hosts() []string {
	var list []string
	for _, r := range l.Rules() {
		list = append(list, hostPort(r.Host, r.Ports[0]))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Login implements [gatewayclient.Login].
func (l *Login) Login(ctx context.Context, r gatewayclient.LoginRequest) gatewayclient.LoginAnswer {
	host, err := decide.ParseHost(r.Host)
	if err != nil {
		return gatewayclient.LoginAnswer{Refused: "its host is not one"}
	}
	if at := l.at(host, r); len(at) > 0 {
		if !r.Whole {
			return gatewayclient.LoginAnswer{Whole: true, Name: at[0].h.section.Name}
		}
		return l.exchange(ctx, at, r)
	}
	for _, h := range l.held {
		if slices.ContainsFunc(h.endpoints, func(e endpoint) bool { return e.means(host, r) }) {
			return gatewayclient.LoginAnswer{Refused: "tokens are asked for by POST at exactly the address of the profile"}
		}
	}
	var a gatewayclient.LoginAnswer
	flow := decide.Flow{Host: host, Port: r.Port}
	for _, h := range l.held {
		if h.vault == nil {
			continue
		}
		for _, u := range h.uses {
			if u.host == host && u.port == r.Port && u.rules.Request(flow, decide.Request{Scheme: "https", Method: r.Method, Path: r.Path, RawQuery: r.Query}).Allow {
				if t, ok := h.token(u); ok {
					a.Tokens = append(a.Tokens, t)
				}
			}
		}
	}
	return a
}

// A place is a held login and its endpoint.
type place struct {
	h *held
	e endpoint
}

// at returns the logins with an endpoint that a request goes to.
func (l *Login) at(host decide.Host, r gatewayclient.LoginRequest) []place {
	var list []place
	for _, h := range l.held {
		for _, e := range h.endpoints {
			if e.host == host && e.port == r.Port && e.path == r.Path && r.Query == "" && r.Method == http.MethodPost {
				list = append(list, place{h, e})
			}
		}
	}
	return list
}

// token returns the present access token for requests. The host's agent may have refreshed it meanwhile.
func (h *held) token(u use) (gatewayclient.LoginToken, bool) {
	t, err := h.current()
	if paddock.KindOf(err) == paddock.NotFound { // the agent has logged out
		return gatewayclient.LoginToken{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		t = h.seen // the agent may be writing the file
	}
	if len(h.access.list) == 0 || t.access == "" {
		return gatewayclient.LoginToken{}, false
	}
	return gatewayclient.LoginToken{Name: h.section.Name, Value: t.access, Placeholders: slices.Clone(h.access.list), Headers: u.headers}, true
}

// current returns the tokens of the host's file, or newer ones that could not be stored.
func (h *held) current() (tokens, error) {
	d, err := h.vault.read()
	if err != nil {
		return tokens{}, err
	}
	t, ok := d.tokens(h.section)
	if !ok {
		return tokens{}, fmt.Errorf("%s has no login any more: %w", h.vault.path, paddock.NotFound)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unsaved != nil && h.unsaved.was == t.refresh {
		return h.unsaved.now, nil
	}
	if t.expires.IsZero() && t.access == h.last.access {
		t.expires = h.last.expires // a file need not say it
	}
	h.seen = t
	return t, nil
}

// fresh is how long an access token must be valid to be given instead of an exchange. Agents refresh minutes before.
const fresh = 10 * time.Minute
