package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Bounds of what a person is asked. The programs inside decide when there is a
// question, so they must not be able to keep a person from anything.
const (
	maxQuestions = 100                    // in one run
	maxWaiting   = 16                     // behind the one that is asked
	maxTries     = 3                      // to write an answer
	maxMissed    = 3                      // questions in a row that nobody answered
	answerTime   = 60 * time.Second       // for one question
	settleTime   = 700 * time.Millisecond // until keys are an answer: a person who writes something else has to see the question first
)

// An asked destination is what a person decided in one run.
type asked struct {
	Host   string `json:"host"`
	Port   uint16 `json:"port"`
	UDP    bool   `json:"udp,omitempty"`
	Answer string `json:"answer"` // "always", or "deny"; what was allowed once only is not kept
}

// allowance is what --allow takes for the destination.
func (d asked) allowance() string {
	return net.JoinHostPort(d.Host, strconv.Itoa(int(d.Port)))
}

// An asker asks the person at the terminal what no rule decides. What was denied
// or allowed always is not asked again.
type asker struct {
	terminal io.WriteCloser // the person's
	lines    lines          // gives what the person writes
	screen   chan struct{}  // holds a value; who takes it may write to the terminal
	waiting  chan struct{}  // as many values as questions wait
	patience time.Duration
	settle   time.Duration

	mu       sync.Mutex
	decided  map[gatewayclient.Question]gatewayclient.Answer // guarded by mu
	order    []asked                                         // guarded by mu
	asked    int                                             // guarded by mu
	missed   int                                             // guarded by mu: in a row
	keyboard *keyboard                                       // guarded by mu: nil where the command has no terminal
}

// Lines are what a person writes, one at a time.
type lines interface {
	// begin turns to the person, and drops what is written for a while: it was
	// meant for something else.
	begin(ctx context.Context, while time.Duration)
	// line gives the next line, until ctx ends.
	line(ctx context.Context) (string, error)
	// end turns away.
	end()
}

// newAsker asks at a terminal, which stays the caller's.
func newAsker(terminal *os.File) (*asker, error) {
	// A read that cannot be ended would hold the program at its end.
	if err := terminal.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("this system's terminals cannot be waited for: %w: %w", err, paddock.Unsupported)
	}
	k := &asker{
		terminal: terminal, lines: &typed{terminal}, screen: make(chan struct{}, 1), waiting: make(chan struct{}, maxWaiting+1),
		patience: answerTime, settle: settleTime, decided: map[gatewayclient.Question]gatewayclient.Answer{},
	}
	k.screen <- struct{}{}
	return k, nil
}

// asking opens the terminal where --ask is given, and has the plan ask there.
func (f *runFlags) asking(a *App, p *plan) (*asker, error) {
	if !f.ask {
		return nil, nil
	}
	network := &p.spec.Policy.Network
	switch network.Mode {
	case paddock.NetworkNone:
		network.Mode = paddock.NetworkList
	case paddock.NetworkHost:
		return nil, WithHint(fmt.Errorf("--ask: the network is the host's own, where nothing is decided: %w", paddock.Invalid), "leave --ask out, or use the mode list")
	}
	terminal, err := a.Tty()
	if err != nil {
		return nil, WithHint(fmt.Errorf("--ask: there is no terminal to ask at: %w: %w", err, paddock.Invalid), "say what can be reached: --allow HOST")
	}
	k, err := newAsker(terminal)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--ask: %w", err), terminal.Close())
	}
	p.ask = k.ask
	return k, nil
}

// close lets go of the terminal. Nothing is asked any more then.
func (k *asker) close() {
	if k != nil {
		_ = k.terminal.Close() // nothing was kept in it
	}
}

