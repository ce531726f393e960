package command

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A GoRegexp is an expression in Go's syntax, of a tool that is written in Go, with Go's meaning, except that of what is repeated and prefers to be empty, as (|a)*. The engine is that of
// all tools: its work counts as the task's, and reaches checkpoints, which Go's own does not.
type GoRegexp struct {
	t    *kernel.Task
	re   *regex.Regexp
	real *regexp.Regexp // finds nothing: it reads the expression and fills in templates
}

// CompileGo compiles an expression. An error is Go's.
func CompileGo(t *kernel.Task, pattern string) (*GoRegexp, error) {
	real, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	asPerl(&b, tree)
	re, err := regex.Compile(b.String(), regex.Options{Flavour: regex.Perl, Meter: regexMeter{t}})
	if err != nil {
		return nil, fmt.Errorf("error parsing regexp: %w", err)
	}
	return &GoRegexp{t, re, real}, nil
}

// FindAllStringSubmatchIndex is that of Go's expressions, for all matches. What it returns is counted until the task ends.
func (x *GoRegexp) FindAllStringSubmatchIndex(s string) ([][]int, error) {
	b := []byte(s)
	x.t.Grow(len(b))
	defer x.t.Shrink(len(b))
	var all [][]int
	end := -1
	for at := 0; at <= len(b); {
		m, err := x.re.Find(b, at, nil)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		x.t.Step(1)
		if m[0] == m[1] && m[0] < len(b) && !utf8.RuneStart(b[m[0]]) { // within a character there is nothing
			at = m[0] + 1
			continue
		}
		accept := true
		if m[1] == at { // an empty match, which counts unless it touches the one before
			accept = m[0] != end
			_, n := utf8.DecodeRune(b[at:])
			at += max(n, 1)
		} else {
			at = m[1]
		}
		if end = m[1]; accept {
			x.t.Grow(8*len(m) + 48)
			all = append(all, m)
		}
	}
	return all, nil
}

// ExpandString is that of Go's expressions.
func (x *GoRegexp) ExpandString(dst []byte, template, src string, match []int) []byte {
	return x.real.ExpandString(dst, template, src, match)
}

// asPerl writes an expression so that Perl's syntax means what Go's does. Each part stands in parentheses of its own.
func asPerl(b *strings.Builder, x *syntax.Regexp) {
	parts := func(between string) {
		b.WriteString("(?:")
		for i, sub := range x.Sub {
			if i > 0 {
				b.WriteString(between)
			}
			asPerl(b, sub)
		}
		b.WriteString(")")
	}
	repeat := func(how string) {
		b.WriteString("(?:")
		asPerl(b, x.Sub[0])
		b.WriteString(")" + how)
		if x.Flags&syntax.NonGreedy != 0 {
			b.WriteString("?")
		}
	}
	switch x.Op {
	case syntax.OpNoMatch:
		b.WriteString(`(?:\z\A.)`) // not even in nothing, where there is no character
	case syntax.OpLiteral:
		for _, r := range x.Rune {
			literal(b, r, x.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		class(b, x.Rune)
	case syntax.OpAnyCharNotNL:
		b.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		b.WriteString(`(?s:.)`)
	case syntax.OpBeginLine:
		b.WriteString(`(?m:^)`)
	case syntax.OpEndLine:
		b.WriteString(`(?m:$)`)
	case syntax.OpBeginText:
		b.WriteString(`\A`)
	case syntax.OpEndText:
		b.WriteString(`\z`)
	case syntax.OpWordBoundary:
		b.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`\B`)
	case syntax.OpCapture:
		b.WriteString("(")
		asPerl(b, x.Sub[0])
		b.WriteString(")")
	case syntax.OpStar:
		repeat("*")
	case syntax.OpPlus:
		repeat("+")
	case syntax.OpQuest:
		repeat("?")
	case syntax.OpRepeat:
		if x.Max < 0 {
			repeat(fmt.Sprintf("{%d,}", x.Min))
		} else {
			repeat(fmt.Sprintf("{%d,%d}", x.Min, x.Max))
		}
	case syntax.OpConcat:
		parts("")
	case syntax.OpAlternate:
		parts("|")
	default: // nothing, which is empty
		b.WriteString("(?:)")
	}
}

// literal writes a character, or all that it is without regard to case.
func literal(b *strings.Builder, r rune, fold bool) {
	all := []rune{r, r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			all = append(all, f, f)
		}
	}
	class(b, all)
}

// class writes a set of characters, given by pairs of the first and the last.
func class(b *strings.Builder, pairs []rune) {
	if len(pairs) == 0 {
		b.WriteString(`(?:\z\A.)`)
		return
	}
	b.WriteString("[")
	for p := range slices.Chunk(pairs, 2) {
		fmt.Fprintf(b, `\x{%x}`, p[0])
		if p[1] != p[0] {
			fmt.Fprintf(b, `-\x{%x}`, p[1])
		}
	}
	b.WriteString("]")
}
