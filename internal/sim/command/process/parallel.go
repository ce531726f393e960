package process

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A parallel is a run of GNU parallel's tool.
type parallel struct {
	t     *kernel.Task
	shell string
	parts []part // of the command; empty is that the arguments are commands
	bare  bool   // there is no command
	names []string
	marks marks

	jobs            int
	keep, ungroup   bool
	byLine, dry     bool
	verbose         byte // v, t or 0
	tag             []part
	delim           byte
	end             string
	hasEnd          bool
	most, lines     int // arguments and lines for one job; 0 is one
	noArgs          bool
	context, many   bool // -X; -X or -m
	spread          bool // what is left is spread over the jobs
	chars           int
	noEmpty, link   bool
	header, shuf    bool
	trims           string
	pipe            bool
	block, records  int
	recEnd          string
	timeout, delay  time.Duration
	retries         int
	dir             string
	results         string
	logName         string
	halt            halt
	quoted          bool // -q
	resume, retryOf bool

	journal  *command.Output
	seen     map[int]bool // --resume: jobs that have run
	outs     [2]*gateway
	deaf     bool // the input is read already
	first    bool // no job has been started yet
	last     time.Time
	running  []*job
	again    []*job
	held     map[int]*job
	turn     int
	seq      int
	count    int
	fails    int
	final    int
	hasFinal bool
	stop     bool
	broken   bool
}

// A halt says when to end before all is done.
type halt struct {
	when, what      string // now or soon; fail, success or done
	number, percent int
}

// manyJobs is how many jobs -j 0 runs at a time.
const manyJobs = 250

func runParallel(t *kernel.Task) int {
	p := &parallel{
		t: t, marks: usual(), jobs: processors(t), delim: '\n', chars: 128 << 10, block: 1 << 20, recEnd: "\n", retries: 1,
		held: map[int]*job{}, turn: 1, first: true, trims: "", outs: [2]*gateway{},
	}
	if p.shell = t.Getenv("PARALLEL_SHELL"); p.shell == "" {
		if p.shell = t.Getenv("SHELL"); p.shell == "" {
			p.shell = "bash"
		}
	}
	args := t.Args[1:]
	if own := strings.Fields(t.Getenv("PARALLEL")); len(own) > 0 {
		args = slices.Concat(own, args)
	}
	o, status, ok := p.options(args)
	if !ok {
		return status
	}
	cmd, list := sources(o.rest, o.sep, o.fileSep)
	for _, name := range o.files {
		list = append(list, &source{file: name, isFile: true})
	}
	if len(list) == 0 {
		list = []*source{{file: "-", isFile: true}}
	}
	for _, s := range list {
		p.deaf = p.deaf || s.isFile && s.file == "-"
	}
	p.bare = len(cmd) == 0
	for i, fd := range []int{1, 2} {
		if d := t.FD(fd); d != nil {
			p.outs[i] = &gateway{d, make(chan struct{}, 1)}
			p.outs[i].turn <- struct{}{}
		} else {
			p.byLine = false
		}
	}
	defer p.forget()
	if !p.openLog() {
		return 255
	}
	if p.pipe {
		return p.pipes(cmd, list)
	}
	f := &feed{p: p, colsep: o.colsep}
	defer f.close()
	if !f.open(list) {
		return 255
	}
	if !p.compile(cmd) {
		return 255
	}
	for !p.stop {
		records, more := p.gather(f)
		if !more {
			break
		}
		p.submit(&job{records: records})
	}
	return p.finish()
}

// compile makes a template of the command.
func (p *parallel) compile(cmd []string) bool {
	if p.bare {
		p.parts = []part{{kind: "", is: true}}
		return true
	}
	if p.quoted {
		var parts []part
		for i, w := range cmd {
			if i > 0 {
				parts = append(parts, part{text: " "})
			}
			inner := p.marks.split(w, p.names)
			if len(inner) == 0 {
				inner = []part{{}}
			}
			for _, x := range inner {
				if !x.is {
					x.text = shielded(x.text)
				}
				parts = append(parts, x)
			}
		}
		p.parts = parts
	} else {
		p.parts = p.marks.split(strings.Join(cmd, " "), p.names)
	}
	for _, w := range cmd {
		if strings.Contains(w, "{= ") && strings.Contains(w, "=}") {
			p.t.Errorf("Error: {= perl expressions =} are not available in this sandbox.")
			return false
		}
	}
	if !has(p.parts) && !p.pipe {
		p.parts = append(p.parts, part{text: " "}, part{is: true})
	}
	return true
}

