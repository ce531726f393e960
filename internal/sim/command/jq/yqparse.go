package jq

import (
	"strings"
	"unicode/utf8"
)

// What the language of mikefarah's yq has and jq has not.

// isPlain reports whether a byte may begin a name behind a dot.
func isPlain(c byte) bool { return isLetter(c) || isDigit(c) || c >= utf8.RuneSelf }

// plain reads a name behind a dot, which may hold dashes.
func (l *lexer) plain() string {
	from := l.at
	for l.at < len(l.src) && (isPlain(l.src[l.at]) || l.src[l.at] == '-') {
		l.at++
	}
	return l.src[from:l.at]
}

// multiply reads * with its flags, or *= with them: + appends arrays, d merges
// them element by element, n adds only what is new, ? changes only what is
// there, c drops the style of what is there.
func (l *lexer) multiply() tok {
	from := l.at
	l.at++
	set := false
	for l.at < len(l.src) {
		c := l.src[l.at]
		next := byte(0)
		if l.at+1 < len(l.src) {
			next = l.src[l.at+1]
		}
		switch {
		case c == '=' && !set && next != '=':
			set = true
		case c == '+' || c == '?':
		case (c == 'd' || c == 'n' || c == 'c') && !isPlain(next):
		case (c == 'd' || c == 'n' || c == 'c') && (next == 'd' || next == 'n' || next == 'c' || next == '+' || next == '?' || next == '='):
		default:
			return l.multiplied(from, set)
		}
		l.at++
	}
	return l.multiplied(from, set)
}

func (l *lexer) multiplied(from int, set bool) tok {
	l.text = strings.ReplaceAll(l.src[from:l.at], "=", "")
	if set {
		l.text += "="
		return tSet
	}
	return '*'
}

// lenient makes an access that gives nothing where there is nothing to access.
func lenient(n *node) *node {
	switch n.op {
	case opField, opIndex, opSlice, opIterate:
		return &node{op: opTry, l: n}
	}
	return n
}

// attribute reports whether the name that stands behind an expression is that of
// an attribute which is given a value.
func (p *parser) attribute() bool {
	switch snake(p.text) {
	case "style", "tag", "type", "anchor", "alias", "comments", "line_comment", "head_comment", "foot_comment":
		rest := strings.TrimLeft(p.src[p.at:], " \t\r\n")
		return (strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==")) || strings.HasPrefix(rest, "|=")
	}
	return false
}

// marked reads the value of an attribute.
func (p *parser) marked(l *node) *node {
	n := &node{op: opMark, l: l, str: snake(p.text)}
	p.next()
	if p.text == "|=" {
		n.hops = 1 // its value is of each place
	}
	p.next()
	n.r = p.alternative()
	return n
}

// ireduce reads what is behind "expression as $name".
func (p *parser) ireduce(b *node) *node {
	p.next()
	n := &node{op: opReduce, l: b.l, pats: b.pats}
	p.expect('(')
	n.r = p.pipe()
	p.expect(';')
	n.x = p.pipe()
	p.expect(')')
	return n
}

// environment reads the name of a variable of the environment, which is not
// quoted; the lexer stands behind the parenthesis.
func (p *parser) environment(name string, line int) *node {
	end := strings.IndexByte(p.src[p.at:], ')')
	if end < 0 {
		p.fail("syntax error, unexpected end of file")
	}
	arg := strings.TrimSpace(p.src[p.at : p.at+end])
	p.at += end + 1
	p.next()
	return &node{op: opCall, str: "_" + name, list: []*node{literalNode(arg)}, line: line}
}

// snake gives the name with underscores of one in camel case, as yq takes both.
func snake(s string) string {
	for i := 1; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			var b []byte
			for j := range len(s) {
				if c := s[j]; c >= 'A' && c <= 'Z' {
					b = append(b, '_', c+'a'-'A')
				} else {
					b = append(b, c)
				}
			}
			return string(b)
		}
	}
	return s
}

// yqCall gives a call of yq the form that jq's has: names without capitals,
// arguments apart.
func yqCall(n *node) {
	n.str = snake(n.str)
	switch n.str {
	case "fi":
		n.str = "file_index"
	case "di":
		n.str = "document_index"
	case "filename":
		n.str = "file_name"
	case "ascii_upcase":
		n.str = "upcase"
	case "ascii_downcase":
		n.str = "downcase"
	case "type":
		n.str = "tag"
	case "str_load", "loadstr", "load_str":
		n.str = "load_str"
	}
	if n.str == "sub" && len(n.list) == 1 && n.list[0].op == opComma {
		n.list = []*node{n.list[0].l, n.list[0].r}
	}
}

// yqDefinition gives the source of a function that yq has otherwise than jq.
func yqDefinition(sig string) string {
	switch sig {
	case "map/1":
		return "def map(f): . as $o | [.[] | f] | _like($o);"
	case "filter/1":
		return "def filter(f): . as $o | [.[] | select(f)] | _like($o);"
	case "keys/0":
		return "def keys: keys_unsorted;"
	case "sort/0":
		return "def sort: . as $o | _sorted_by(\"sort\"; .) | _like($o);"
	case "sort_by/1":
		return "def sort_by(f): . as $o | _sorted_by(\"sort\"; f) | _like($o);"
	case "unique/0":
		return "def unique: . as $o | [_grouped(.)[] | .[0]] | _like($o);"
	case "unique_by/1":
		return "def unique_by(f): . as $o | [_grouped(f)[] | .[0]] | _like($o);"
	case "group_by/1":
		return "def group_by(f): _grouped(f);"
	case "any_c/1":
		return "def any_c(f): any(.[]; f);"
	case "all_c/1":
		return "def all_c(f): all(.[]; f);"
	case "sort_keys/1":
		return "def sort_keys(f): f |= _sort_keys;"
	case "to_entries/0":
		return "def to_entries: . as $v | [keys_unsorted[] as $k | {key: $k, value: $v[$k]}];"
	case "with_entries/1":
		return "def with_entries(f): . as $o | [to_entries[] | f] | from_entries | _like($o);"
	case "from_entries/0":
		return "def from_entries: reduce .[] as $x ({}; . + {($x.key | tostring): $x.value});"
	case "to_string/0":
		return "def to_string: tostring;"
	case "to_number/0":
		return "def to_number: tonumber;"
	case "to_json/0":
		return "def to_json: to_json(2);"
	case "to_yaml/0":
		return "def to_yaml: to_yaml(2);"
	case "to_xml/0":
		return "def to_xml: to_xml(2);"
	case "array_to_map/0":
		return "def array_to_map: . as $a | reduce range(length) as $i ({}; if $a[$i] == null then . else . + {($i | tostring): $a[$i]} end);"
	case "pivot/0":
		return `def pivot: . as $a | if all(.[]; type == "array") then [range([.[] | length] | max // 0) as $i | [$a[] | .[$i]]]
			else reduce ([.[] | keys_unsorted[]] | reduce .[] as $k ([]; if any(.[]; . == $k) then . else . + [$k] end))[] as $k ({}; . + {($k): [$a[] | .[$k]]}) end;`
	case "first/1":
		return "def first(f): [.[] | select(f)][0];"
	case "upcase/0":
		return "def upcase: _case(true);"
	case "downcase/0":
		return "def downcase: _case(false);"
	}
	return ""
}
