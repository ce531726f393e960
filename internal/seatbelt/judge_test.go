package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A node is an expression of a profile: a list, or an atom or string.
type node struct {
	list   []node
	text   string
	quoted bool
	isList bool
}

func (n node) head() string {
	if len(n.list) == 0 {
		return ""
	}
	return n.list[0].text
}

// parse reads a profile as a Scheme reader does.
func parse(text string) ([]node, error) {
	r := &reader{text: text}
	var list []node
	for {
		r.blank()
		if r.at == len(r.text) {
			return list, nil
		}
		n, err := r.node()
		if err != nil {
			return nil, err
		}
		if !n.isList {
			return nil, fmt.Errorf("an atom %q outside of a list", n.text)
		}
		list = append(list, n)
	}
}

type reader struct {
	text string
	at   int
}

func (r *reader) blank() {
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ' ', '\n':
			r.at++
		case ';':
			end := strings.IndexByte(r.text[r.at:], '\n')
			if end < 0 {
				r.at = len(r.text)
				return
			}
			r.at += end
		default:
			return
		}
	}
}

func (r *reader) node() (node, error) {
	if r.at == len(r.text) {
		return node{}, fmt.Errorf("the end, in a list")
	}
	switch c := r.text[r.at]; c {
	case '(':
		r.at++
		n := node{isList: true}
		for {
			r.blank()
			if r.at < len(r.text) && r.text[r.at] == ')' {
				r.at++
				return n, nil
			}
			item, err := r.node()
			if err != nil {
				return n, err
			}
			n.list = append(n.list, item)
		}
	case ')':
		return node{}, fmt.Errorf("a ) too many at %d", r.at)
	case '"':
		return r.quoted()
	}
	end := r.at + strings.IndexAny(r.text[r.at:]+" ", " \n()\";")
	n := node{text: r.text[r.at:end]}
	r.at = end
	return n, nil
}

func (r *reader) quoted() (node, error) {
	var b strings.Builder
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case '"':
			r.at++
			return node{text: b.String(), quoted: true}, nil
		case '\\':
			r.at++
			if r.at == len(r.text) || !strings.ContainsRune(`\"`, rune(r.text[r.at])) {
				return node{}, fmt.Errorf("an escape that is not known at %d", r.at)
			}
			b.WriteByte(r.text[r.at])
		default:
			b.WriteByte(c)
		}
	}
	return node{}, fmt.Errorf("a string without an end")
}

// An act is what a program does.
type act struct {
	op   string
	path string
	kind string // of a file: DIRECTORY, REGULAR-FILE or SYMLINK
	to   string // of a connection
}

// A judge decides as we believe that Seatbelt does: the last rule that matches wins.
type judge struct {
	t     testing.TB
	rules []node
	exprs map[string]*regexp.Regexp
}

func newJudge(t testing.TB, profile string) *judge {
	t.Helper()
	rules, err := parse(profile)
	if err != nil {
		t.Fatalf("the profile is not well formed: %v\n%s", err, profile)
	}
	return &judge{t, rules, map[string]*regexp.Regexp{}}
}

func (j *judge) allows(a act) bool {
	for _, r := range slices.Backward(j.rules) {
		switch r.head() {
		case "version":
			continue
		case "allow", "deny":
		default:
			j.t.Fatalf("a rule %q", r.head())
		}
		if j.rule(r.list[1:], a) {
			return r.head() == "allow"
		}
	}
	return false
}

func (j *judge) rule(rest []node, a act) bool {
	i := 0
	hit := false
	for ; i < len(rest) && !rest[i].isList; i++ {
		op := rest[i].text
		stem, star := strings.CutSuffix(op, "*")
		hit = hit || op == "default" || op == a.op || star && strings.HasPrefix(a.op, stem)
	}
	return hit && (i == len(rest) || slices.ContainsFunc(rest[i:], func(f node) bool { return j.filter(f, a) }))
}

func (j *judge) filter(f node, a act) bool {
	rest := f.list[1:]
	switch f.head() {
	case "require-all":
		return !slices.ContainsFunc(rest, func(g node) bool { return !j.filter(g, a) })
	case "require-any":
		return slices.ContainsFunc(rest, func(g node) bool { return j.filter(g, a) })
	case "require-not":
		return !j.filter(rest[0], a)
	case "literal":
		return a.path == rest[0].text
	case "subpath":
		return a.path == rest[0].text || strings.HasPrefix(a.path, strings.TrimSuffix(rest[0].text, "/")+"/")
	case "regex":
		e := j.exprs[rest[0].text]
		if e == nil {
			var err error
			if e, err = regexp.Compile("(?s)" + rest[0].text); err != nil {
				j.t.Fatalf("%q: %v", rest[0].text, err)
			}
			j.exprs[rest[0].text] = e
		}
		return a.path != "" && e.MatchString(a.path)
	case "vnode-type":
		return a.kind == rest[0].text
	case "remote":
		return a.to != "" && rest[0].text == "tcp" && a.to == rest[1].text
	case "target", "sysctl-name", "sysctl-name-prefix", "global-name":
		return false // what these tests do not ask about
	}
	j.t.Fatalf("a filter %q", f.head())
	return false
}

// shape is a profile without what its strings say.
func shape(list []node) string {
	var b strings.Builder
	for _, n := range list {
		switch {
		case n.isList:
			b.WriteString("(" + shape(n.list) + ")")
		case n.quoted:
			b.WriteString(`"" `)
		default:
			b.WriteString(n.text + " ")
		}
	}
	return b.String()
}
