package shell

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A job is a command that runs, or ran, in the background.
type job struct {
	id      int // 0 of one that is not in the table
	task    *kernel.Task
	pid     int
	text    string
	hidden  bool // a process substitution: wait knows its number only
	told    bool // that it has ended
	nohup   bool
	waited  bool
	foreign bool // another shell's: it is shown but cannot be waited for
	status  kernel.Status
	ended   bool
}

// done reports whether the job has ended.
func (j *job) done() bool {
	if !j.ended && j.task != nil {
		if st, ok := j.task.Status(); ok {
			j.status, j.ended = st, true
			j.task = nil
		}
	}
	return j.ended
}

// A coprocess is the one that coproc started last.
type coprocess struct {
	name      string
	pid, r, w int
}

// jobs are the background commands of a shell.
type jobs struct {
	list   []*job // in the order in which they started
	order  []int  // numbers of jobs, the current one last
	coproc *coprocess
}

// maxRemembered is how many statuses of ended commands are kept.
const maxRemembered = 4096

func (j *jobs) add(x *job) {
	if len(j.list) >= maxRemembered {
		kept := j.list[:0]
		for _, o := range j.list {
			if !o.done() || o.id != 0 && !o.told {
				kept = append(kept, o)
			}
		}
		j.list = kept
	}
	j.list = append(j.list, x)
}

// inherit gives what a subshell knows: jobs can be listed, not waited for.
func (j *jobs) inherit() jobs {
	var c jobs
	for _, x := range j.list {
		if x.id != 0 && !x.done() {
			f := *x
			f.foreign = true
			c.list = append(c.list, &f)
			c.order = append(c.order, f.id)
		}
	}
	return c
}

// addJob puts a background command into the table.
func (s *Shell) addJob(t *kernel.Task, text string) {
	id := 0
	kept := s.jobs.list[:0]
	for _, j := range s.jobs.list {
		if j.foreign {
			continue
		}
		kept = append(kept, j)
		if j.id > id && (!j.done() || s.interactive) {
			id = j.id
		}
	}
	s.jobs.list = kept
	if !s.interactive {
		s.forgetDone()
	}
	s.jobs.add(&job{id: id + 1, task: t, pid: t.PID, text: text})
	s.jobs.order = append(s.jobs.order, id+1)
	if s.interactive {
		s.errout("[" + strconv.Itoa(id+1) + "] " + strconv.Itoa(t.PID) + "\n")
	}
}

// forgetDone takes ended jobs out of the table; their statuses stay for wait.
func (s *Shell) forgetDone() {
	for _, j := range s.jobs.list {
		if j.id != 0 && j.done() {
			s.retire(j)
		}
	}
}

func (s *Shell) retire(j *job) {
	for i, id := range s.jobs.order {
		if id == j.id {
			s.jobs.order = append(s.jobs.order[:i:i], s.jobs.order[i+1:]...)
			break
		}
	}
	j.id = 0
	j.told = true
}

// current gives the current and the previous job, or nil.
func (s *Shell) current() (now, before *job) {
	n := len(s.jobs.order)
	if n > 0 {
		now = s.jobByID(s.jobs.order[n-1])
	}
	if n > 1 {
		before = s.jobByID(s.jobs.order[n-2])
	}
	return now, before
}

func (s *Shell) jobByID(id int) *job {
	for _, j := range s.jobs.list {
		if j.id == id && id != 0 {
			return j
		}
	}
	return nil
}

func (s *Shell) jobByPID(pid int) *job {
	for i := len(s.jobs.list) - 1; i >= 0; i-- {
		if j := s.jobs.list[i]; j.pid == pid {
			return j
		}
	}
	return nil
}

// findJob finds what %spec means. The text is why there is none.
func (s *Shell) findJob(spec string) (*job, string) {
	name := strings.TrimPrefix(spec, "%")
	now, before := s.current()
	switch name {
	case "", "%", "+":
		if now == nil {
			return nil, "no such job"
		}
		return now, ""
	case "-":
		if before == nil {
			before = now
		}
		if before == nil {
			return nil, "no such job"
		}
		return before, ""
	}
	if n, err := strconv.Atoi(name); err == nil {
		if j := s.jobByID(n); j != nil {
			return j, ""
		}
		return nil, "no such job"
	}
	var found *job
	part, anywhere := strings.CutPrefix(name, "?")
	for _, j := range s.jobs.list {
		if j.id == 0 || !(strings.HasPrefix(j.text, name) || anywhere && strings.Contains(j.text, part)) {
			continue
		}
		if found != nil {
			return nil, "ambiguous job spec"
		}
		found = j
	}
	if found == nil {
		return nil, "no such job"
	}
	return found, ""
}

