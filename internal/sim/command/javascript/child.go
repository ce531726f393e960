package javascript

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A child is a program that a script started and does not wait for.
type child struct {
	id   int
	task *kernel.Task
	in   *kernel.Desc // what it reads, if the script feeds it
	out  [3]*tap      // what it writes, if the script listens
	told [3]bool      // the script knows that there is no more
}

// What a script may ask of a standard stream, besides descriptors of its own.
const (
	piped   = -1
	ignored = -2
)

func (p *program) childEntries() []entry {
	return []entry{
		{"run", p.runChild},
		{"spawn", p.spawnChild},
		{"event", p.event},
		{"feed", func(a args) (any, error) {
			c, ok := p.children[a.int(0)]
			if !ok || c.in == nil {
				return nil, failed(linux.EPIPE, "write", "", "")
			}
			b := append([]byte(nil), a.bytes(1)...)
			_, err := p.retry(func() (int, error) { return c.in.File.Write(p.t, b) })
			if err == linux.EPIPE {
				return nil, nil // it listens no more; its end will tell
			}
			return nil, failed(err, "write", "", "")
		}},
		{"feedEnd", func(a args) (any, error) {
			if c, ok := p.children[a.int(0)]; ok && c.in != nil {
				c.in.Drop()
				c.in = nil
			}
			return nil, nil
		}},
		{"killChild", func(a args) (any, error) {
			if c, ok := p.children[a.int(0)]; ok {
				c.task.Signal(linux.Signal(a.int(1)))
			}
			return nil, nil
		}},
	}
}

// A start is what a script says about a program to start.
type start struct {
	args, env []string
	dir       string
	stdio     [3]int
}

func (a args) start() start {
	s := start{args: a.e.Strings(a.value(0)), dir: a.str(2), stdio: [3]int{a.int(3), a.int(4), a.int(5)}}
	if s.env = a.e.Strings(a.value(1)); s.env == nil {
		s.env = []string{}
	}
	return s
}

// spawn starts a program, with what stands for its pipes.
func (p *program) spawn(s start, pipes [3]*kernel.Desc) (*kernel.Task, error) {
	clean := true
	for _, a := range s.args {
		clean = clean && !strings.Contains(a, "\x00")
	}
	if !clean || len(s.args) == 0 {
		return nil, linux.EINVAL
	}
	return p.t.Spawn(kernel.Command{Args: s.args, Env: s.env}, func(c *kernel.Task) error {
		own := c.FDs()
		for fd := range 3 {
			d := pipes[fd]
			switch n := s.stdio[fd]; {
			case n == ignored:
				opened, err := c.Open("/dev/null", linux.O_RDWR, 0)
				if err != nil {
					return err
				}
				d = opened
			case n >= 0:
				if d = p.t.FD(n); d == nil {
					return linux.EBADF
				}
			}
			if err := c.SetFD(fd, d, false); err != nil {
				return err
			}
		}
		for _, fd := range own {
			if fd > 2 {
				_ = c.CloseFD(fd) // it is open
			}
		}
		if s.dir != "" {
			return c.View.Chdir(s.dir)
		}
		return nil
	})
}

// refusal gives the name and number of an error of spawn.
func refusal(err error) (code string, number int) {
	var script *kernel.Script
	if errors.As(err, &script) {
		return "ENOEXEC", -int(linux.ENOEXEC)
	}
	var no linux.Errno
	if !errors.As(err, &no) {
		no = linux.ENOENT
	}
	code, _ = errnoName(no)
	return code, -int(no)
}

// runChild runs a program to its end. Its answer is [status, signal, whether
// it took too long, pid, error, stdout, stderr, errno].
func (p *program) runChild(a args) (any, error) {
	s := a.start()
	var pipes [3]*kernel.Desc
	var out [3]*kernel.Buffer
	if s.stdio[0] == piped {
		var input []byte
		if !a.none(6) {
			input = append(input, a.bytes(6)...)
		}
		pipes[0] = kernel.NewDesc(&given{b: input}, "pipe")
	}
	for fd := 1; fd <= 2; fd++ {
		if s.stdio[fd] == piped {
			pipes[fd], out[fd] = kernel.NewBuffer(min(p.t.K.Limits.String, p.t.K.Limits.ScriptHeap))
			defer out[fd].Free()
		}
	}
	c, err := p.spawn(s, pipes)
	none := quickjs.Undefined()
	if err != nil {
		code, number := refusal(err)
		return []quickjs.Value{p.e.Make(-1), p.e.Make(0), p.e.Make(false), p.e.Make(0), p.e.Make(code), none, none, p.e.Make(number)}, nil
	}
	late := false
	var deadline time.Time
	if ms := a.float(9); ms > 0 {
		deadline = time.Now().Add(time.Duration(ms * float64(time.Millisecond)))
	}
	for {
		err := p.t.Await(c.Done(), deadline)
		if err == nil {
			break
		}
		switch err {
		case linux.ETIMEDOUT:
			late, deadline = true, time.Time{}
			c.Signal(linux.Signal(a.int(10)))
		case linux.EINTR:
			p.takeSignals()
		default:
			return nil, failed(err, "write", "", "")
		}
	}
	st, _ := c.Status()
	answer := []quickjs.Value{p.e.Make(st.Code), p.e.Make(int(st.Signal)), p.e.Make(late), p.e.Make(c.PID), none}
	for fd := 1; fd <= 2; fd++ {
		if out[fd] == nil {
			answer = append(answer, none)
		} else {
			answer = append(answer, p.e.Make(out[fd].Bytes()))
		}
	}
	return answer, nil
}

