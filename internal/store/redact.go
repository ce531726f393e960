package store

import (
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Redact returns a copy of a spec without possible credentials: values of secrets, of the environment, of headers and
// queries of rules, answers, and users and passwords of proxies. Names stay.
func Redact(spec paddock.Spec) paddock.Spec {
	spec.Env = blank(spec.Env)
	n := &spec.Policy.Network
	n.Secrets = slices.Clone(n.Secrets)
	for i := range n.Secrets {
		n.Secrets[i].Value = ""
	}
	n.Rules = slices.Clone(n.Rules)
	for i := range n.Rules {
		r := &n.Rules[i]
		r.Query, r.Headers, r.SetHeaders = blank(r.Query), blank(r.Headers), blank(r.SetHeaders)
		r.Proxy = anonymous(r.Proxy)
		if r.Answer != nil {
			r.Answer = &paddock.NetworkAnswer{Status: r.Answer.Status, Headers: blank(r.Answer.Headers)}
		}
	}
	return spec
}

// blank keeps only the names of a map.
func blank(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	names := make(map[string]string, len(m))
	for name := range m {
		names[name] = ""
	}
	return names
}

// anonymous removes the user from a URL. For an invalid URL it returns "".
func anonymous(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil || proxy == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// clean returns text that both databases can store.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
