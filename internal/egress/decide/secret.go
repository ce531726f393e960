package decide

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// MaxSecret is the longest value of a secret, in bytes.
const MaxSecret = 16 << 10

// bind checks and compiles one secret by itself. No error holds its value.
func bind(s paddock.Secret) (bound, error) {
	if !isVariable(s.Name) {
		return bound{}, fmt.Errorf("%q is no name of an environment variable", clip(s.Name))
	}
	switch {
	case s.Value == "":
		return bound{}, fmt.Errorf("%s has no value", s.Name)
	case len(s.Value) > MaxSecret:
		return bound{}, fmt.Errorf("%s has %d bytes; at most %d are allowed", s.Name, len(s.Value), MaxSecret)
	case strings.ContainsFunc(s.Value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return bound{}, fmt.Errorf("%s holds a line break or another control character, which no request can hold", s.Name)
	case len(s.Hosts) == 0:
		return bound{}, fmt.Errorf("%s is bound to no host", s.Name)
	case len(s.Hosts) > maxEntries:
		return bound{}, fmt.Errorf("%s is bound to %d hosts; at most %d are allowed", s.Name, len(s.Hosts), maxEntries)
	}
	b := bound{Secret: s}
	b.Hosts, b.Places = slices.Clone(s.Hosts), slices.Clone(s.Places)
	for i, text := range s.Hosts {
		p, port, err := parseSecretHost(text)
		if err != nil {
			return bound{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		b.hosts = append(b.hosts, destination{p, port})
		b.Hosts[i] = fmt.Sprintf("%s:%d", bracketPattern(p), port)
	}
	for _, place := range s.Places {
		if place != paddock.SecretHeader && place != paddock.SecretQuery && place != paddock.SecretBody {
			return bound{}, fmt.Errorf("%s: the place %q is not known (%s, %s, %s)", s.Name, clip(string(place)), paddock.SecretHeader, paddock.SecretQuery, paddock.SecretBody)
		}
	}
	return b, nil
}

// CheckSecretHost checks a host that a secret is bound to: a name, "*." and a name, or an address, with or without a
// port.
func CheckSecretHost(s string) error {
	if _, _, err := parseSecretHost(s); err != nil {
		return &RuleError{Text: err.Error()}
	}
	return nil
}

func parseSecretHost(s string) (Pattern, uint16, error) {
	host, port, err := splitPort(s)
	if err != nil {
		return Pattern{}, 0, err
	}
	p, err := parsePattern(host)
	if err != nil {
		return Pattern{}, 0, fmt.Errorf("host %q: %w", clip(s), err)
	}
	if _, isRange := p.Prefix(); isRange || p.All() {
		return Pattern{}, 0, fmt.Errorf("host %q: a secret is bound to names, and not to whatever is reached", clip(s))
	}
	if port == 0 {
		port = 443
	}
	return p, port, nil
}

func bracketPattern(p Pattern) string {
	if h, ok := p.Host(); ok {
		return bracket(h)
	}
	return p.String()
}

// checkSecret checks a secret against the others.
func (r *Rules) checkSecret(i int) error {
	s := r.secrets[i]
	if slices.ContainsFunc(r.secrets[:i], func(b bound) bool { return b.Name == s.Name }) {
		return fmt.Errorf("%s is there twice", s.Name)
	}
	if s.SigV4 == "" {
		return nil
	}
	if s.SigV4 == s.Name {
		return fmt.Errorf("%s: sigv4 names the secret itself, and not the one that holds the access key's identifier", s.Name)
	}
	j := slices.IndexFunc(r.secrets, func(b bound) bool { return b.Name == s.SigV4 })
	if j < 0 {
		return fmt.Errorf("%s: sigv4 names %q, and there is no such secret", s.Name, clip(s.SigV4))
	}
	if r.secrets[j].SigV4 != "" {
		return fmt.Errorf("%s: sigv4 names %s, which is a secret key itself", s.Name, s.SigV4)
	}
	for _, d := range s.hosts {
		if !slices.ContainsFunc(r.secrets[j].hosts, func(e destination) bool { return e.port == d.port && e.host.Covers(d.host) }) {
			return fmt.Errorf("%s is bound to %s:%d, and %s, which sigv4 names, is not", s.Name, bracketPattern(d.host), d.port, s.SigV4)
		}
	}
	return nil
}

func (b *bound) at(h Host, port uint16) bool {
	return slices.ContainsFunc(b.hosts, func(d destination) bool { return d.port == port && d.host.Match(h) })
}

func (r *Rules) bound(h Host, port uint16) bool {
	return slices.ContainsFunc(r.secrets, func(b bound) bool { return b.at(h, port) })
}

// SecretsFor returns the secrets that are bound to a host and port.
func (r *Rules) SecretsFor(h Host, port uint16) []paddock.Secret {
	var found []paddock.Secret
	for i := range r.secrets {
		if r.secrets[i].at(h, port) {
			found = append(found, r.secrets[i].Secret)
		}
	}
	return found
}

// isVariable reports whether s can be the name of an environment variable.
func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 255
}

func checkMode(p paddock.NetworkPolicy) error {
	var err error
	switch {
	case p.Mode == paddock.NetworkHost:
		err = errors.New("the network mode host has no gateway")
	case p.Mode != paddock.NetworkNone && p.Mode != paddock.NetworkList:
		err = fmt.Errorf("the network mode %q is not known", clip(string(p.Mode)))
	case p.Mode == paddock.NetworkNone && len(p.Rules)+len(p.Secrets) > 0:
		err = errors.New("rules or secrets beside the network mode none")
	case len(p.Rules) > maxRules:
		err = fmt.Errorf("%d rules; at most %d are allowed", len(p.Rules), maxRules)
	case len(p.Secrets) > maxSecrets:
		err = fmt.Errorf("%d secrets; at most %d are allowed", len(p.Secrets), maxSecrets)
	}
	return err
}
