package shell

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// forkTask forks the shell's task, or complains.
func (s *Shell) forkTask() *kernel.Task {
	s.flushOut()
	t, err := s.t.Fork()
	if err != nil {
		s.Warn("fork: %s", message(err))
		if !s.interactive {
			s.status, s.flow = forkStatus, flowExit // as bash does
		}
		return nil
	}
	return t
}

// forkStatus is what a command gives that could not be forked.
const forkStatus = 254

// inSubshell runs something in a subshell for which the shell waits.
func (s *Shell) inSubshell(run func(c *Shell) int) int {
	t := s.forkTask()
	if t == nil {
		return forkStatus
	}
	t.Nest = s.depth
	c := s.fork(t, false)
	st := t.Do(func(*kernel.Task) int { return c.main(run) })
	s.t.Check()
	if st.Signal != 0 {
		s.tellSignal(st.Signal, t.PID, "")
	}
	return st.Shell()
}

// mainBeside is main of a subshell that ran beside this one, and gives back its
// variables.
func (s *Shell) mainBeside(run func(c *Shell) int) int {
	st := s.main(run)
	s.vars.Release()
	return st
}

// main runs a subshell to its end.
func (s *Shell) main(run func(c *Shell) int) int {
	st := run(s)
	if s.flow != flowExit {
		s.status = st
		if s.flow == flowDiscard && st == 0 {
			s.status = 1
		}
	}
	s.exitTrap()
	s.flushOut()
	return s.status
}

func (s *Shell) subshell(c *parse.Subshell) int {
	s.line = c.Line
	s.t.Command()
	st := s.inSubshell(func(sub *Shell) int {
		sub.atTail(c.Body)
		return sub.list(c.Body)
	})
	s.status = st
	return s.failed(st)
}

// pipeline runs commands joined by pipes.
func (s *Shell) pipeline(c *parse.Pipeline) int {
	var began time.Time
	if c.Timed {
		began = time.Now()
	}
	var st int
	switch {
	case len(c.Cmds) == 0:
	case len(c.Cmds) == 1:
		ignored := c.Not && s.opt[oErrexit]
		if ignored {
			// As bash has it: within what is inverted, failures count if
			// set -e comes only there.
			s.ignore++
		}
		s.inverted = c.Not && checked(c.Cmds[0])
		st = s.run(c.Cmds[0])
		s.inverted = false
		if ignored {
			s.ignore--
		}
		if c.Not {
			if s.flow != flowNone {
				return st
			}
			s.pipe = []int{st}
		}
	default:
		if c.Not {
			s.ignore++
		}
		st = s.pipes(c)
		if c.Not {
			s.ignore--
		}
	}
	if c.Timed && s.flow == flowNone {
		s.tellTime(time.Since(began), c.Posix)
	}
	if c.Not {
		if st == 0 {
			st = 1
		} else {
			st = 0
		}
		s.status = st
		return st
	}
	s.status = st
	if len(c.Cmds) > 1 && st != 0 && s.ignore == 0 && s.flow == flowNone {
		if last := s.pipe[len(s.pipe)-1]; last != 0 && endsInSubshell(c) {
			s.errTrap(last) // bash runs it for both
		}
		return s.failure(st)
	}
	return st
}

// endsInSubshell reports whether the last command of a pipeline is a subshell.
func endsInSubshell(c *parse.Pipeline) bool {
	last := c.Cmds[len(c.Cmds)-1]
	if r, ok := last.(*parse.Redirected); ok {
		last = r.Body
	}
	_, ok := last.(*parse.Subshell)
	return ok
}

// checked tells commands whose own failure may end the shell.
func checked(c parse.Command) bool {
	switch c.(type) {
	case *parse.Simple, *parse.Subshell, *parse.Cond, *parse.Arith:
		return true
	}
	return false
}

