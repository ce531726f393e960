package shell

import (
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/readline"
)

// A conversation is a shell that a person types into.
type conversation struct {
	s      *Shell
	tty    *kernel.TTY      // nil where the standard input is none
	editor *readline.Editor // nil where lines are not edited
	fresh  bool             // the next line begins a command
	cut    bool             // the line was given up by Ctrl-C
	lines  int              // that were read
	text   []string         // lines of the command that is read
}

// terminal gives the terminal that a descriptor is.
func (s *Shell) terminal(fd int) *kernel.TTY {
	d := s.t.FD(fd)
	if d == nil {
		return nil
	}
	y, ok := d.TTY()
	if !ok {
		return nil
	}
	return y
}

// asks reports whether the shell talks to a person by itself: where nothing says
// otherwise, and both standard input and error are terminals.
func (s *Shell) asks(in invocation) bool {
	return !in.command && (in.stdin || len(in.rest) == 0) && s.terminal(0) != nil && s.terminal(2) != nil
}

// becomeInteractive changes what differs in an interactive shell.
func (s *Shell) becomeInteractive(in invocation) {
	s.interactive = true
	s.setOption(oExpandAliases, true)
	s.setOption(oHistory, true)
	if s.terminal(0) != nil {
		s.setOption(oMonitor, true)
	}
	for _, sig := range []linux.Signal{linux.SIGINT, linux.SIGTERM} {
		if s.t.Action(sig) == kernel.Default {
			s.t.On(sig, kernel.Catch)
		}
	}
	// A command that is stopped could not be brought back.
	for _, sig := range []linux.Signal{linux.SIGTSTP, linux.SIGTTIN, linux.SIGTTOU} {
		s.t.On(sig, kernel.Ignore)
	}
	home, _ := s.vars.Get("HOME")
	prompt := `\u@\h:\w\$ `
	if in.norc {
		prompt = `\s-\v\$ `
	}
	for name, value := range map[string]string{
		"PS1": prompt, "PS2": "> ", "HISTFILE": home + "/.bash_history", "HISTSIZE": "500", "HISTFILESIZE": "500",
	} {
		if _, set := s.vars.Get(name); !set {
			s.must(s.vars.Set(name, value))
		}
	}
	if file, ok := s.vars.Get("HISTFILE"); ok {
		if text, err := s.readFile(file); err == nil {
			for l := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
				if l != "" {
					s.addHistory(l)
				}
			}
		}
	}
	if !s.login && !in.norc {
		if in.rcfile != "" {
			s.startup(in.rcfile)
			return
		}
		s.startup("/etc/bash.bashrc")
		s.startup(home + "/.bashrc")
	}
}

// keyboard is what a signal does that kills others, and not a shell that
// talks to a person: the command that runs is given up.
func (s *Shell) keyboard(sig linux.Signal) bool {
	if !s.interactive || sig == linux.SIGHUP {
		return false
	}
	if sig == linux.SIGINT {
		s.errout("\n")
		s.status, s.last, s.pipe = 128+int(sig), 128+int(sig), nil
		s.flow = flowDiscard
	}
	return true
}

// converse reads commands from a person and runs them, until the end.
func (s *Shell) converse() {
	c := &conversation{s: s, tty: s.terminal(0)}
	if term, _ := s.vars.Get("TERM"); c.tty != nil && term != "dumb" {
		c.editor = readline.New(readline.Options{
			Read:     func(p []byte) (int, error) { return s.t.Read(0, p) },
			Write:    func(p []byte) error { _, err := s.t.Write(2, p); return err },
			Size:     c.tty.Size,
			Complete: s.complete,
		})
	}
	for s.flow != flowExit {
		if p := parse.NewReader(c.line, s.reading(c.lines+1)); !c.commands(p) {
			break
		}
	}
	if file, ok := s.vars.Get("HISTFILE"); ok && file != "" && len(s.history) > 0 {
		// Where it cannot be written, nobody can be told any more.
		_ = s.writeFile(file, strings.Join(s.history, "\n")+"\n", false)
	}
}

// commands runs what a parser reads; false is the end of input. After a line
// that could not be read it answers true, to be called with a new parser.
func (c *conversation) commands(p *parse.Parser) bool {
	s := c.s
	for {
		c.fresh, c.cut, c.text = true, false, c.text[:0]
		l, err := p.Next()
		switch {
		case c.cut:
			s.status, s.last, s.pipe = 130, 130, nil
			return true
		case err == io.EOF:
			if c.ignored() {
				return true
			}
			s.farewell()
			return false
		case err != nil:
			c.remember()
			s.unreadable(p, err, false)
			return s.flow != flowExit
		case l == nil:
			continue
		}
		c.remember()
		s.list(l)
		s.flushOut()
		if n, all := p.Size(); all && n > 0 {
			s.t.Shrink(n)
		}
		switch s.flow {
		case flowNone:
		case flowExit:
			return false
		case flowDiscard:
			if s.status == 0 {
				s.status = 1
			}
			s.flow = flowNone
			return true // without what else is on the line
		default:
			s.flow = flowNone
		}
		if s.opt[oOnecmd] {
			s.flow = flowExit
			return false
		}
	}
}

