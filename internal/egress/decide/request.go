package decide

import (
	"net/url"
	"slices"
	"strings"
)

// views are the possible interpretations of one request.
type views struct {
	scheme  string
	methods []string
	paths   []string // none if servers would not agree
	queries []queryView
	unclear bool // servers would not agree on the query
	header  map[string][]string
	trailer []string // names of headers whose value is not known yet
}

// A queryView is one interpretation of the query.
type queryView struct {
	raw    string
	plain  url.Values
	deeper url.Values // the query decoded again, if that differs
}

// overrides returns the headers that ask a server to use another method. Many servers obey
// them.
func overrides() []string {
	return []string{"X-Http-Method", "X-Http-Method-Override", "X-Method-Override"}
}

// rewrites returns the headers that ask a server to use another path. Some servers obey
// them.
func rewrites() []string { return []string{"X-Original-Url", "X-Rewrite-Url"} }

// readPaths sets the views of the path and the query, and of those in headers.
func (v *views) readPaths(path, query string) {
	v.paths = pathViews(path)
	v.readQuery(query)
	agreed := len(v.paths) > 0 && !v.follows(rewrites()...)
	v.unclear = v.unclear || v.follows(rewrites()...)
	encoded := strings.Contains(path, "%")
	for _, name := range rewrites() {
		for _, value := range v.alike(name) {
			value, query, _ := strings.Cut(strings.TrimSpace(value), "?")
			v.readQuery(query)
			more := pathViews(value)
			agreed = agreed && len(more) > 0
			encoded = encoded || strings.Contains(value, "%")
			v.paths = append(v.paths, more...)
		}
	}
	if !agreed {
		v.paths = nil
		v.unclear = v.unclear || encoded // it may hold an encoded "?"
		return
	}
	for _, p := range v.paths {
		if _, query, ok := strings.Cut(p, "?"); ok { // it was encoded
			v.readQuery(query)
		}
	}
}

// maxQueries bounds the views of a query. A plain request has one.
const maxQueries = 64

// readQuery adds a view of the query.
func (v *views) readQuery(raw string) {
	if slices.ContainsFunc(v.queries, func(have queryView) bool { return have.raw == raw }) {
		return
	}
	if before, _, ok := strings.Cut(raw, "#"); ok {
		v.readQuery(before)
	}
	if len(raw) > maxQuery || len(v.queries) == maxQueries {
		v.unclear = true
		return
	}
	plain, err := url.ParseQuery(raw)
	if err != nil {
		v.unclear = true
		return
	}
	one := queryView{raw: raw, plain: plain, deeper: url.Values{}}
	for name, values := range plain {
		for _, value := range values {
			n, _ := decode(name, "")
			d, _ := decode(value, "")
			if n != name || d != value {
				one.deeper.Add(n, d)
			}
		}
	}
	v.queries = append(v.queries, one)
}

func viewsOf(q Request) views {
	v := views{scheme: q.Scheme, methods: []string{q.Method}, header: q.Header, trailer: q.Trailer}
	v.readPaths(q.Path, q.RawQuery)
	for _, name := range overrides() {
		for _, value := range v.alike(name) {
			v.methods = append(v.methods, strings.TrimSpace(value))
			if strings.Contains(value, ",") { // one line may hold several
				for part := range strings.SplitSeq(value, ",") {
					v.methods = append(v.methods, strings.TrimSpace(part))
				}
			}
		}
	}
	return v
}

// SameHeader reports whether a server may take two names of headers for the same one. Case
// does not matter, and CGI and its successors read every sign that is neither a letter nor a
// digit as "_".
func SameHeader(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if folded(a[i]) != folded(b[i]) {
			return false
		}
	}
	return true
}

// folded returns a character of a header's name as CGI reads it.
func folded(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A' + 'a'
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return c
	}
	return '_'
}

// values returns the values of a header, whatever the case of its name.
func (v *views) values(name string) []string { return v.named(name, strings.EqualFold) }

// alike returns the values of all headers that a server may take for the named one.
func (v *views) alike(name string) []string { return v.named(name, SameHeader) }

