package shell

import (
	"errors"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/condition"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// biTest is test and [.
func biTest(s *Shell, args []string) int {
	me := args[0]
	args = args[1:]
	if me == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			s.complain("[: missing `]'")
			return 2
		}
		args = args[:len(args)-1]
	}
	if len(args) == 3 {
		if st, ok := simpleTest(args[0], args[1], args[2]); ok {
			return st
		}
	}
	h := s.conditions()
	ok, err := h.Test(args, int(s.t.K.Limits.Nesting))
	if err != nil {
		if s.flow == flowNone {
			s.complain("%s: %s", me, err)
		}
		return 2
	}
	return status(ok)
}

// simpleTest decides the most frequent tests; ok is false where it leaves the
// decision to others.
func simpleTest(a, op, b string) (st int, ok bool) {
	switch op {
	case "=", "==":
		return status(a == b), true
	case "!=":
		return status(a != b), true
	}
	if len(op) != 3 || op[0] != '-' {
		return 0, false
	}
	x, ok1 := decimal(a)
	y, ok2 := decimal(b)
	if !ok1 || !ok2 {
		return 0, false
	}
	switch op {
	case "-eq":
		return status(x == y), true
	case "-ne":
		return status(x != y), true
	case "-lt":
		return status(x < y), true
	case "-le":
		return status(x <= y), true
	case "-gt":
		return status(x > y), true
	case "-ge":
		return status(x >= y), true
	}
	return 0, false
}

// decimal reads a number of digits alone.
func decimal(s string) (int64, bool) {
	neg := false
	if s != "" && s[0] == '-' {
		neg, s = true, s[1:]
	}
	if s == "" || len(s) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	if neg {
		n = -n
	}
	return n, true
}

func status(ok bool) int {
	if ok {
		return 0
	}
	return 1
}

// conditions answers what tests ask.
func (s *Shell) conditions() *condition.Host {
	return &condition.Host{
		Bash: true,
		View: &s.t.View,
		Terminal: func(fd int) bool {
			d := s.t.FD(fd)
			if d == nil {
				return false
			}
			_, ok := d.File.(kernel.Terminal)
			return ok
		},
		Stat: s.stat,
		Var: func(name string) bool {
			ok, err := s.Expander().IsSet(name)
			if err != nil {
				s.complain("%s", err)
			}
			return ok
		},
		Ref: func(name string) bool {
			v := s.vars.Lookup(name)
			return v != nil && v.Is(variable.NameRef) && v.IsSet()
		},
		Option: func(name string) bool {
			o, ok := findOption(name, true)
			return ok && s.opt[o]
		},
	}
}

// stat describes a file; names of descriptors are what they lead to.
func (s *Shell) stat(path string) (vfs.Info, error) {
	n, ok := strings.CutPrefix(path, "/dev/fd/")
	if !ok {
		switch path {
		case "/dev/stdin":
			n, ok = "0", true
		case "/dev/stdout":
			n, ok = "1", true
		case "/dev/stderr":
			n, ok = "2", true
		}
	}
	if ok {
		if fd, err := strconv.Atoi(n); err == nil {
			if d := s.t.FD(fd); d != nil {
				return d.File.Info()
			}
		}
	}
	return s.t.View.Stat(path)
}

// testExpr is [[ ]].
func (s *Shell) testExpr(e syntax.TestExpr) int {
	ok, err := s.decide(e)
	if err != nil {
		if s.flow != flowNone {
			return s.status
		}
		var bad badRegex
		if errors.As(err, &bad) {
			return 2
		}
		var x *expand.Error
		if errors.As(err, &x) && x.Kind == expand.Arithmetic {
			s.complain("[[: %s", err)
			return 1
		}
		return s.wordError(err)
	}
	return status(ok)
}

// A badRegex is a regular expression that is none: the status is 2, and nothing
// is said.
type badRegex struct{ error }

