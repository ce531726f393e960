package agentlogin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// A Section describes one login of an agent. Paths into the agent's file are keys joined by dots.
type Section struct {
	Name      string   `yaml:"name"`      // for people
	File      string   `yaml:"file"`      // the agent's file on the host, below "~/"
	Access    string   `yaml:"access"`    // where the access token is in it
	Refresh   string   `yaml:"refresh"`   // where the refresh token is; empty if the access token does not expire
	ID        string   `yaml:"id"`        // where the ID token is; it is sent nowhere
	Expires   Expiry   `yaml:"expires"`   //
	Refreshed string   `yaml:"refreshed"` // where the time of the last refresh is, as RFC 3339
	Scopes    string   `yaml:"scopes"`    // where the scopes are: a text or a list
	Keep      []string `yaml:"keep"`      // what the box sees as it is; it sees nothing else of the file
	Use       []Use    `yaml:"use"`
	Endpoints []string `yaml:"endpoints"` // URLs at which tokens are refreshed
	Clients   []string `yaml:"clients"`   // client IDs that may refresh
	Client    string   `yaml:"client"`    // where the client ID is in the file, if the agent writes one; it may refresh too
	Secrets   []string `yaml:"secrets"`   // SHA-256 in hex of client secrets that may be sent, which are public in a program
	Login     string   `yaml:"login"`     // what to type on the host
}

// An Expiry says where the time is at which the access token expires.
type Expiry struct {
	At   string `yaml:"at"`
	Unit string `yaml:"unit"` // of the Unix time: "s", or "ms"
}

// A Use names requests that the access token is put into.
type Use struct {
	Host    string   `yaml:"host"`    // a name, with ":port" if that is not 443
	Headers []string `yaml:"headers"` // empty is Authorization
	Methods []string `yaml:"methods"` // empty is any
	Paths   []string `yaml:"paths"`   // as in rules of a policy, without "**": a vendor adds paths
}

// Check reports what is wrong with a section. An error names the key.
func (s Section) Check() error {
	if err := s.check(); err != nil {
		return fmt.Errorf("login %q: %w: %w", s.Name, err, paddock.Invalid)
	}
	return nil
}

func (s Section) check() error {
	rest, ok := strings.CutPrefix(s.File, "~/")
	switch {
	case s.Name == "" || strings.ContainsFunc(s.Name, isControl):
		return errors.New("name: it has none that can be shown")
	case !ok || rest == "" || path.Clean(rest) != rest || strings.HasPrefix(rest, "../") || rest == ".." || !strings.Contains(rest, "/"):
		return errors.New("file: it is not a file in a directory below ~/")
	case s.Login == "":
		return errors.New("login: it does not say what to type on the host")
	case len(s.Use) == 0:
		return errors.New("use: it names no host")
	case s.Refresh != "" && len(s.Endpoints) == 0:
		return errors.New("endpoints: there is none for the refresh token")
	case s.Refresh != "" && len(s.Clients) == 0:
		return errors.New("clients: there is none that may refresh")
	case slices.ContainsFunc(s.Secrets, func(d string) bool { return len(d) != sha256.Size*2 || strings.Trim(d, "0123456789abcdef") != "" }):
		return errors.New("secrets: they are named by their SHA-256, in hex")
	case s.Expires.At != "" && s.Expires.Unit != "s" && s.Expires.Unit != "ms":
		return errors.New(`expires: unit is neither "s" nor "ms"`)
	}
	if err := s.checkPlaces(); err != nil {
		return err
	}
	for _, u := range s.Use {
		if _, err := u.compile(); err != nil {
			return fmt.Errorf("use: %w", err)
		}
	}
	for _, e := range s.Endpoints {
		if _, err := parseEndpoint(e); err != nil {
			return fmt.Errorf("endpoints: %w", err)
		}
	}
	return nil
}

