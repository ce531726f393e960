package shell

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// fields expands words as arguments and appends them to dst.
func (s *Shell) fields(dst []string, words []parse.Word) ([]string, error) {
	for i := range words {
		w := &words[i]
		if w.Fixed {
			dst = append(dst, w.Text)
			continue
		}
		var err error
		if dst, err = s.Expander().Fields(dst, w.X); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// single expands a word to one string.
func (s *Shell) single(w *parse.Word) (string, error) {
	if w.Fixed {
		return w.Text, nil
	}
	return s.Expander().String(w.X)
}

// match reports whether a value matches a pattern of case.
func (s *Shell) match(w *parse.Word, value string) (bool, error) {
	x := s.Expander()
	pat, err := x.Pattern(w.X)
	if err != nil {
		return false, err
	}
	return x.Match(pat, value)
}

// evalWord computes an arithmetic expression.
func (s *Shell) evalWord(e *parse.Expr) (int64, error) { return s.Expander().Eval(e.X) }

// Evaluate computes an arithmetic expression, for variables.
func (s *Shell) Evaluate(expr string) (int64, error) { return s.Expander().Evaluate(expr) }

// wordError tells of a word that could not be expanded, and gives up the
// command, its line or the shell, as bash does.
func (s *Shell) wordError(err error) int {
	s.flushOut()
	if s.flow != flowNone {
		// What was expanded ended the shell, or told already.
		return s.status
	}
	s.Warn("%s", err)
	return s.giveUp(err)
}

// giveUp ends what an error in an expansion ends.
func (s *Shell) giveUp(err error) int {
	s.status = 1
	var e *expand.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case expand.Unbound, expand.Unset:
			if !s.interactive {
				if s.command {
					s.status = 127
				}
				s.flow = flowExit
				return s.status
			}
		default:
		}
	}
	var v *variable.Error
	if assigning := errors.As(err, &v); s.opt[oPosix] && !s.interactive && (e != nil || assigning) {
		if s.command {
			s.status = 127
		}
		s.flow = flowExit
		return s.status
	}
	s.flow = flowDiscard
	if s.opt[oErrexit] && (v != nil || e != nil && (e.Kind == expand.Bad || e.Kind == expand.Indirect || e.Kind == expand.Assigning)) {
		// Whatever looks at the status.
		s.flow = flowExit
	}
	return s.status
}

// arithError tells of an expression that could not be computed; the command
// fails, and nothing else.
func (s *Shell) arithError(what string, err error) {
	s.flushOut()
	if s.flow != flowNone {
		return
	}
	var e *expand.Error
	if errors.As(err, &e) && (e.Kind == expand.Unbound || e.Kind == expand.Unset) {
		s.Warn("%s", err)
		s.giveUp(err)
		return
	}
	s.Warn("%s: %s", what, err)
	s.status = 1
}

// noElement complains of an element of an array that was to be assigned for one
// command, which bash does not do.
func (s *Shell) noElement(a *parse.Assign) {
	sub, _ := a.X.Subscript()
	s.Warn("`%s[%s]': not a valid identifier", a.Name, sub)
}

// assign makes one assignment of those before a command, or of a command that
// is nothing else. With temporary, it lasts as long as the command.
func (s *Shell) assign(a *parse.Assign, temporary bool) error {
	x := s.Expander()
	_, at := a.X.Subscript()
	if !temporary && !s.opt[oXtrace] && !s.opt[oAllexport] {
		return x.Assign(a.X)
	}
	if a.X.IsList() {
		if temporary {
			// What bash does: the variable holds the text.
			return s.vars.SetTemporary(a.Name, "()", false)
		}
		if s.opt[oXtrace] {
			_, list, _ := strings.Cut(a.Src, "=")
			s.traceAssign(a, list)
		}
		err := x.Assign(a.X)
		s.exportAll(a.Name, err)
		return err
	}
	value, err := x.Value(a.X)
	if err != nil {
		return err
	}
	if s.opt[oXtrace] {
		s.traceAssign(a, value)
	}
	if temporary && at {
		s.noElement(a)
		return nil
	}
	if temporary {
		return s.vars.SetTemporary(a.Name, value, a.X.Append)
	}
	err = x.AssignValue(a.X, value)
	s.exportAll(a.Name, err)
	return err
}

// exportAll exports what was assigned under set -a.
func (s *Shell) exportAll(name string, err error) {
	if s.opt[oAllexport] && err == nil {
		_ = s.vars.Declare(s.target(name), variable.Export, 0) // it could be assigned to
	}
}

// target follows a reference.
func (s *Shell) target(name string) string {
	r, err := s.vars.Resolve(name)
	if err != nil {
		return name
	}
	return r.Name
}

// setLoop assigns to the variable of a loop; a reference is pointed elsewhere.
func (s *Shell) setLoop(name, value string) error {
	if v := s.vars.Lookup(name); v != nil && v.Is(variable.NameRef) {
		if err := s.vars.Declare(name, 0, variable.NameRef); err != nil {
			return err
		}
		if err := s.vars.Set(name, value); err != nil {
			return err
		}
		return s.vars.Declare(name, variable.NameRef, 0)
	}
	err := s.vars.Set(name, value)
	s.exportAll(name, err)
	return err
}

// flushOut writes out what was printed; where that fails, the next write says
// so.
func (s *Shell) flushOut() { _ = s.flush() }
