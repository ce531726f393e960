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
	query   url.Values
	deeper  url.Values // the query decoded again, if that differs
	unclear bool       // servers would not agree on the query
	header  map[string][]string
}

// overrides returns the headers that ask a server to use another method. Many servers obey
// them.
func overrides() []string {
	return []string{"X-Http-Method", "X-Http-Method-Override", "X-Method-Override"}
}

// rewrites returns the headers that ask a server to use another path. Some servers obey
// them.
func rewrites() []string { return []string{"X-Original-Url", "X-Rewrite-Url"} }

// readPaths sets the views of the path, and of paths in headers.
func (v *views) readPaths(path string) {
	v.paths = pathViews(path)
	for _, name := range rewrites() {
		for _, value := range v.values(name) {
			value, _, _ = strings.Cut(strings.TrimSpace(value), "?")
			more := pathViews(value)
			if len(v.paths) == 0 || len(more) == 0 {
				v.paths = nil // servers would not agree
				return
			}
			v.paths = append(v.paths, more...)
		}
	}
}

func viewsOf(q Request) views {
	v := views{scheme: q.Scheme, methods: []string{q.Method}, header: q.Header}
	v.readPaths(q.Path)
	for _, name := range overrides() {
		for _, value := range v.values(name) {
			v.methods = append(v.methods, strings.TrimSpace(value))
		}
	}
	if q.RawQuery == "" {
		return v
	}
	query, err := url.ParseQuery(q.RawQuery)
	if err != nil || len(q.RawQuery) > maxQuery {
		v.unclear = true
		return v
	}
	v.query = query
	for name, values := range query {
		for _, value := range values {
			n, _ := decode(name, "")
			d, _ := decode(value, "")
			if n != name || d != value {
				if v.deeper == nil {
					v.deeper = url.Values{}
				}
				v.deeper.Add(n, d)
			}
		}
	}
	return v
}

// values returns the values of a header, whatever the case of its name.
func (v *views) values(name string) []string {
	var all []string
	for have, values := range v.header {
		if strings.EqualFold(have, name) {
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
		values := v.query[name]
		if c.Deny {
			values = slices.Concat(values, v.deeper[name])
		}
		if !meetsValue(values, want, c.Deny) {
			return false
		}
	}
	return true
}

func (c *compiled) meetsHeaders(v views) bool {
	for name, want := range c.Headers {
		values := v.values(name)
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