// pipes runs the commands of a pipeline beside each other. The last runs on
// this goroutine.
func (s *Shell) pipes(c *parse.Pipeline) int {
	s.flushOut()
	n := len(c.Cmds)
	lastHere := s.opt[oLastpipe] && !s.opt[oMonitor]
	tasks := make([]*kernel.Task, 0, n)
	var in *kernel.Desc
	failed := false
	var lastStatus int
	for i, cmd := range c.Cmds {
		last := i == n-1
		if last && lastHere {
			lastStatus = s.lastOfPipe(cmd, in)
			in = nil
			break
		}
		if simple, ok := cmd.(*parse.Simple); ok && s.traps.debug != nil {
			s.line = simple.Line
			s.debugTrap(simple.Src)
		}
		s.line = c.Line
		t := s.forkTask()
		if t == nil {
			failed = true
			break
		}
		if in != nil {
			_ = t.SetFD(0, in, false) // 0 is within the limit
			in.Drop()
			in = nil
		}
		if !last {
			r, w := kernel.Pipe()
			r.Hold()
			in = r
			_ = t.SetFD(1, w, false)
		}
		t.Nest = s.depth
		sub := s.fork(t, lastHere)
		if simple, ok := cmd.(*parse.Simple); ok {
			sub.traps.debugged = true
			sub.tail = simple
			sub.level--
			sub.lazyLevel = true
		}
		sub.stdinGiven = i > 0
		run := func(*kernel.Task) int { return sub.main(func(sub *Shell) int { return sub.own(cmd) }) }
		tasks = append(tasks, t)
		if last {
			t.Do(run)
			break
		}
		t.Go(func(task *kernel.Task) int {
			st := run(task)
			sub.vars.Release()
			return st
		})
		// What starts first begins first, as far as it goes.
		runtime.Gosched()
	}
	if in != nil {
		in.Drop()
	}
	s.t.Check()
	statuses := make([]int, 0, n)
	for i, t := range tasks {
		st := s.waitTask(t)
		statuses = append(statuses, st.Shell())
		if st.Signal != 0 && st.Signal != linux.SIGPIPE && i == len(tasks)-1 {
			s.tellSignal(st.Signal, t.PID, c.Src)
		}
	}
	if failed {
		statuses = append(statuses, forkStatus)
	} else if lastHere {
		statuses = append(statuses, lastStatus)
	}
	return s.pipeStatus(statuses)
}

// own runs a command in a subshell that was made for it: one that would be a
// subshell by itself needs no other.
func (s *Shell) own(c parse.Command) int {
	sub, ok := c.(*parse.Subshell)
	if !ok {
		return s.run(c)
	}
	s.line = sub.Line
	s.t.Command()
	s.atTail(sub.Body)
	return s.list(sub.Body)
}

func (s *Shell) pipeStatus(statuses []int) int {
	st := statuses[len(statuses)-1]
	if s.opt[oPipefail] {
		for i := len(statuses) - 1; i >= 0; i-- {
			if statuses[i] != 0 {
				st = statuses[i]
				break
			}
		}
	}
	s.pipe = statuses
	return st
}

// lastOfPipe runs the last command of a pipeline in this shell.
func (s *Shell) lastOfPipe(cmd parse.Command, in *kernel.Desc) int {
	var u undo
	s.save(&u, 0)
	_ = s.t.SetFD(0, in, false)
	in.Drop()
	st := s.run(cmd)
	s.restore(u)
	return st
}

// waitTask waits for a task of the shell's own, through signals.
func (s *Shell) waitTask(t *kernel.Task) kernel.Status {
	for {
		st, err := s.t.Wait(t)
		if err == nil {
			return st
		}
		if sig := s.t.Caught(); sig != 0 {
			s.caughtLater(sig)
		}
	}
}

// tellTime prints what the time keyword does.
func (s *Shell) tellTime(real time.Duration, posix bool) {
	format, ok := s.vars.Get("TIMEFORMAT")
	switch {
	case posix || s.opt[oPosix] && !ok:
		format = "real %2R\nuser %2U\nsys %2S"
	case !ok:
		format = "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	case format == "":
		return
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		digits, long := 3, false
		if c := format[i]; c >= '0' && c <= '9' && i+1 < len(format) {
			digits = min(int(c-'0'), 3)
			i++
		}
		if format[i] == 'l' && i+1 < len(format) {
			long = true
			i++
		}
		switch format[i] {
		case '%':
			b.WriteByte('%')
		case 'R':
			b.WriteString(duration(real, digits, long))
		case 'U', 'S':
			b.WriteString(duration(0, digits, long))
		case 'P':
			b.WriteString("0.00")
		default:
			s.Warn("TIMEFORMAT: `%c': invalid format character", format[i])
			return
		}
	}
	s.errout(b.String() + "\n")
}

func duration(d time.Duration, digits int, long bool) string {
	secs := d.Seconds()
	if !long {
		return strconv.FormatFloat(secs, 'f', digits, 64)
	}
	minutes := int(secs) / 60
	return strconv.Itoa(minutes) + "m" + strconv.FormatFloat(secs-float64(60*minutes), 'f', digits, 64) + "s"
}

