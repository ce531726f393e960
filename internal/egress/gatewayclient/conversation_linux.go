package gatewayclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of a gateway's requests to its owner.
const (
	questionsMax = 16 // at once
)

// write sends queued messages until the gateway has gone.
func (g *Process) write() {
	for {
		select {
		case o := <-g.out:
			if err := g.put(o); err != nil && g.ctx.Err() == nil {
				g.fail(fmt.Errorf("tell the gateway: %w", err))
			}
		case <-g.ctx.Done():
			for {
				select {
				case o := <-g.out:
					o.close()
				default:
					return
				}
			}
		}
	}
}

func (g *Process) put(o outgoing) error {
	defer o.close()
	data, err := json.Marshal(o.message)
	if err != nil {
		return err
	}
	if o.file == nil {
		return g.channel.Send(data)
	}
	return g.channel.Send(data, o.file)
}

// fail ends a gateway that violates the protocol.
func (g *Process) fail(err error) {
	g.mu.Lock()
	if g.failure == nil {
		g.failure = err
	}
	g.mu.Unlock()
	_ = g.process.Kill() // its end is reported when it comes
}

// ended handles the end of the process.
func (g *Process) ended(err error, words string) {
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select { // its last message says more than its exit
	case <-g.heard:
	case <-late.C:
	}
	g.mu.Lock()
	switch {
	case g.failure == nil && words != "":
		g.failure = fmt.Errorf("%w (it said: %s)", err, words)
	case g.failure == nil:
		g.failure = err
	default:
		g.failure = fmt.Errorf("%w (%w)", g.failure, err)
	}
	err = g.failure
	closing := g.closing
	select {
	case <-g.begun:
	default:
		close(g.begun)
	}
	for id, c := range g.calls {
		delete(g.calls, id)
		c.err = fmt.Errorf("the gateway has gone: %w", err)
		close(c.done)
	}
	g.mu.Unlock()
	_ = g.channel.Close()
	g.cancel()
	g.settle()
	if !closing && g.owner.Ended != nil {
		g.owner.Ended(err)
	}
	close(g.done)
}

// read handles the gateway's messages until it has gone. An invalid message ends it.
func (g *Process) read() {
	defer close(g.heard)
	budget := meter{sandbox: g.config.Sandbox}
	for {
		data, files, err := g.channel.Receive()
		if err != nil {
			break
		}
		m, err := DecodeMessage(data)
		if err == nil {
			err = g.take(m, &files, &budget)
		}
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			g.fail(fmt.Errorf("invalid message from the gateway: %w", err))
			return
		}
	}
	if e, ok := budget.rest(time.Now()); ok {
		g.event(e)
	}
}

// take handles a message. It removes a file that it keeps from files.
func (g *Process) take(m Message, files *[]*os.File, budget *meter) error {
	switch m.Op {
	case OpReady:
		return g.begin(m)
	case OpReply:
		g.reply(m, files)
	case OpEvents:
		for _, e := range m.Events {
			for _, told := range budget.take(CleanEvent(e, g.config.Sandbox), time.Now()) {
				g.event(told)
			}
		}
	case OpAsk:
		return g.ask(m)
	case OpLogin:
		return g.login(m)
	case OpUnask:
		g.mu.Lock()
		cancel := g.asked[m.ID]
		g.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	default:
		return fmt.Errorf("%q: %w", printable(m.Op, nameMax), paddock.Invalid)
	}
	return nil
}

func (g *Process) event(e Event) {
	if g.owner.Event != nil {
		g.owner.Event(e)
	}
}

func (g *Process) begin(m Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.begun:
		return fmt.Errorf("ready, twice: %w", paddock.Invalid)
	default:
	}
	if err := m.err(); err != nil {
		g.failure = err // it ends now
	} else if m.Ready != nil {
		for _, f := range m.Ready.Findings {
			f.Control, f.Strength = paddock.Control(printable(string(f.Control), nameMax)), paddock.Strength(printable(string(f.Strength), nameMax))
			f.How, f.Cause, f.Remedy = printable(f.How, textMax), printable(f.Cause, textMax), printable(f.Remedy, textMax)
			g.ready.Findings = append(g.ready.Findings, f)
		}
	}
	close(g.begun)
	return nil
}

// reply passes a reply to its call. It discards replies to abandoned calls.
func (g *Process) reply(m Message, files *[]*os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.calls[m.ID]
	if c == nil {
		return
	}
	for _, n := range m.Names {
		if len(c.names) < namesMax && len(n) <= nameMax {
			c.names = append(c.names, n)
		}
	}
	if m.More {
		return
	}
	delete(g.calls, m.ID)
	c.err = m.err()
	if len(*files) > 0 && c.err == nil {
		c.file, *files = (*files)[0], (*files)[1:]
	}
	close(c.done)
}

// ask passes a question to the owner.
func (g *Process) ask(m Message) error {
	if m.Question == nil {
		return fmt.Errorf("a question without one: %w", paddock.Invalid)
	}
	q := Question{Sandbox: g.config.Sandbox, Host: printable(m.Question.Host, nameMax), Port: m.Question.Port, UDP: m.Question.UDP, Judge: m.Question.Judge, Rule: m.Question.Rule, Secret: printable(m.Question.Secret, nameMax)}
	able := q.Judge && g.owner.Judge != nil || !q.Judge && g.owner.Ask != nil
	return g.question(m.ID, able, func(ctx context.Context) (answer Message) {
		if !q.Judge {
			answer.Answer = g.owner.Ask(ctx, q)
			return answer
		}
		j := g.owner.Judge(ctx, q)
		if answer.Error = printable(j.Reason, textMax); j.Allow {
			answer.Answer = AnswerOnce
		}
		return answer
	})
}

// login passes a request of a login to the owner.
func (g *Process) login(m Message) error {
	if err := checkLogin(m.Login); err != nil {
		return err
	}
	return g.question(m.ID, g.owner.Login != nil, func(ctx context.Context) Message {
		given := g.owner.Login.Login(ctx, *m.Login).fit()
		return Message{Given: &given}
	})
}

// question lets the owner answer in the background. An owner that is not able, or has too many questions, answers
// nothing, which means no.
func (g *Process) question(id uint64, able bool, answer func(context.Context) Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked[id] != nil {
		return fmt.Errorf("a question asked twice: %w", paddock.Invalid)
	}
	if !able || len(g.asked) >= questionsMax {
		select {
		case g.out <- outgoing{message: Message{Op: OpAnswer, ID: id}}: // no
		default: // no answer means no, too
		}
		return nil
	}
	ctx, cancel := context.WithCancel(g.ctx)
	g.asked[id] = cancel
	g.wg.Go(func() {
		m := answer(ctx)
		m.Op, m.ID = OpAnswer, id
		cancel()
		g.mu.Lock()
		delete(g.asked, id)
		g.mu.Unlock()
		_ = g.send(outgoing{message: m}) // the gateway may have gone
	})
	return nil
}

// connOf makes a connection from a socket of the gateway.
func connOf(f *os.File) (net.Conn, error) {
	if f == nil {
		return nil, fmt.Errorf("the gateway gave no connection: %w", paddock.Unavailable)
	}
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("take a connection: %w", err)
	}
	if u, ok := c.(*net.UnixConn); !ok || u.LocalAddr().Network() != "unix" {
		return nil, errors.Join(fmt.Errorf("the gateway sent a file that is not a connection: %w", paddock.Unavailable), c.Close())
	}
	return c, nil
}