// checkPlaces checks the paths into the file. What is kept must hold no token.
func (s Section) checkPlaces() error {
	if s.Access == "" {
		return errors.New("access: it is missing")
	}
	tokens := []string{s.Access, s.Refresh, s.ID}
	for _, p := range slices.Concat(tokens, []string{s.Expires.At, s.Refreshed, s.Scopes, s.Client}, s.Keep) {
		if p != "" && slices.Contains(strings.Split(p, "."), "") {
			return fmt.Errorf("%q is not keys joined by dots", p)
		}
	}
	for _, k := range append(slices.Clone(s.Keep), s.Scopes) {
		for _, t := range tokens {
			if k != "" && t != "" && (k == t || strings.HasPrefix(t, k+".") || strings.HasPrefix(k, t+".")) {
				return fmt.Errorf("keep: %q would show the token at %q", k, t)
			}
		}
	}
	return nil
}

// headers returns the headers of a use.
func (u Use) headers() []string {
	if len(u.Headers) == 0 {
		return []string{"Authorization"}
	}
	return u.Headers
}

// compile makes rules that allow exactly the requests of a use.
func (u Use) compile() (*decide.Rules, error) {
	rule, err := u.rule()
	if err != nil {
		return nil, err
	}
	if len(u.Paths) == 0 {
		return nil, fmt.Errorf("%s: paths: there are none", u.Host)
	}
	for _, p := range u.Paths {
		if strings.Contains(p, "**") || p == "/*" {
			return nil, fmt.Errorf("%s: paths: %q has more than the paths that are meant; name each one", u.Host, p)
		}
	}
	rule.Scheme, rule.Methods, rule.Paths = "https", u.Methods, u.Paths
	rules, err := decide.Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{rule}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Host, err)
	}
	return rules, nil
}

// rule allows the host of a use.
func (u Use) rule() (paddock.NetworkRule, error) {
	host, port, err := destination(u.Host)
	if err != nil {
		return paddock.NetworkRule{}, err
	}
	return paddock.NetworkRule{Host: host.String(), Ports: []uint16{port}, Inspect: true}, nil
}

// destination reads a name with or without a port.
func destination(s string) (decide.Host, uint16, error) {
	name, port, err := decide.SplitPort(s)
	if err != nil {
		return decide.Host{}, 0, fmt.Errorf("%q: %w", s, err)
	}
	host, err := decide.ParseHost(name)
	if err != nil {
		return decide.Host{}, 0, fmt.Errorf("%q: %w", s, err)
	}
	if port == 0 {
		port = 443
	}
	return host, port, nil
}

// An endpoint is where tokens are refreshed.
type endpoint struct {
	url    string
	host   decide.Host
	port   uint16
	path   string
	others *decide.Rules // allow what no server can take for a request to the endpoint
}

func parseEndpoint(s string) (endpoint, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "" ||
		u.Path == "" || path.Clean(u.Path) != u.Path || strings.ContainsAny(u.Path, "*%;\\ ") {
		return endpoint{}, fmt.Errorf("%q is not https://HOST/PATH", s)
	}
	host, port, err := destination(u.Host)
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{url: s, host: host, port: port, path: u.Path}
	if e.others, err = decide.Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		{Host: host.String(), Ports: []uint16{port}}, {Deny: true, Host: host.String(), Paths: []string{e.path}},
	}}); err != nil {
		return endpoint{}, fmt.Errorf("%q: %w", s, err)
	}
	return e, nil
}

// means reports whether a server could take a request for one to the endpoint, although it is not exactly one.
func (e endpoint) means(host decide.Host, r gatewayclient.LoginRequest) bool {
	flow := decide.Flow{Host: host, Port: r.Port}
	return e.host == host && e.port == r.Port && !e.others.Request(flow, decide.Request{Scheme: "https", Method: r.Method, Path: r.Path, RawQuery: r.Query}).Allow
}

// rule allows exactly the requests that the endpoint answers.
func (e endpoint) rule() paddock.NetworkRule {
	return paddock.NetworkRule{Host: e.host.String(), Ports: []uint16{e.port}, Scheme: "https", Methods: []string{"POST"}, Paths: []string{e.path}, Inspect: true}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