// async starts a command in the background.
func (s *Shell) async(c *parse.Async) int {
	s.line = c.Line
	s.t.Command()
	t := s.background(func(sub *Shell) int {
		if simple, ok := c.Cmd.(*parse.Simple); ok {
			sub.inverted, sub.tail = true, simple
		}
		return sub.own(c.Cmd)
	}, !s.opt[oMonitor] && !s.stdinGiven)
	if t == nil {
		s.status = forkStatus
		return forkStatus
	}
	s.addJob(t, oneLine(c.Cmd))
	s.status = 0
	return 0
}

// background starts a subshell beside this one. A quiet one does not read the
// standard input and does not hear the keyboard.
func (s *Shell) background(run func(sub *Shell) int, quiet bool) *kernel.Task {
	t := s.forkTask()
	if t == nil {
		return nil
	}
	if quiet {
		if d, err := t.Open("/dev/null", linux.O_RDONLY, 0); err == nil {
			_ = t.SetFD(0, d, false)
		}
		t.On(linux.SIGINT, kernel.Ignore)
		t.On(linux.SIGQUIT, kernel.Ignore)
	}
	if s.opt[oMonitor] {
		t.SetPGID(0)
	}
	sub := s.fork(t, true)
	t.Nest = 0
	t.Go(func(*kernel.Task) int { return sub.mainBeside(run) })
	s.lastPID = t.PID
	return t
}

// Substitute runs a command substitution and gives what it wrote, without
// NULs and the newlines at its end. Its status is kept for the command.
func (s *Shell) Substitute(c *syntax.CmdSubst) (string, error) {
	body := parse.SubstBody(c)
	if text, ok := s.contents(body); ok {
		return text, nil
	}
	limits := &s.t.K.Limits
	s.substs++
	s.t.Bound("substitution", int64(s.substs), limits.Substitution)
	defer func() { s.substs-- }()
	var text string
	st, err := s.capture(func(sub *Shell) int {
		if !sub.opt[oInheritErrexit] {
			sub.opt[oErrexit] = false
		}
		if body.List == nil {
			return sub.runText(body.Text, body.Line)
		}
		sub.atTail(body.List)
		return sub.list(body.List)
	}, func(out []byte) { text = clean(out) })
	if err != nil {
		return "", err
	}
	s.subst, s.status = st, st
	return text, nil
}

// capture runs something in a subshell and lets use have what it wrote, which is counted until use returns.
func (s *Shell) capture(run func(sub *Shell) int, use func([]byte)) (status int, err error) {
	t := s.forkTask()
	if t == nil {
		return forkStatus, linux.EAGAIN
	}
	d, buf := kernel.NewBuffer(s.t.K.Limits.String)
	defer buf.Free()
	_ = t.SetFD(1, d, false)
	t.Nest = s.depth
	sub := s.fork(t, false)
	sub.trace++
	st := t.Do(func(*kernel.Task) int { return sub.main(run) })
	s.t.Check()
	select {
	case <-buf.Closed():
	default:
		for s.t.Await(buf.Closed(), time.Time{}) != nil {
			if sig := s.t.Caught(); sig != 0 {
				s.caughtLater(sig)
			}
		}
	}
	use(buf.Bytes())
	return st.Shell(), nil
}

// clean takes NULs and the newlines at the end away.
func clean(b []byte) string {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == 0) {
		b = b[:len(b)-1]
	}
	if bytes.IndexByte(b, 0) >= 0 {
		b = bytes.ReplaceAll(b, []byte{0}, nil)
		for len(b) > 0 && b[len(b)-1] == '\n' {
			b = b[:len(b)-1]
		}
	}
	return string(b)
}

// contents is $(<file).
func (s *Shell) contents(body *parse.Body) (string, bool) {
	list := body.List
	if list == nil && strings.HasPrefix(strings.TrimLeft(body.Text, " \t"), "<") {
		list, _ = parse.New([]byte(body.Text), s.reading(body.Line)).Next() // what is wrong is told when it is run
	}
	if list == nil || len(list.Items) != 1 {
		return "", false
	}
	c, ok := list.Items[0].(*parse.Simple)
	if !ok || len(c.Words)+len(c.Assigns) > 0 || len(c.Redirs) != 1 || c.Redirs[0].Op != syntax.RdrIn || c.Redirs[0].FD > 0 {
		return "", false
	}
	s.subst = 1
	undo, err := s.redirect(c.Redirs)
	defer s.restore(undo)
	if err != nil {
		s.status = 1
		return "", true
	}
	d, out := kernel.NewBuffer(s.t.K.Limits.String)
	defer d.Drop()
	defer out.Free()
	buf := make([]byte, 64<<10)
	for {
		n, err := s.t.Read(0, buf)
		_, _ = out.Write(s.t, buf[:n]) // a limit ends the run
		if err == io.EOF {
			break
		}
		if err != nil {
			s.Warn("read error: 0: %s", message(err))
			s.status = 1
			return "", true
		}
	}
	s.subst, s.status = 0, 0
	return clean(out.Bytes()), true
}