// jobName reports whether a command is a job by itself: "%1".
func (s *Shell) jobName(args []string) bool {
	return len(args) == 1 && len(args[0]) > 0 && args[0][0] == '%' && s.opt[oMonitor]
}

// state describes a job for jobs.
func (j *job) state() string {
	if !j.done() {
		if j.task != nil && j.task.Stopped() {
			return "Stopped"
		}
		return "Running"
	}
	switch {
	case j.status.Signal != 0:
		return signalText(j.status.Signal)
	case j.status.Code != 0:
		return "Exit " + strconv.Itoa(j.status.Code)
	}
	return "Done"
}

// line describes a job as jobs prints it.
func (s *Shell) jobLine(j *job, long bool) string {
	now, before := s.current()
	mark := " "
	switch j {
	case now:
		mark = "+"
	case before:
		mark = "-"
	}
	text := "[" + strconv.Itoa(j.id) + "]" + mark + " "
	if long {
		text += strconv.Itoa(j.pid) + " "
	} else {
		text += " "
	}
	state := j.state()
	if len(state) < 24 {
		state += strings.Repeat(" ", 24-len(state))
	}
	text += state + j.text
	if !j.done() && state[:7] == "Running" {
		text += " &"
	}
	return text + "\n"
}

func biJobs(s *Shell, args []string) int {
	var long, pids, changed, running, stopped bool
	o := getopt{s: s, args: args, spec: "lnprs"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'l':
			long = true
		case 'n':
			changed = true
		case 'p':
			pids = true
		case 'r':
			running = true
		case 's':
			stopped = true
		default:
			return o.usage("jobs: usage: jobs [-lnprs] [jobspec ...] or jobs -x command [args]")
		}
	}
	list := make([]*job, 0, len(s.jobs.list))
	st := 0
	if rest := o.rest(); len(rest) > 0 {
		for _, spec := range rest {
			j, why := s.findJob(spec)
			if j == nil {
				s.Warn("jobs: %s: %s", spec, why)
				st = 1
				continue
			}
			list = append(list, j)
		}
	} else {
		for _, j := range s.jobs.list {
			if j.id != 0 {
				list = append(list, j)
			}
		}
		sort.Slice(list, func(i, k int) bool { return list[i].id < list[k].id })
	}
	for _, j := range list {
		done := j.done()
		switch {
		case running && (done || j.state() != "Running"), stopped && j.state() != "Stopped", changed && !done:
			continue
		case pids:
			s.print(strconv.Itoa(j.pid) + "\n")
		default:
			s.print(s.jobLine(j, long))
		}
	}
	for _, j := range list {
		if j.done() {
			s.retire(j)
		}
	}
	return st
}

// wait waits for a job, and for what may interrupt that.
func (s *Shell) wait(j *job) (status int, interrupted bool) {
	for !j.done() {
		s.flushOut()
		if err := s.t.Await(j.task.Done(), time.Time{}); err != nil {
			if sig := s.t.Caught(); sig != 0 {
				s.caught(sig)
				return 128 + int(sig), true
			}
		}
	}
	if j.id != 0 {
		s.retire(j)
	}
	j.waited = true
	if s.jobs.coproc != nil && s.jobs.coproc.pid == j.pid {
		s.endCoproc()
	}
	s.childTrap(1)
	return j.status.Shell(), false
}

// endCoproc takes away the variables of a coprocess that has ended.
func (s *Shell) endCoproc() {
	c := s.jobs.coproc
	s.jobs.coproc = nil
	_ = s.t.CloseFD(c.r) // the script may have closed them
	_ = s.t.CloseFD(c.w)
	_ = s.vars.Unset(c.name) // it may be read-only: then it stays
	_ = s.vars.Unset(c.name + "_PID")
}