// spawnChild starts a program. Its answer is [id, pid, error, errno].
func (p *program) spawnChild(a args) (any, error) {
	s := a.start()
	c := &child{}
	var pipes [3]*kernel.Desc
	if s.stdio[0] == piped {
		pipes[0], c.in = kernel.Pipe()
		c.in.Hold()
	}
	for fd := 1; fd <= 2; fd++ {
		if s.stdio[fd] == piped {
			_, b := kernel.NewBuffer(min(p.t.K.Limits.String, p.t.K.Limits.ScriptHeap))
			c.out[fd] = &tap{Buffer: b, p: p}
			pipes[fd] = kernel.NewDesc(c.out[fd], "pipe")
		}
	}
	task, err := p.spawn(s, pipes)
	if err != nil {
		if c.in != nil {
			c.in.Drop()
			pipes[0].Drop()
		}
		code, number := refusal(err)
		return []quickjs.Value{p.e.Make(0), p.e.Make(0), p.e.Make(code), p.e.Make(number)}, nil
	}
	p.nextID++
	c.id, c.task = p.nextID, task
	p.children[c.id] = c
	// It ends with the child, which the kernel ends and waits for.
	go func() {
		<-task.Done()
		p.poke()
	}()
	return []quickjs.Value{p.e.Make(c.id), p.e.Make(task.PID), quickjs.Undefined(), p.e.Make(0)}, nil
}

// event gives what happened to a child: [id, "out", stream, bytes or nothing
// at its end] or [id, "exit", status, signal].
func (p *program) event(args) (any, error) {
	for id := 1; id <= p.nextID; id++ {
		c, ok := p.children[id]
		if !ok {
			continue
		}
		for fd := 1; fd <= 2; fd++ {
			if c.out[fd] == nil || c.told[fd] {
				continue
			}
			b, end := c.out[fd].take()
			if len(b) > 0 {
				return []quickjs.Value{p.e.Make(id), p.e.Make("out"), p.e.Make(fd), p.e.Make(b)}, nil
			}
			if end {
				c.told[fd] = true
				return []quickjs.Value{p.e.Make(id), p.e.Make("out"), p.e.Make(fd), quickjs.Undefined()}, nil
			}
		}
		st, ended := c.task.Status()
		if !ended || c.out[1] != nil && !c.told[1] || c.out[2] != nil && !c.told[2] {
			continue
		}
		if c.in != nil {
			c.in.Drop()
		}
		delete(p.children, id)
		return []quickjs.Value{p.e.Make(id), p.e.Make("exit"), p.e.Make(st.Code), p.e.Make(int(st.Signal))}, nil
	}
	return nil, nil
}

// A given is a pipe that holds all it ever will.
type given struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (g *given) Read(_ *kernel.Task, p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, g.b)
	g.b = g.b[n:]
	return n, nil
}

// Peek shows what is left.
func (g *given) Peek(*kernel.Task) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.b) == 0 {
		return nil, io.EOF
	}
	return g.b, nil
}

// Discard takes n bytes.
func (g *given) Discard(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.b = g.b[min(n, len(g.b)):]
}

func (*given) Write(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

func (*given) Info() (vfs.Info, error) { return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil }

func (*given) Close() {}

// A tap is a pipe from which a script takes what a child writes.
type tap struct {
	*kernel.Buffer
	p     *program
	mu    sync.Mutex
	ended bool // guarded by mu
}

func (x *tap) Write(t *kernel.Task, b []byte) (int, error) {
	n, err := x.Buffer.Write(t, b)
	x.p.poke()
	return n, err
}

func (x *tap) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	x.p.poke()
}

func (x *tap) take() (b []byte, ended bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Take(), x.ended
}