// firstProcFD is where descriptors of process substitutions begin, downwards.
const firstProcFD = 63

// Process starts a process substitution and gives the file name for it.
func (s *Shell) Process(p *syntax.ProcSubst) (string, error) {
	body := parse.ProcBody(p)
	s.substs++
	s.t.Bound("substitution", int64(s.substs), s.t.K.Limits.Substitution)
	defer func() { s.substs-- }()
	r, w := kernel.Pipe()
	mine, its, fd := r, w, 1
	if p.Op == syntax.CmdOut {
		mine, its, fd = w, r, 0
	}
	mine.Hold()
	its.Hold()
	defer mine.Drop()
	t := s.forkTask()
	if t == nil {
		its.Drop()
		return "", linux.EAGAIN
	}
	_ = t.SetFD(fd, its, false)
	its.Drop()
	sub := s.fork(t, true)
	sub.trace++
	t.Nest, t.Aside = 0, true
	t.Go(func(*kernel.Task) int {
		return sub.mainBeside(func(c *Shell) int {
			c.atTail(body.List)
			return c.list(body.List)
		})
	})
	runtime.Gosched()
	s.lastPID = t.PID
	s.jobs.add(&job{task: t, pid: t.PID, hidden: true})
	own := firstProcFD
	for own > 10 && s.t.FD(own) != nil {
		own--
	}
	n, err := s.t.AddFD(mine, own, false)
	if err != nil {
		return "", err
	}
	s.procs = append(s.procs, n)
	return "/dev/fd/" + strconv.Itoa(n), nil
}

// closeProcs closes the process substitutions of a command that has ended.
func (s *Shell) closeProcs(mark int) {
	if len(s.procs) <= mark {
		return
	}
	for _, fd := range s.procs[mark:] {
		_ = s.t.CloseFD(fd) // the script may have closed it
	}
	s.procs = s.procs[:mark]
}

// coproc starts a coprocess.
func (s *Shell) coproc(c *parse.Coproc) int {
	s.line = c.Line
	s.t.Command()
	name := c.Name
	if name == "" {
		name = "COPROC"
	}
	if !parse.Name(name) {
		s.Warn("`%s': not a valid identifier", name)
		s.status = 1
		return s.failed(1)
	}
	fromR, fromW := kernel.Pipe()
	toR, toW := kernel.Pipe()
	for _, d := range []*kernel.Desc{fromR, fromW, toR, toW} {
		d.Hold()
		defer d.Drop()
	}
	t := s.forkTask()
	if t == nil {
		s.status = forkStatus
		return forkStatus
	}
	_ = t.SetFD(0, toR, false)
	_ = t.SetFD(1, fromW, false)
	sub := s.fork(t, true)
	t.Nest = 0
	t.Go(func(*kernel.Task) int { return sub.mainBeside(func(sub *Shell) int { return sub.run(c.Body) }) })
	s.lastPID = t.PID
	s.addJob(t, c.Src)
	r, err := s.t.AddFD(fromR, firstProcFD, true)
	if err != nil {
		return s.failed(1)
	}
	w, err := s.t.AddFD(toW, firstProcFD-3, true)
	if err != nil {
		return s.failed(1)
	}
	s.jobs.coproc = &coprocess{name: name, pid: t.PID, r: r, w: w}
	list := []variable.Element{{Value: strconv.Itoa(r)}, {Value: strconv.Itoa(w)}}
	if err := s.vars.SetList(name, list, false); err != nil {
		s.Warn("%s", err)
		_ = s.t.CloseFD(r)
		_ = s.t.CloseFD(w)
		s.status = 0
		return 0
	}
	if err := s.vars.Set(name+"_PID", strconv.Itoa(t.PID)); err != nil {
		s.Warn("%s", err)
	}
	s.status = 0
	return 0
}
