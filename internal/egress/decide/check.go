package decide

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// Bounds on a policy. A larger policy is refused.
const (
	maxRules   = 20_000
	maxSecrets = 1000
	maxEntries = 1000     // of one list or mapping of a rule or a secret
	maxText    = 8 << 10  // bytes of a path, a value or a URL
	maxBody    = 1 << 20  // bytes of an answer
	maxPath    = 16 << 10 // bytes of a request's path
	maxQuery   = 64 << 10 // bytes of a request's query
)

// CheckRule checks one rule by itself. An error is a [*RuleError].
func CheckRule(nr paddock.NetworkRule) error {
	if _, err := compile(nr); err != nil {
		return &RuleError{Text: err.Error()}
	}
	return nil
}

// compile checks a rule and copies it in its canonical form.
func compile(nr paddock.NetworkRule) (compiled, error) {
	c := compiled{NetworkRule: clone(nr)}
	var err error
	if c.host, err = parsePattern(nr.Host); err != nil {
		return compiled{}, fmt.Errorf("host %q: %w", clip(nr.Host), err)
	}
	c.Host = c.host.String()
	for _, check := range []func(*compiled) error{checkTogether, checkPorts, checkLoopback, checkMethods, checkPaths, checkConditions, checkChanges, checkProxy, checkAnswer, checkLimits} {
		if err := check(&c); err != nil {
			return compiled{}, err
		}
	}
	return c, nil
}

func clone(nr paddock.NetworkRule) paddock.NetworkRule {
	nr.Ports, nr.Methods, nr.Paths = slices.Clone(nr.Ports), slices.Clone(nr.Methods), slices.Clone(nr.Paths)
	nr.Query, nr.Headers = maps.Clone(nr.Query), maps.Clone(nr.Headers)
	nr.SetHeaders, nr.RemoveHeaders = maps.Clone(nr.SetHeaders), slices.Clone(nr.RemoveHeaders)
	if nr.Limits != nil {
		limits := *nr.Limits
		nr.Limits = &limits
	}
	if nr.Answer != nil {
		answer := *nr.Answer
		answer.Headers = maps.Clone(answer.Headers)
		nr.Answer = &answer
	}
	return nr
}

// A clash is a pair of contradicting options of a rule.
type clash struct {
	a, b   bool
	reason string
}

func checkTogether(c *compiled) error {
	changes := len(c.SetHeaders)+len(c.RemoveHeaders) > 0
	for _, x := range []clash{
		{c.Deny, c.Inspect, "a deny with inspect: denied connections are not inspected"},
		{c.Deny, c.Limits != nil, "a deny with limits: it allows nothing that could be limited"},
		{c.Deny, changes, "a deny with set_headers or remove_headers: nothing of it is sent"},
		{c.Deny, c.Proxy != "", "a deny with a proxy: nothing of it is sent"},
		{c.Deny, c.Answer != nil, "a deny with an answer: an answer is given to what is allowed"},
		{c.UDP, c.asks(), "udp with conditions on requests: datagrams cannot be inspected"},
		{c.UDP, c.Inspect, "udp with inspect: datagrams cannot be inspected"},
		{c.UDP, changes, "udp with set_headers or remove_headers: datagrams have none"},
		{c.UDP, c.Proxy != "", "udp with a proxy: it carries connections alone"},
		{c.UDP, c.Answer != nil, "udp with an answer: it is one of HTTP"},
		{c.Answer != nil, c.Proxy != "", "an answer with a proxy: the destination is never asked"},
		{c.Answer != nil, changes, "an answer with set_headers or remove_headers: those change the request, which goes nowhere"},
	} {
		if x.a && x.b {
			return errors.New(x.reason)
		}
	}
	for name, n := range map[string]int{
		"ports": len(c.Ports), "methods": len(c.Methods), "paths": len(c.Paths), "query": len(c.Query), "headers": len(c.Headers),
		"set_headers": len(c.SetHeaders), "remove_headers": len(c.RemoveHeaders),
	} {
		if n > maxEntries {
			return fmt.Errorf("%s with %d entries; at most %d are allowed", name, n, maxEntries)
		}
	}
	return nil
}

func checkPorts(c *compiled) error {
	switch {
	case c.every() && c.Deny:
		return errors.New("port 0 in a deny: without ports it is about all of them")
	case slices.Contains(c.Ports, 0) && !c.every():
		return errors.New("port 0 beside others: a port is 1 to 65535, and 0 alone is every one")
	}
	return nil
}

// checkLoopback refuses a rule that would open more of this machine than ports that it names.
func checkLoopback(c *compiled) error {
	host, one := c.host.Host()
	if !one || !host.Loopback() || c.Deny {
		return nil
	}
	switch {
	case len(c.Ports) == 0 || c.every():
		return fmt.Errorf("%s without a port: it is the loopback of this machine, of which only ports that are named can be reached", host)
	case c.UDP:
		return fmt.Errorf("%s with udp: datagrams do not reach the loopback of this machine", host)
	case c.Proxy != "":
		return fmt.Errorf("%s with a proxy: it is the loopback of this machine, and not of the proxy's", host)
	}
	return nil
}