// command writes what the shell runs for a job.
func (p *parallel) command(j *job) string {
	args := j.args
	b := kernel.NewText(p.t)
	if p.noArgs {
		args = nil
	}
	if !p.context {
		fill(b, p.parts, args, j.seq, j.slot, !p.bare)
		return strings.TrimRight(b.Text(), " ")
	}
	for _, word := range words(p.parts) {
		if !has(word) {
			fill(b, word, args, j.seq, j.slot, true)
			continue
		}
		for i := range args {
			if i > 0 {
				b.Byte(' ')
			}
			fill(b, word, args[i:i+1], j.seq, j.slot, true)
		}
	}
	return b.Text()
}

func (p *parallel) tagOf(j *job) string {
	if p.tag == nil {
		return ""
	}
	b := kernel.NewText(p.t)
	fill(b, p.tag, j.args, j.seq, j.slot, false)
	return b.Text()
}

// gather takes the records of one job.
func (p *parallel) gather(f *feed) ([][]string, bool) {
	if p.most <= 1 && p.lines <= 1 && !p.many {
		r, ok := f.next()
		return [][]string{r}, ok
	}
	most := max(p.most, p.lines)
	if most == 0 {
		most = math.MaxInt
	}
	var list [][]string
	length := 0
	for _, x := range p.parts {
		length += len(x.text)
	}
	for len(list) < most {
		r, ok := f.next()
		if !ok {
			if p.spread && len(list) > 0 {
				list = p.share(f, list)
			}
			break
		}
		n := 0
		for _, s := range r {
			n += len(shielded(s)) + 1
		}
		if p.context {
			for _, x := range p.parts {
				n += len(x.text)
			}
		}
		if length+n > p.chars && len(list) > 0 {
			f.back = append(f.back, r)
			break
		}
		length += n
		list = append(list, r)
	}
	return list, len(list) > 0
}

// share gives back what the other jobs shall have of the last arguments.
func (p *parallel) share(f *feed, list [][]string) [][]string {
	p.spread = false
	n := (len(list) + p.jobs - 1) / p.jobs
	if n >= len(list) {
		return list
	}
	f.back = append(slices.Clone(list[n:]), f.back...)
	p.most = n
	return list[:n]
}

// submit runs a job when its turn has come.
func (p *parallel) submit(j *job) {
	p.seq++
	j.seq = p.seq
	p.t.Step(8)
	if p.seen[j.seq] {
		if p.keep && p.turn == j.seq {
			p.turn++
		}
		return
	}
	if p.dry {
		j.slot = 1
		j.args = flat(j.records)
		line := p.command(j)
		_, _ = p.t.Out().Write(tagged(p.tagOf(j), []byte(line+"\n"))) // the end of the program tells of it
		return
	}
	for !p.stop && len(p.again) > 0 {
		first := p.again[0]
		p.again = p.again[1:]
		p.launch(first)
	}
	p.launch(j)
}

// launch starts a job as soon as there is room for it.
func (p *parallel) launch(j *job) {
	for len(p.running) >= p.jobs && !p.stop {
		p.reap(time.Time{})
	}
	if p.delay > 0 && !p.last.IsZero() {
		for at := p.last.Add(p.delay); !p.stop && time.Now().Before(at); {
			p.reap(at)
		}
	}
	for !p.stop {
		err := p.start(j)
		switch {
		case err == nil:
			return
		case errors.Is(err, linux.EAGAIN) && len(p.running) > 0:
			p.reap(time.Time{})
		case errors.Is(err, linux.E2BIG):
			p.t.Errorf("Error: Command line too long (%d >= %d) at input %d.", len(j.line), p.chars, j.seq)
			p.stop, p.broken = true, true
		default:
			p.t.Errorf("Error: Cannot run %s: %s.", p.shell, reason(err))
			p.stop, p.broken = true, true
		}
	}
}

// finish waits for all jobs and gives the status.
func (p *parallel) finish() int {
	for len(p.running) > 0 || len(p.again) > 0 && !p.stop {
		if p.broken {
			break
		}
		if len(p.again) > 0 && !p.stop {
			j := p.again[0]
			p.again = p.again[1:]
			p.launch(j)
			continue
		}
		p.reap(time.Time{})
	}
	if p.keep { // jobs that never ran leave gaps
		for seq := p.turn; seq <= p.seq && len(p.held) > 0; seq++ {
			if j, ok := p.held[seq]; ok {
				delete(p.held, seq)
				p.show(j)
			}
		}
	}
	switch {
	case p.broken:
		return 255
	case p.hasFinal:
		return p.final
	}
	return min(p.fails, 101)
}

// forget lets go of what the jobs have written, however parallel ends.
func (p *parallel) forget() {
	for _, j := range p.running {
		j.out.drop()
		j.errs.drop()
	}
	for _, j := range p.held {
		j.out.drop()
		j.errs.drop()
	}
	if p.journal != nil {
		_ = p.journal.Close() // every write was looked at
	}
}