// ignored reports whether the end of input is no reason to leave.
func (c *conversation) ignored() bool {
	s := c.s
	if !s.opt[oIgnoreeof] || c.editor == nil {
		return false
	}
	s.errout("Use \"exit\" to leave the shell.\n")
	return true
}

// farewell is what bash says at its end.
func (s *Shell) farewell() {
	if s.interactive && s.level == 0 {
		if s.login {
			s.errout("logout\n")
		} else {
			s.errout("exit\n")
		}
	}
}

// line reads one line of a command, with its newline.
func (c *conversation) line() ([]byte, error) {
	s := c.s
	name := "PS2"
	if c.fresh {
		name = "PS1"
		c.between()
		if s.flow == flowExit {
			return nil, io.EOF
		}
	}
	prompt, _ := s.vars.Get(name)
	status := s.status
	prompt = s.Prompt(prompt)
	s.status = status
	text, err := c.read(prompt)
	switch {
	case errors.Is(err, readline.ErrInterrupted):
		c.cut = true
		return nil, err
	case err == io.EOF && text == "":
		return nil, io.EOF
	case err != nil && err != io.EOF:
		return nil, err
	}
	c.fresh = false
	c.lines++
	c.text = append(c.text, text)
	if s.opt[oVerbose] {
		s.errout(text + "\n")
	}
	return append([]byte(text), '\n'), nil
}

// between is what happens between two commands.
func (c *conversation) between() {
	s := c.s
	for {
		sig := s.t.Caught()
		if sig == 0 {
			break
		}
		s.caught(sig)
	}
	if s.flow == flowDiscard {
		s.flow = flowNone
	}
	s.tellJobs()
	if c.tty != nil {
		rows, cols := c.tty.Size()
		s.must(s.vars.Set("LINES", strconv.Itoa(rows)))
		s.must(s.vars.Set("COLUMNS", strconv.Itoa(cols)))
	}
	if text, ok := s.vars.Get("PROMPT_COMMAND"); ok && text != "" {
		status, last, pipe := s.status, s.last, s.pipe
		s.runText(text, s.line)
		s.flushOut()
		if s.flow != flowExit {
			s.status, s.last, s.pipe, s.flow = status, last, pipe, flowNone
		}
	}
}

// read shows a prompt and reads a line, without its newline.
func (c *conversation) read(prompt string) (string, error) {
	s := c.s
	if c.editor == nil {
		s.errout(prompt)
		for {
			text, err := s.readLine(0)
			if err != linux.EINTR {
				return text, err
			}
			if c.interrupted() {
				return "", readline.ErrInterrupted
			}
		}
	}
	modes := c.tty.Modes()
	c.tty.SetModes(kernel.Modes{NewlineIn: modes.NewlineIn})
	defer c.tty.SetModes(modes)
	for {
		text, err := c.editor.Line(prompt, s.history)
		s.t.Run.Renew()
		if !errors.Is(err, linux.EINTR) {
			return text, err
		}
		if c.interrupted() {
			return "", readline.ErrInterrupted
		}
	}
}

// interrupted takes in a signal that came while a line was read, and tells
// whether the line is to be given up.
func (c *conversation) interrupted() bool {
	s := c.s
	for sig := s.t.Caught(); sig != 0; sig = s.t.Caught() {
		s.caught(sig)
	}
	cut := s.flow == flowDiscard
	if cut {
		s.flow = flowNone
	}
	return cut || s.flow != flowNone
}

// remember puts the command that was read into the history.
func (c *conversation) remember() {
	s := c.s
	text := strings.Join(c.text, "\n")
	if strings.TrimSpace(text) == "" || !s.opt[oHistory] {
		return
	}
	control, _ := s.vars.Get("HISTCONTROL")
	for word := range strings.SplitSeq(control, ":") {
		if (word == "ignorespace" || word == "ignoreboth") && text[0] == ' ' {
			return
		}
		if (word == "ignoredups" || word == "ignoreboth") && len(s.history) > 0 && s.history[len(s.history)-1] == text {
			return
		}
		if word == "erasedups" {
			s.history = slices.DeleteFunc(slices.Clone(s.history), func(old string) bool { return old == text })
		}
	}
	s.addHistory(text)
}

// tellJobs tells of background commands that have ended.
func (s *Shell) tellJobs() {
	for _, j := range slices.Clone(s.jobs.list) {
		if j.id != 0 && !j.foreign && j.done() {
			s.errout(s.jobLine(j, false))
			s.retire(j)
		}
	}
}

// lend gives the terminal to a job that comes to the foreground; back takes it
// back.
func (s *Shell) lend(j *job) (back func()) {
	y := s.terminal(0)
	if y == nil || j.task == nil || y.Foreground() != s.t.PGID() {
		return func() {}
	}
	y.SetForeground(j.task.PGID())
	return func() { y.SetForeground(s.t.PGID()) }
}

// messageName is what an interactive shell's messages begin with.
func (s *Shell) messageName() string { return path.Base(strings.TrimPrefix(s.name, "-")) }