func biWait(s *Shell, args []string) int {
	next, force, name := false, false, ""
	o := getopt{s: s, args: args, spec: "fnp:"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'f':
			force = true
		case 'n':
			next = true
		case 'p':
			name = o.arg
		default:
			return o.usage("wait: usage: wait [-fn] [-p var] [id ...]")
		}
	}
	_ = force // a job that is stopped is waited for either way
	if name != "" {
		if err := s.vars.Unset(name); err != nil {
			s.Warn("wait: %s", err)
			return 1
		}
	}
	rest := o.rest()
	if next {
		return s.waitNext(rest, name)
	}
	if len(rest) == 0 {
		for _, j := range append([]*job(nil), s.jobs.list...) {
			if j.foreign {
				continue
			}
			if j.hidden && j.pid != s.lastPID {
				continue
			}
			st, interrupted := s.wait(j)
			if interrupted {
				return st
			}
		}
		return 0
	}
	st := 0
	for _, id := range rest {
		j, code := s.waitTarget(id)
		if j == nil {
			st = code
			continue
		}
		pid := j.pid
		var interrupted bool
		if st, interrupted = s.wait(j); interrupted {
			return st
		}
		if name != "" {
			if err := s.vars.Set(name, strconv.Itoa(pid)); err != nil {
				s.Warn("wait: %s", err)
			}
		}
	}
	return st
}

// waitTarget finds what wait was told to wait for, or complains.
func (s *Shell) waitTarget(id string) (*job, int) {
	if strings.HasPrefix(id, "%") {
		j, why := s.findJob(id)
		if j == nil || j.foreign {
			if why == "" {
				why = "no such job"
			}
			s.Warn("wait: %s: %s", id, why)
			return nil, 127
		}
		return j, 0
	}
	pid, err := strconv.Atoi(id)
	if err != nil || pid < 0 {
		s.Warn("wait: `%s': not a pid or valid job spec", id)
		return nil, 1
	}
	j := s.jobByPID(pid)
	if j == nil || j.foreign {
		s.Warn("wait: pid %d is not a child of this shell", pid)
		return nil, 127
	}
	return j, 0
}

// waitNext waits for whichever ends first.
func (s *Shell) waitNext(ids []string, name string) int {
	var list []*job
	if len(ids) == 0 {
		for _, j := range s.jobs.list {
			if !j.waited && !j.foreign && !j.hidden {
				list = append(list, j)
			}
		}
	}
	for _, id := range ids {
		if j, _ := s.waitTarget(id); j != nil && !j.waited {
			list = append(list, j)
		}
	}
	if len(list) == 0 {
		return 127
	}
	for {
		for _, j := range list {
			if !j.done() {
				continue
			}
			st, _ := s.wait(j)
			if name != "" {
				if err := s.vars.Set(name, strconv.Itoa(j.pid)); err != nil {
					s.Warn("wait: %s", err)
				}
			}
			return st
		}
		s.flushOut()
		err := s.t.Until(func() bool {
			for _, j := range list {
				if j.done() {
					return true
				}
			}
			return false
		})
		if err != nil {
			if sig := s.t.Caught(); sig != 0 {
				s.caught(sig)
				if sig != linux.SIGCHLD {
					return 128 + int(sig)
				}
			}
		}
	}
}

func biFg(s *Shell, args []string) int { return s.foreground(args, true) }

func biBg(s *Shell, args []string) int { return s.foreground(args, false) }

// foreground is fg and bg.
func (s *Shell) foreground(args []string, wait bool) int {
	name := args[0]
	if !s.opt[oMonitor] {
		s.Warn("%s: no job control", name)
		return 1
	}
	specs := args[1:]
	if len(specs) > 0 && specs[0] == "--" {
		specs = specs[1:]
	}
	if len(specs) == 0 {
		specs = []string{"%+"}
	}
	st := 0
	for _, spec := range specs {
		j, why := s.findJob(spec)
		if j == nil {
			if spec == "%+" {
				spec = "current"
			}
			s.Warn("%s: %s: %s", name, spec, why)
			return 1
		}
		if j.done() {
			s.Warn("%s: job has terminated", name)
			return 1
		}
		if !wait {
			s.print("[" + strconv.Itoa(j.id) + "]+ " + j.text + " &\n")
			j.task.Signal(linux.SIGCONT)
			continue
		}
		s.print(j.text + "\n")
		s.flushOut()
		back := s.lend(j)
		j.task.Signal(linux.SIGCONT)
		st, _ = s.wait(j)
		back()
	}
	return st
}