// pipes runs jobs on blocks of the input.
func (p *parallel) pipes(cmd []string, list []*source) int {
	if p.bare {
		p.t.Errorf("Error: --pipe needs a command.")
		return 255
	}
	if !p.compile(cmd) {
		return 255
	}
	p.deaf = true
	for _, s := range list {
		if !s.isFile {
			p.t.Errorf("Error: --pipe reads standard input or -a, not arguments.")
			return 255
		}
		in, err := command.OpenReader(p.t, s.file)
		if err != nil {
			p.t.Errorf("Error: Cannot open input file `%s': %s.", s.file, reason(err))
			return 255
		}
		p.blocks(in)
		if p.stop {
			break
		}
	}
	return p.finish()
}

func (p *parallel) blocks(in *command.Reader) {
	defer in.Close()
	c := &chop{p: p, in: in}
	if p.header {
		line, ended, ok := in.Line('\n')
		if ok {
			c.head = slices.Clone(line)
			if ended {
				c.head = append(c.head, '\n')
			}
		}
	}
	for !p.stop {
		b, ok := c.next()
		if !ok {
			return
		}
		p.t.Grow(len(b))
		p.submit(&job{input: b})
	}
}

// openLog begins the --joblog.
func (p *parallel) openLog() bool {
	if p.logName == "" {
		return true
	}
	name, add := strings.CutPrefix(p.logName, "+")
	flags := linux.O_TRUNC
	if add || p.resume {
		flags = linux.O_APPEND
	}
	if p.resume && !p.recall(name) {
		return false
	}
	i, err := p.t.View.Stat(name)
	fresh := err != nil || flags == linux.O_TRUNC || i.Size == 0
	if p.journal, err = command.Create(p.t, name, flags); err == nil && fresh {
		_, err = p.journal.Write([]byte("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"))
	}
	if err != nil {
		p.t.Errorf("Error: Cannot write to --joblog %s: %s.", name, reason(err))
		return false
	}
	return true
}

// recall reads which jobs of a --joblog need not run again.
func (p *parallel) recall(name string) bool {
	b, err := command.ReadAll(p.t, name)
	if errors.Is(err, linux.ENOENT) {
		return true
	}
	if err != nil {
		p.t.Errorf("Error: Cannot read --joblog %s: %s.", name, reason(err))
		return false
	}
	p.seen = map[int]bool{}
	for line := range strings.SplitSeq(string(b), "\n") {
		p.t.Step(8)
		f := strings.SplitN(line, "\t", 9)
		if len(f) < 9 {
			continue
		}
		if seq, err := strconv.Atoi(f[0]); err == nil {
			p.t.Grow(16)
			p.seen[seq] = !p.retryOf || f[6] == "0" && f[7] == "0"
		}
	}
	return true
}

// save writes a job's output to the files of --results.
func (p *parallel) save(j *job, out, errs []byte) {
	base := p.results
	outName, errName, seqName := "stdout", "stderr", "seq"
	if parts := p.marks.split(base, p.names); slices.ContainsFunc(parts, func(x part) bool { return x.is }) {
		b := kernel.NewText(p.t)
		fill(b, parts, j.args, j.seq, j.slot, false)
		base = b.Text()
		if !strings.HasSuffix(base, "/") {
			outName, errName, seqName = base, base+".err", base+".seq"
			base = "."
			if i := strings.LastIndexByte(outName, '/'); i > 0 {
				base = outName[:i]
			}
		}
	} else {
		escape := strings.NewReplacer(`\`, `\\`, "/", `\_`, "\t", `\t`, "\x00", `\0`)
		names := j.args
		for i, a := range names {
			label := strconv.Itoa(i + 1)
			if i < len(p.names) {
				label = escape.Replace(p.names[i])
			}
			base += "/" + label + "/" + escape.Replace(a)
		}
	}
	if err := p.t.View.MkdirAll(base, 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
		p.t.Errorf("Error: Cannot make dir %s: %s.", base, reason(err))
		p.stop, p.broken = true, true
		return
	}
	for _, file := range []struct {
		name string
		text []byte
	}{{outName, out}, {errName, errs}, {seqName, []byte(strconv.Itoa(j.seq))}} {
		name := file.name
		if !strings.Contains(name, "/") {
			name = strings.TrimRight(base, "/") + "/" + name
		}
		w, err := command.Create(p.t, name, linux.O_TRUNC)
		if err == nil {
			_, err = w.Write(file.text)
			_ = w.Close() // the write was looked at
		}
		if err != nil {
			p.t.Errorf("Error: Cannot write to %s: %s.", name, reason(err))
			p.stop, p.broken = true, true
			return
		}
	}
}