func (s *Shell) decide(e syntax.TestExpr) (bool, error) {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > maxStack {
		s.t.Bound("nesting", int64(s.depth), maxStack)
	}
	s.t.Step(1)
	switch e := e.(type) {
	case *syntax.Word:
		text, err := s.condString(e)
		return text != "", err
	case *syntax.ParenTest:
		return s.decide(e.X)
	case *syntax.UnaryTest:
		if e.Op == syntax.TsNot {
			ok, err := s.decide(e.X)
			return !ok, err
		}
		return s.unaryTest(e)
	case *syntax.BinaryTest:
		switch e.Op {
		case syntax.AndTest:
			ok, err := s.decide(e.X)
			if err != nil || !ok {
				return false, err
			}
			return s.decide(e.Y)
		case syntax.OrTest:
			ok, err := s.decide(e.X)
			if err != nil || ok {
				return ok, err
			}
			return s.decide(e.Y)
		}
		return s.binaryTest(e)
	}
	return false, nil
}

func (s *Shell) condString(e syntax.TestExpr) (string, error) {
	w, ok := e.(*syntax.Word)
	if !ok {
		return "", errors.New("syntax error in conditional expression")
	}
	x := s.Expander()
	return x.String(x.Word(w, expand.Single))
}

func (s *Shell) unaryTest(e *syntax.UnaryTest) (bool, error) {
	text, err := s.condString(e.X)
	if err != nil {
		return false, err
	}
	op := e.Op.String()
	if s.opt[oXtrace] {
		s.traceText("[[ " + op + " " + traced(text) + " ]]")
	}
	switch op {
	case "-n":
		return text != "", nil
	case "-z":
		return text == "", nil
	case "-e":
		op = "-a"
	case "-L":
		op = "-h"
	case "-v":
		return s.Expander().IsSet(text)
	}
	if len(op) != 2 {
		return false, errors.New("syntax error in conditional expression")
	}
	return s.conditions().Unary(op[1], text)
}

func (s *Shell) binaryTest(e *syntax.BinaryTest) (bool, error) {
	x := s.Expander()
	left, err := s.condString(e.X)
	if err != nil {
		return false, err
	}
	right, ok := e.Y.(*syntax.Word)
	if !ok {
		return false, errors.New("syntax error in conditional expression")
	}
	switch e.Op {
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		pat, err := x.Pattern(x.Word(right, expand.Pattern))
		if err != nil {
			return false, err
		}
		if s.opt[oXtrace] {
			s.traceText("[[ " + traced(left) + " " + e.Op.String() + " " + pat + " ]]")
		}
		ok, err := x.MatchCond(pat, left)
		return ok != (e.Op == syntax.TsNoMatch), err
	case syntax.TsReMatch:
		pat, err := x.Regex(x.Word(right, expand.Regex))
		if err != nil {
			return false, err
		}
		if s.opt[oXtrace] {
			s.traceText("[[ " + traced(left) + " =~ " + pat + " ]]")
		}
		return s.matchRegex(left, pat)
	}
	text, err := x.String(x.Word(right, expand.Single))
	if err != nil {
		return false, err
	}
	op := e.Op.String()
	if s.opt[oXtrace] {
		s.traceText("[[ " + traced(left) + " " + op + " " + traced(text) + " ]]")
	}
	h := s.conditions()
	h.Number = x.Evaluate
	return h.Binary(left, op, text)
}

func traced(s string) string {
	if s == "" {
		return "''"
	}
	return s
}

// matchRegex is =~, which sets BASH_REMATCH.
func (s *Shell) matchRegex(text, pat string) (bool, error) {
	r, err := s.Expander().Regexp(pat)
	if err != nil {
		return false, badRegex{err}
	}
	found, err := r.Find([]byte(text), 0, nil)
	if err != nil {
		return false, badRegex{err}
	}
	var groups []string
	for i := 0; i+1 < len(found); i += 2 {
		g := ""
		if found[i] >= 0 {
			g = text[found[i]:found[i+1]]
		}
		groups = append(groups, g)
	}
	if err := s.vars.SetValues("BASH_REMATCH", groups, 0, true); err != nil {
		s.complain("%s", err)
	}
	return found != nil, nil
}

func biLet(s *Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		s.complain("let: expression expected")
		return 1
	}
	var n int64
	for _, a := range args {
		var err error
		if n, err = s.Expander().Evaluate(a); err != nil {
			s.arithError("let", err)
			return 1
		}
	}
	return status(n != 0)
}