func biDisown(s *Shell, args []string) int {
	var all, hup, running bool
	o := getopt{s: s, args: args, spec: "ahr"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'a':
			all = true
		case 'h':
			hup = true
		case 'r':
			running = true
		default:
			return o.usage("disown: usage: disown [-h] [-ar] [jobspec ... | pid ...]")
		}
	}
	drop := func(j *job) {
		if hup {
			j.nohup = true
			return
		}
		s.retire(j)
		for i, x := range s.jobs.list {
			if x == j {
				s.jobs.list = append(s.jobs.list[:i:i], s.jobs.list[i+1:]...)
				break
			}
		}
	}
	rest := o.rest()
	if len(rest) == 0 {
		if all || running {
			for _, j := range append([]*job(nil), s.jobs.list...) {
				if j.id != 0 && (all || !j.done()) {
					drop(j)
				}
			}
			return 0
		}
		rest = []string{"%+"}
	}
	st := 0
	for _, spec := range rest {
		var j *job
		if pid, err := strconv.Atoi(spec); err == nil {
			if j = s.jobByPID(pid); j != nil && j.id == 0 {
				j = nil
			}
		} else {
			j, _ = s.findJob(spec)
		}
		if j == nil {
			if spec == "%+" {
				spec = "current"
			}
			s.Warn("disown: %s: no such job", spec)
			st = 1
			continue
		}
		drop(j)
	}
	return st
}

func biSuspend(s *Shell, args []string) int {
	force := len(args) > 1 && args[1] == "-f"
	if !force && !s.opt[oMonitor] {
		s.Warn("suspend: cannot suspend: no job control")
		return 1
	}
	s.t.Signal(linux.SIGSTOP)
	s.t.Check()
	return 0
}

func biKill(s *Shell, args []string) int {
	sig := linux.SIGTERM
	rest := args[1:]
	usage := "kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]"
	if len(rest) == 0 {
		s.line0(usage)
		return 2
	}
	switch a := rest[0]; {
	case a == "-l" || a == "-L":
		return s.killList(rest[1:])
	case a == "-s" || a == "-n":
		if len(rest) < 2 {
			s.Warn("kill: %s: option requires an argument", a)
			return 1
		}
		n, ok := findSignal(rest[1])
		if !ok {
			s.Warn("kill: %s: invalid signal specification", rest[1])
			return 1
		}
		sig, rest = n, rest[2:]
	case a == "--":
		rest = rest[1:]
	case len(a) > 1 && a[0] == '-':
		name := a[1:]
		if (name[0] == 's' || name[0] == 'n') && len(name) > 1 {
			if n, ok := findSignal(name[1:]); ok {
				sig, rest = n, rest[1:]
				break
			}
		}
		n, ok := findSignal(name)
		if !ok {
			s.Warn("kill: %s: invalid signal specification", name)
			return 1
		}
		sig, rest = n, rest[1:]
	}
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		s.line0(usage)
		return 2
	}
	good := false
	for _, a := range rest {
		if s.killOne(a, sig) {
			good = true
		}
	}
	s.t.Check()
	if good {
		return 0
	}
	return 1
}

// killOne signals a process, a group or a job.
func (s *Shell) killOne(a string, sig linux.Signal) bool {
	if strings.HasPrefix(a, "%") {
		j, why := s.findJob(a)
		if j == nil {
			s.Warn("kill: %s: %s", a, why)
			return false
		}
		if !j.done() {
			j.task.Signal(sig)
			return true
		}
		s.Warn("kill: (%d) - No such process", j.pid)
		return false
	}
	pid, err := strconv.Atoi(a)
	if err != nil {
		s.Warn("kill: %s: arguments must be process or job IDs", a)
		return false
	}
	if err := s.t.Kill(pid, sig); err != nil {
		s.Warn("kill: (%d) - %s", pid, message(err))
		return false
	}
	return true
}

func (s *Shell) killList(specs []string) int {
	if len(specs) == 0 {
		shown := 0
		for n := 1; n <= 64; n++ {
			name := signalName(linux.Signal(n))
			if name == "" {
				continue
			}
			s.printf("%2d) SIG%s", n, name)
			if shown++; shown%5 == 0 {
				s.print("\n")
			} else {
				s.print("\t")
			}
		}
		s.print("\n")
		return 0
	}
	st := 0
	for _, a := range specs {
		if n, err := strconv.Atoi(a); err == nil {
			if n > 128 {
				n -= 128
			}
			if n == 0 {
				s.print("EXIT\n")
				continue
			}
			if name := signalName(linux.Signal(n)); name != "" {
				s.print(name + "\n")
				continue
			}
		} else if sig, ok := findSignal(a); ok {
			s.print(strconv.Itoa(int(sig)) + "\n")
			continue
		}
		s.Warn("kill: %s: invalid signal specification", a)
		st = 1
	}
	return st
}

// tellSignal says that a command was killed, as bash does in scripts.
func (s *Shell) tellSignal(sig linux.Signal, pid int, text string) {
	if sig == linux.SIGINT || sig == linux.SIGPIPE {
		return
	}
	s.Warn("%5d %-24s%s", pid, signalText(sig), text)
}