// ask puts a question to the person. Whatever goes wrong is a denial.
func (k *asker) ask(ctx context.Context, q gatewayclient.Question) gatewayclient.Answer {
	select {
	case k.waiting <- struct{}{}:
		defer func() { <-k.waiting }()
	default:
		return gatewayclient.AnswerDeny // many questions at once are an attack, not a wish
	}
	select {
	case <-k.screen:
		defer func() { k.screen <- struct{}{} }()
	case <-ctx.Done():
		return gatewayclient.AnswerDeny
	}
	q.Sandbox = ""
	if a, known := k.known(q); known || ctx.Err() != nil {
		return a
	}
	a, missed := k.put(ctx, q)
	if k.note(q, a, missed) {
		k.say("paddock: nothing more is asked in this run: what no rule allows is denied")
	}
	return a
}

// known gives what was decided before, or that nothing more is asked.
func (k *asker) known(q gatewayclient.Question) (gatewayclient.Answer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.decided[q]; ok {
		return a, true
	}
	if k.asked >= maxQuestions || k.missed >= maxMissed {
		return gatewayclient.AnswerDeny, true
	}
	k.asked++
	return gatewayclient.AnswerDeny, false
}

// note keeps what was decided, and tells whether it was the last question.
func (k *asker) note(q gatewayclient.Question, a gatewayclient.Answer, missed bool) (last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missed++
	if !missed {
		k.missed = 0
	}
	last = k.missed == maxMissed || k.asked == maxQuestions
	if a == gatewayclient.AnswerOnce {
		return last
	}
	k.decided[q] = a
	said := "deny"
	if a == gatewayclient.AnswerAlways {
		said = "always"
	}
	k.order = append(k.order, asked{Host: q.Host, Port: q.Port, UDP: q.UDP, Answer: said})
	return last
}

// answers lists what was decided, in order.
func (k *asker) answers() []asked {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]asked(nil), k.order...)
}

// put asks at the terminal about a connection. The screen is held.
func (k *asker) put(ctx context.Context, q gatewayclient.Question) (a gatewayclient.Answer, missed bool) {
	what := "connect to"
	if q.UDP {
		what = "send datagrams to"
	}
	where := OneLineOf(q.Host, 255)
	said, missed := k.choose(ctx, k.patience,
		fmt.Sprintf("paddock: the command wants to %s %s, port %d, and no rule allows it", what, where, q.Port),
		"paddock: allow it once (o), always in this run (a), or deny it (d)? ", "denied", []string{"once", "always", "deny"})
	switch said {
	case "once":
		return gatewayclient.AnswerOnce, false
	case "always":
		return gatewayclient.AnswerAlways, false
	}
	return gatewayclient.AnswerDeny, missed
}

// choose puts a question with these answers to the person, and returns one of them, or nothing. An answer is given by its
// first letter too. otherwise says what becomes of it without an answer. The screen is held.
func (k *asker) choose(ctx context.Context, patience time.Duration, about, question, otherwise string, answers []string) (said string, missed bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := k.source()
	// What came before may have left the terminal in the middle of a sequence,
	// in a strange colour or alphabet: none of it may touch the question.
	fmt.Fprint(k.terminal, "\x18\x1b\\\x1b7\x1b[0m\x1b(B\x0f\r\n")
	defer fmt.Fprint(k.terminal, "\x1b8")
	k.say(about)
	in.begin(ctx, k.settle)
	defer in.end()
	for range maxTries {
		fmt.Fprint(k.terminal, question)
		text, err := in.line(ctx)
		switch {
		case errors.Is(err, io.EOF):
			k.say("")
			return "", false
		case err != nil:
			k.say("")
			k.say("paddock: there was no answer in time: " + otherwise)
			return "", true
		}
		text = strings.ToLower(strings.TrimSpace(text))
		for _, a := range answers {
			if text == a || text == a[:1] {
				return a, false
			}
		}
	}
	k.say("paddock: that is no answer: " + otherwise)
	return "", false
}