func checkMethods(c *compiled) error {
	if c.Scheme != "" && c.Scheme != "http" && c.Scheme != "https" {
		return fmt.Errorf("the scheme %q is neither http nor https", clip(c.Scheme))
	}
	for _, m := range c.Methods {
		switch {
		case !isToken(m):
			return fmt.Errorf("%q is no method", clip(m))
		case m != strings.ToUpper(m):
			return fmt.Errorf("the method %q: methods are written in capitals, %s", clip(m), strings.ToUpper(clip(m)))
		}
	}
	return nil
}

func checkPaths(c *compiled) error {
	for _, text := range c.Paths {
		p, err := parsePath(text, c.Deny)
		if err != nil {
			return fmt.Errorf("path %q: %w", clip(text), err)
		}
		c.paths = append(c.paths, p)
	}
	return nil
}

// checkConditions checks the values for queries and headers.
func checkConditions(c *compiled) error {
	for _, name := range slices.Sorted(maps.Keys(c.Query)) {
		if name == "" || !isText(name) || !isText(c.Query[name]) {
			return fmt.Errorf("the query %q: its name is empty, or it holds control characters, or is too long", clip(name))
		}
	}
	headers, err := canonical("headers", c.Headers)
	if err != nil {
		return err
	}
	c.Headers = headers
	return nil
}

// checkChanges checks the changes to requests.
func checkChanges(c *compiled) error {
	set, err := canonical("set_headers", c.SetHeaders)
	if err != nil {
		return err
	}
	c.SetHeaders = set
	for i, name := range c.RemoveHeaders {
		if err := checkHeader(name, ""); err != nil {
			return fmt.Errorf("remove_headers: %w", err)
		}
		name = canonicalHeader(name)
		c.RemoveHeaders[i] = name
		if _, twice := set[name]; twice || slices.Contains(c.RemoveHeaders[:i], name) {
			return fmt.Errorf("remove_headers: %s is removed and set, or removed twice", name)
		}
	}
	return nil
}

// canonical returns headers by their canonical names.
func canonical(key string, headers map[string]string) (map[string]string, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := checkHeader(name, headers[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if _, twice := all[canonicalHeader(name)]; twice {
			return nil, fmt.Errorf("%s: %s is there twice", key, canonicalHeader(name))
		}
		all[canonicalHeader(name)] = headers[name]
	}
	return all, nil
}

// checkHeader refuses an invalid header. It also refuses headers about the connection, the
// framing or the destination, because they could make one request look like two, or like
// one to another host.
func checkHeader(name, value string) error {
	switch canonicalHeader(name) {
	case "Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return fmt.Errorf("the header %s belongs to the connection, and is not for rules", canonicalHeader(name))
	}
	switch {
	case !isToken(name):
		return fmt.Errorf("%q is no name of a header", clip(name))
	case !isText(value):
		// Do not show the value, which may be a credential.
		return fmt.Errorf("the header %s: its value holds control characters, or is too long", canonicalHeader(name))
	case value != strings.TrimSpace(value):
		return fmt.Errorf("the header %s: its value begins or ends with a space", canonicalHeader(name))
	}
	return nil
}

// canonicalHeader returns a name in the form "Content-Type".
func canonicalHeader(name string) string {
	b := []byte(name)
	first := true
	for i, c := range b {
		switch {
		case first && c >= 'a' && c <= 'z':
			b[i] = c - 'a' + 'A'
		case !first && c >= 'A' && c <= 'Z':
			b[i] = c - 'A' + 'a'
		}
		first = c == '-'
	}
	return string(b)
}

// isToken reports whether s is a token of HTTP.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != "" && len(s) <= 255
}

// isText reports whether s can be a value: UTF-8 without control characters.
func isText(s string) bool {
	control := func(c rune) bool { return (c < ' ' && c != '\t') || c == 0x7f }
	return len(s) <= maxText && utf8.ValidString(s) && !strings.ContainsFunc(s, control)
}

// checkProxy checks the proxy. Its errors never show the URL, which may hold a password.
func checkProxy(c *compiled) error {
	if c.Proxy == "" {
		return nil
	}
	u, err := url.Parse(c.Proxy)
	if err != nil || len(c.Proxy) > maxText || !isText(c.Proxy) {
		return errors.New("proxy: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return fmt.Errorf("proxy: the scheme %q is none of http, https and socks5", clip(u.Scheme))
	}
	if u.Opaque != "" || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("proxy: a URL with more than a user, a host and a port")
	}
	host, _, err := splitPort(u.Host)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if _, err := parseHost(host); err != nil {
		return fmt.Errorf("proxy: host %q: %w", clip(host), err)
	}
	return nil
}

func checkAnswer(c *compiled) error {
	a := c.Answer
	if a == nil {
		return nil
	}
	headers, err := canonical("answer: headers", a.Headers)
	if err != nil {
		return err
	}
	a.Headers = headers
	switch {
	case a.Status != 0 && (a.Status < 200 || a.Status > 599):
		return fmt.Errorf("answer: the status %d is not from 200 to 599", a.Status)
	case (a.Status == 204 || a.Status == 304) && a.Body != "":
		return fmt.Errorf("answer: the status %d with a body, which it cannot have", a.Status)
	case len(a.Body) > maxBody:
		return fmt.Errorf("answer: a body of %d bytes; at most %d are allowed", len(a.Body), maxBody)
	}
	return nil
}

func checkLimits(c *compiled) error {
	if l := c.Limits; l != nil && min(l.Requests, l.Bytes, l.Rate) < 0 {
		return errors.New("limits: a negative number")
	}
	return nil
}
