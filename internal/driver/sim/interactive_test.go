package sim_test

import (
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// A person types into a shell's terminal and reads what it shows.
type person struct {
	t       *testing.T
	sandbox paddock.Sandbox
	process paddock.Process

	mu    sync.Mutex
	shown strings.Builder // guarded by mu
	more  chan struct{}   // guarded by mu: closed when more is shown
	seen  int             // of what was shown, what was waited for
}

func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown.Write(b)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

// sit starts a command in a terminal, in a new sandbox or one that is there.
func sit(t *testing.T, sb paddock.Sandbox, args ...string) *person {
	t.Helper()
	if sb == nil {
		d, err := sim.New(sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		if sb, err = d.Create(t.Context(), paddock.Spec{}); err != nil {
			t.Fatal(err)
		}
	}
	p := &person{t: t, sandbox: sb, more: make(chan struct{})}
	var err error
	p.process, err = sb.Start(t.Context(), paddock.Cmd{
		Args: args, Input: true, Terminal: &paddock.Size{Rows: 24, Cols: 80}, Output: paddock.Output{Stdout: p},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.process.Input(), keys); err != nil {
		p.t.Fatalf("type %q: %v", keys, err)
	}
}

// plain takes out what moves the cursor and changes modes, up to a sequence
// that is not all there yet.
func plain(shown string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(shown, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		i := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		if i < 0 {
			return b.String()
		}
		shown = after[i+1:]
	}
}

// sees waits until something is shown, after what was waited for before.
func (p *person) sees(text string) {
	p.t.Helper()
	late := time.After(3 * time.Minute)
	for {
		p.mu.Lock()
		shown, more := plain(p.shown.String()), p.more
		p.mu.Unlock()
		if i := strings.Index(shown[p.seen:], text); i >= 0 {
			p.seen += i + len(text)
			return
		}
		select {
		case <-more:
		case <-late:
			p.t.Fatalf("%q is not shown after %q, but %q", text, shown[:p.seen], shown[p.seen:])
		}
	}
}

func (p *person) leaves(status int) {
	p.t.Helper()
	exit, err := p.process.Wait(p.t.Context())
	if err != nil || exit.Code != status {
		p.t.Errorf("it ended with %+v, %v; want %d; shown:\n%q", exit, err, status, p.shown.String())
	}
}

const prompt = "user@paddock:~$ "

func TestAPersonWorksInAShell(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(p *person)
	}{
		{"a command, its output, the next prompt", func(p *person) {
			p.types("echo $((6*7))\r")
			p.sees("\r\n42\r\n")
			p.sees(prompt)
		}},
		{"a command in several lines", func(p *person) {
			p.types("for i in 1 2\r")
			p.sees("> ")
			p.types("do echo =$i; done\r")
			p.sees("\r\n=1\r\n=2\r\n")
			p.sees(prompt)
			p.types("\x1b[A\r") // comes back as a whole
			p.sees("\r\n=1\r\n=2\r\n")
			p.sees(prompt)
		}},
		{"the line can be edited", func(p *person) {
			p.types("ecko x\x01\x06\x06\x1b[3~h\r")
			p.sees("\r\nx\r\n")
		}},
		{"^C gives a line up, with status 130", func(p *person) {
			p.types("echo one\x03")
			p.sees("^C\r\n")
			p.sees(prompt)
			p.types("echo =$?\r")
			p.sees("=130\r\n")
		}},
		{"^C gives up a command of several lines", func(p *person) {
			p.types("if true\r")
			p.sees("> ")
			p.types("\x03")
			p.sees(prompt)
			p.types("echo good\r")
			p.sees("\r\ngood\r\n")
		}},
		{"^C ends a loop of the shell's own", func(p *person) {
			p.types("echo begun; while :; do :; done; echo after\r")
			p.sees("begun\r\n")
			p.types("\x03")
			p.sees(prompt)
			p.types("echo =$?\r")
			p.sees("=130\r\n")
		}},
		{"^C ends a program, and the rest of the line", func(p *person) {
			p.types("echo begun; sleep 100; echo after\r")
			p.sees("begun\r\n")
			p.types("\x03")
			p.sees(prompt)
			p.types("echo =$?\r")
			p.sees("=130\r\n")
		}},
		{"^C does not end what runs in the background", func(p *person) {
			p.types("sleep 100 &\r")
			p.sees("[1] ")
			p.sees(prompt)
			p.types("\x03")
			p.sees(prompt)
			p.types("jobs\r")
			p.sees("[1]+  Running")
			p.types("kill %1; wait\r")
			p.sees(prompt)
		}},
		{"the end of a background command is told", func(p *person) {
			p.types("mkfifo gate; read x <gate &\r")
			p.sees("[1] ")
			p.types("echo >gate; while [ -e /proc/$! ]; do :; done\r")
			p.sees("[1]+  Done ")
			p.sees("read x < gate\r\n")
		}},
		{"a syntax error is told, and the shell goes on", func(p *person) {
			p.types("echo )\r")
			p.sees("bash: syntax error near unexpected token `)'\r\n")
			p.sees(prompt)
			p.types("echo =$?\r")
			p.sees("=2\r\n")
		}},
		{"an error in a word gives up the line only", func(p *person) {
			p.types("echo ${nothing:?is not set}; echo after\r")
			p.sees("bash: nothing: is not set\r\n")
			p.sees(prompt)
			p.types("set -u; echo $nothing\r")
			p.sees("bash: nothing: unbound variable\r\n")
			p.sees(prompt)
		}},
		{"a command that reads gets what is typed then", func(p *person) {
			p.types("cat\r")
			p.types("hello\r\x04")
			p.sees("\r\nhello\r\nhello\r\n")
			p.sees(prompt)
		}},
		{"what is typed ahead is not lost", func(p *person) {
			p.types("read a\rfirst\recho $a-$a\r")
			p.sees("first-first\r\n")
		}},
		{"Tab completes commands, files and variables", func(p *person) {
			p.types("mkdir -p some/dir; echo found >'some/dir/a file'\r")
			p.sees(prompt)
			p.types("basena\t/x/name\r")
			p.sees("\r\nname\r\n")
			p.types("cat so\td\ta\t\r")
			p.sees(`some/dir/a\ file`)
			p.sees("\r\nfound\r\n")
			p.types("cat 'so\td\ta\t\r")
			p.sees("\r\nfound\r\n")
			p.types("cat \"~/so\t\x03")
			p.sees(prompt)
			p.types("cat ~/so\td\ta\t\r")
			p.sees("\r\nfound\r\n")
			p.types("echo $LOGN\t\r")
			p.sees("\r\nuser\r\n")
			p.types("echo $(basena\t/y/other)\r")
			p.sees("\r\nother\r\n")
		}},
		{"the prompt tells the directory and the status", func(p *person) {
			p.types("cd /tmp; PS1='<$?:\\w> '\r")
			p.sees("<0:/tmp> ")
			p.types("false\r")
			p.sees("<1:/tmp> ")
			p.types("mkdir '$(echo evil)'; cd *evil*\r")
			p.sees("/tmp/$(echo evil)> ")
			p.types("PROMPT_COMMAND='echo before'\r")
			p.sees("before\r\n")
			p.sees("/tmp/$(echo evil)> ")
		}},
		{"the size of the terminal is known", func(p *person) {
			if err := p.process.Resize(p.t.Context(), paddock.Size{Rows: 50, Cols: 132}); err != nil {
				p.t.Fatal(err)
			}
			p.types("\r")
			p.sees(prompt)
			p.types("echo $LINES $COLUMNS\r")
			p.sees("\r\n50 132\r\n")
		}},
		{"it ignores what ends others", func(p *person) {
			p.types("kill -TERM $$; kill -TSTP $$; kill -INT $$; echo here\r")
			p.sees(prompt)
			p.types("echo still\r")
			p.sees("\r\nstill\r\n")
			if err := p.process.Signal(p.t.Context(), syscall.SIGINT); err != nil {
				p.t.Fatal(err)
			}
			p.sees(prompt)
		}},
		{"a trap for ^C runs", func(p *person) {
			p.types("trap 'echo trapped' INT\r")
			p.sees(prompt)
			p.types("echo go; read x\r")
			p.sees("\r\ngo\r\n")
			p.types("\x03")
			p.sees("trapped\r\n")
			p.types("\r")
			p.sees(prompt)
		}},
		{"aliases are known", func(p *person) {
			p.types("alias hi='echo hello'\r")
			p.sees(prompt)
			p.types("hi you\r")
			p.sees("\r\nhello you\r\n")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := sit(t, nil, "bash")
			p.sees(prompt)
			row.do(p)
			p.types("\x03")
			p.types("exit 7\r")
			p.sees("exit\r\n")
			p.leaves(7)
		})
	}
}

// A session may be long; what one command may use is bounded.
func TestLimitsAreOfOneCommandOfASession(t *testing.T) {
	d, err := sim.New(sim.Options{Limits: budget.Limits{Iterations: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	p := sit(t, sb, "bash")
	for range 3 {
		p.sees(prompt)
		p.types("for i in {1..900}; do :; done\r")
	}
	p.sees(prompt)
	p.types("while :; do :; done\r")
	exit, err := p.process.Wait(t.Context())
	if err != nil || exit.Cause != paddock.OutOfBudget {
		t.Errorf("%+v %v", exit, err)
	}
}

func TestEndOfInputLeavesTheShellWithTheLastStatus(t *testing.T) {
	p := sit(t, nil, "bash")
	p.sees(prompt)
	p.types("(exit 5)\r")
	p.sees(prompt)
	p.types("\x04")
	p.sees("exit\r\n")
	p.leaves(5)
}

func TestHistoryOutlivesTheShell(t *testing.T) {
	p := sit(t, nil, "bash")
	p.sees(prompt)
	p.types("echo remember me\r")
	p.sees("\r\nremember me\r\n")
	p.types("exit\r")
	p.leaves(0)
	p = sit(t, p.sandbox, "bash", "-l")
	p.sees(prompt)
	p.types("\x12remem\r")
	p.sees("\r\nremember me\r\n")
	p.types("history\r")
	p.sees("echo remember me\r\n")
	p.types("exit\r")
	p.sees("logout\r\n")
	p.leaves(0)
}

func TestAnInteractiveShellReadsItsFile(t *testing.T) {
	p := sit(t, nil, "bash", "-c", "echo 'PS1=\"mine> \"; greeting=hello' >~/.bashrc; exec bash")
	p.sees("mine> ")
	p.types("echo $greeting $-\r")
	p.sees("\r\nhello himBs\r\n")
	p.types("exit\r")
	p.leaves(0)
}

// Whoever opens a named pipe is not left alone when the other end was there
// and is gone already.
func TestANamedPipeJoinsEndsThatCloseAtOnce(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	p := sit(t, sb, "bash", "-c", "mkfifo gate; for i in {1..300}; do read x <gate & echo $i >gate; wait; done; echo whole")
	p.sees("whole")
	p.leaves(0)
}