// hold waits for the screen, and returns what gives it back.
func (k *asker) hold(ctx context.Context) (release func(), err error) {
	select {
	case <-k.screen:
		return func() { k.screen <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// say writes a line to a terminal that may be in any mode.
func (k *asker) say(text string) { fmt.Fprint(k.terminal, text, "\r\n") }

func (k *asker) source() lines {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keyboard != nil {
		return k.keyboard
	}
	return k.lines
}

// output gives w, which ends at the stream end, such that it waits while a
// question stands on the terminal.
func (k *asker) output(end, w io.Writer) io.Writer {
	if k == nil || !isTerminal(end) {
		return w
	}
	return &held{w, k.screen}
}

// A held stream is written to by who has the screen.
type held struct {
	w      io.Writer
	screen chan struct{}
}

func (h *held) Write(p []byte) (int, error) {
	<-h.screen
	defer func() { h.screen <- struct{}{} }()
	return h.w.Write(p)
}

// Typed lines come from a terminal that makes lines itself.
type typed struct{ f *os.File }

// maxAnswer bounds an answer, in bytes; what is longer is none.
const maxAnswer = 64

func (t *typed) begin(ctx context.Context, while time.Duration) {
	if t.f.SetReadDeadline(time.Now().Add(while)) != nil {
		return // line fails likewise
	}
	stop := context.AfterFunc(ctx, func() { _ = t.f.SetReadDeadline(time.Now()) })
	defer stop()
	buf := make([]byte, 4096)
	for {
		if n, err := t.f.Read(buf); err != nil || n == 0 {
			return
		}
	}
}

func (t *typed) end() {}

func (t *typed) line(ctx context.Context) (string, error) {
	if err := t.f.SetReadDeadline(time.Time{}); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = t.f.SetReadDeadline(time.Now()) })
	defer stop()
	buf := make([]byte, 4096) // the longest line of a terminal
	n, err := t.f.Read(buf)
	if n > maxAnswer {
		n = 0
	}
	if n > 0 {
		err = nil
	}
	return string(buf[:n]), err
}

// A keyboard is a terminal in raw mode whose keys go to the command, and to
// who asks while a question stands.
type keyboard struct {
	io.Reader
	echo io.Writer

	mu sync.Mutex
	to chan []byte // guarded by mu: nil while there is no question
}

// keysOf makes the keys of stdin, which is a terminal, answers too.
func (k *asker) keysOf(stdin io.Reader) io.Reader {
	if k == nil || !isTerminal(stdin) {
		return stdin
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keyboard = &keyboard{Reader: stdin, echo: k.terminal}
	return k.keyboard
}

// Fd returns the descriptor of the terminal, so that callers can set its mode.
func (b *keyboard) Fd() uintptr {
	fd, _ := terminalOf(b.Reader)
	return uintptr(fd)
}

func (b *keyboard) Read(p []byte) (int, error) {
	for {
		n, err := b.Reader.Read(p)
		b.mu.Lock()
		to := b.to
		b.mu.Unlock()
		if to == nil || n == 0 || err != nil {
			return n, err
		}
		select {
		case to <- append([]byte(nil), p[:n]...):
		default: // more than an answer: it is for nobody
		}
	}
}

func (b *keyboard) begin(ctx context.Context, while time.Duration) {
	keys := b.divert(make(chan []byte, maxAnswer))
	over := time.NewTimer(while)
	defer over.Stop()
	for {
		select {
		case <-keys:
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (b *keyboard) line(ctx context.Context) (string, error) {
	b.mu.Lock()
	keys := b.to
	b.mu.Unlock()
	var text []byte
	for {
		var more []byte
		select {
		case more = <-keys:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		for _, c := range more {
			switch {
			case c == '\r' || c == '\n':
				fmt.Fprint(b.echo, "\r\n")
				return string(text), nil
			case c == 3 || c == 4: // control-C and control-D
				return "", io.EOF
			case (c == 8 || c == 127) && len(text) > 0:
				text = text[:len(text)-1]
				fmt.Fprint(b.echo, "\b \b")
			case c >= ' ' && c < 127 && len(text) < maxAnswer:
				text = append(text, c)
				fmt.Fprintf(b.echo, "%c", c)
			case c >= ' ' || len(text) == maxAnswer:
			default: // what a terminal answers to programs begins with such a one
				text = append(text, '?')
			}
		}
	}
}

func (b *keyboard) end() { b.divert(nil) }

func (b *keyboard) divert(to chan []byte) chan []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = to
	return to
}