// follows reports whether the trailer has what a server may take for one of the headers. Its value is
// not known before the request is sent, so it may be any.
func (v *views) follows(names ...string) bool {
	return slices.ContainsFunc(v.trailer, func(have string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return SameHeader(have, name) })
	})
}

func (v *views) named(name string, same func(have, name string) bool) []string {
	var all []string
	for have, values := range v.header {
		if same(have, name) {
			all = append(all, values...)
		}
	}
	return all
}

// meets reports whether a request meets the conditions of the rule: for a deny in any
// interpretation, for an allow in all.
func (c *compiled) meets(v views) bool {
	return c.meetsMethod(v) && (c.Scheme == "" || c.Scheme == v.scheme) &&
		(len(c.paths) == 0 || matchPaths(c.paths, v.paths, c.Deny)) && c.meetsQuery(v) && c.meetsHeaders(v)
}

func (c *compiled) meetsMethod(v views) bool {
	if len(c.Methods) == 0 {
		return true
	}
	if v.follows(overrides()...) {
		return c.Deny
	}
	if !c.Deny {
		return !slices.ContainsFunc(v.methods, func(m string) bool { return !slices.Contains(c.Methods, m) })
	}
	return slices.ContainsFunc(v.methods, func(m string) bool {
		return slices.ContainsFunc(c.Methods, func(n string) bool { return strings.EqualFold(m, n) })
	})
}

func (c *compiled) meetsQuery(v views) bool {
	if len(c.Query) == 0 {
		return true
	}
	if v.unclear {
		return c.Deny
	}
	for name, want := range c.Query {
		if !c.meetsParameter(v, name, want) {
			return false
		}
	}
	return true
}

func (c *compiled) meetsParameter(v views, name, want string) bool {
	for _, q := range v.queries {
		values := parameters(q.plain, name)
		if c.Deny {
			values = slices.Concat(values, parameters(q.deeper, name))
		}
		met := meetsValue(values, want, c.Deny)
		if !c.Deny && len(q.plain[name]) == 0 {
			met = false // not every server takes a similar name for this one
		}
		if met == c.Deny {
			return met
		}
	}
	return !c.Deny
}

// parameters returns the values of all query parameters that a server may take for the named one.
func parameters(all url.Values, name string) []string {
	var values []string
	for have, some := range all {
		if sameParameter(have, name) {
			values = append(values, some...)
		}
	}
	return values
}

// sameParameter reports whether a server may take two names of query parameters for the same one. Some
// servers ignore case. PHP ends a name at a NUL, drops spaces before it, and reads ".", " " and a "[" without
// its "]" as "_". Many servers make a list or an object of a name with "[" behind.
func sameParameter(have, name string) bool {
	want := foldedParameter(name)
	if foldedParameter(have) == want {
		return true
	}
	base, _, ok := strings.Cut(have, "[")
	return ok && foldedParameter(base) == want
}

func foldedParameter(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(c rune) rune {
		switch c {
		case '.', ' ', '[':
			return '_'
		}
		return c
	}, strings.ToLower(strings.TrimLeft(name, " ")))
}

func (c *compiled) meetsHeaders(v views) bool {
	for name, want := range c.Headers {
		if v.follows(name) {
			if c.Deny {
				continue
			}
			return false
		}
		values := v.alike(name)
		if c.Deny {
			// One line may hold several values of a header.
			for _, line := range values {
				for part := range strings.SplitSeq(line, ",") {
					values = append(slices.Clip(values), strings.TrimSpace(part))
				}
			}
		}
		if !meetsValue(values, want, c.Deny) {
			return false
		}
		// Not every server takes a similar name for this one.
		if !c.Deny && len(v.values(name)) == 0 {
			return false
		}
	}
	return true
}

// meetsValue reports whether values have the wanted one: for a deny any of them, for an
// allow each.
func meetsValue(values []string, want string, deny bool) bool {
	if len(values) == 0 {
		return false
	}
	if want == "*" {
		return true
	}
	if deny {
		return slices.Contains(values, want)
	}
	return !slices.ContainsFunc(values, func(v string) bool { return v != want })
}
