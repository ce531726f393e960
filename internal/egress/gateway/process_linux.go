package gateway

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// memorySoft is the runtime's memory limit. Most of the memory is buffers with bounds of
// their own.
const memorySoft = 192 << 20

// settled is the delay before the memory of the start is returned, so that the first
// commands do not wait for that.
const settled = 300 * time.Millisecond

// namesPiece is the maximum bytes of names in one reply.
const namesPiece = 64 << 10

// run runs the gateway process until its owner ends it.
func run() error {
	debug.SetMemoryLimit(memorySoft)
	sys.KeepSignals()
	counters, err := sys.OpenCounters(gatewayclient.CountersFD)
	if err != nil {
		return err
	}
	if err := errors.Join(sys.DieWithParent(), sys.NotDumpable(), sys.CloseFrom(gatewayclient.ChannelFD+1)); err != nil {
		return err
	}
	channel, err := sys.NewChannel(gatewayclient.ChannelFD)
	if err != nil {
		return err
	}
	p := &process{channel: channel, traffic: traffic{counters}, out: make(chan queued, 16), questions: map[uint64]chan gatewayclient.Message{}, dials: map[uint64]context.CancelFunc{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	ready, err := p.begin()
	if err != nil {
		m := gatewayclient.ErrorReply(0, err)
		m.Op = gatewayclient.OpReady
		return errors.Join(err, p.send(m))
	}
	if err := p.send(gatewayclient.Message{Op: gatewayclient.OpReady, Ready: &ready}); err != nil {
		return err
	}
	p.wg.Go(p.tell)
	defer time.AfterFunc(settled, debug.FreeOSMemory).Stop()
	err = p.serve()
	// The owner has closed the gateway or has gone, and so everything carried ends.
	_ = p.gateway.Close() // the link's descriptor ends with the process
	p.cancel()
	p.wg.Wait()
	return err
}

// A process is a gateway with the channel to its owner.
type process struct {
	gateway *Gateway
	channel *sys.Channel
	traffic traffic
	out     chan queued // events to report
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	sending sync.Mutex // held while a packet is sent

	mu        sync.Mutex
	asked     uint64                                // guarded by mu; last question
	questions map[uint64]chan gatewayclient.Message // guarded by mu
	dials     map[uint64]context.CancelFunc         // guarded by mu
}

// A traffic counts in the memory that the owner reads.
type traffic struct{ counters *sys.Counters }

func (t traffic) Received(n int) { t.counters.Add(gatewayclient.CountReceived, uint64(n)) }
func (t traffic) Sent(n int)     { t.counters.Add(gatewayclient.CountSent, uint64(n)) }

// begin confines the process and makes its gateway.
func (p *process) begin() (gatewayclient.Ready, error) {
	data, files, err := p.channel.Receive()
	if err != nil {
		return gatewayclient.Ready{}, err
	}
	conns, err := maxConns()
	if err != nil {
		return gatewayclient.Ready{}, err
	}
	findings, err := confine()
	if err != nil {
		return gatewayclient.Ready{}, fmt.Errorf("confine the gateway: %w", err)
	}
	m, err := gatewayclient.DecodeMessage(data)
	if err == nil && (m.Op != gatewayclient.OpConfig || len(files) != 1) {
		err = fmt.Errorf("the first message is not a config: %w", paddock.Invalid)
	}
	if err != nil {
		return gatewayclient.Ready{}, err
	}
	var c gatewayclient.Config
	err = gatewayclient.ReadContent(files[0], &c)
	files[0].Close()
	if err != nil {
		return gatewayclient.Ready{}, err
	}
	if p.gateway, err = p.make(c, conns); err != nil {
		return gatewayclient.Ready{}, err
	}
	return gatewayclient.Ready{Findings: findings}, nil
}

func (p *process) make(c gatewayclient.Config, conns int) (*Gateway, error) {
	o := Options{Sandbox: c.Sandbox, Policy: c.Policy, Names: c.Names, Seed: c.Seed, Event: p.event, Traffic: p.traffic, MaxConns: conns}
	if c.Ask {
		o.Ask = func(ctx context.Context, q gatewayclient.Question) gatewayclient.Answer { return p.ask(ctx, q).Answer }
	}
	if c.Judge {
		o.Judge = func(ctx context.Context, q gatewayclient.Question) gatewayclient.Judgement {
			m := p.ask(ctx, q)
			return gatewayclient.Judgement{Allow: m.Answer == gatewayclient.AnswerOnce, Reason: m.Error}
		}
	}
	if len(c.Login) > 0 {
		o.LoginHosts = c.Login
		o.Login = func(ctx context.Context, r gatewayclient.LoginRequest) *gatewayclient.LoginAnswer {
			return p.question(ctx, gatewayclient.Message{Op: gatewayclient.OpLogin, Login: &r}).Given
		}
	}
	if len(c.Hosts) > 0 {
		o.Dialer.Lookup = lookup(c.Hosts)
	}
	var err error
	if len(c.Authority) > 0 {
		if o.Authority, err = authorityOf(c.Authority); err != nil {
			return nil, err
		}
	}
	if len(c.Roots) > 0 {
		if o.Roots, err = x509.SystemCertPool(); err != nil {
			o.Roots = x509.NewCertPool() // trust no certificate
		}
		if !o.Roots.AppendCertsFromPEM(c.Roots) {
			return nil, fmt.Errorf("the roots hold no certificate: %w", paddock.Invalid)
		}
	}
	return New(o)
}

// lookup returns a resolver that looks in hosts first.
func lookup(hosts map[string][]netip.Addr) func(context.Context, string) ([]netip.Addr, error) {
	r := &net.Resolver{PreferGo: true}
	return func(ctx context.Context, name string) ([]netip.Addr, error) {
		if list, ok := hosts[name]; ok {
			return list, nil
		}
		return r.LookupNetIP(ctx, "ip", name+".") // no search list
	}
}

// authorityOf parses a certificate followed by its key.
func authorityOf(data []byte) (*authority.CA, error) {
	var cert, key []byte
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			cert = append(cert, pem.EncodeToMemory(block)...)
		} else {
			key = append(key, pem.EncodeToMemory(block)...)
		}
	}
	return authority.Parse(cert, key)
}

func (p *process) send(m gatewayclient.Message, files ...*os.File) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.channel.Send(data, files...)
}

// serve handles the owner's messages until the owner has gone or closes the gateway.
func (p *process) serve() error {
	for {
		data, files, err := p.channel.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var m gatewayclient.Message
		if err == nil {
			m, err = gatewayclient.DecodeMessage(data)
		}
		if err != nil {
			return err
		}
		var f *os.File
		if len(files) > 0 {
			f = files[0]
		}
		if m.Op == gatewayclient.OpClose { // the sandbox ends too
			_ = p.gateway.Keep() // without it the end takes longer
			return nil
		}
		if err := p.take(m, f); err != nil {
			return err
		}
	}
}

// take handles one message and takes over the file.
func (p *process) take(m gatewayclient.Message, f *os.File) error {
	switch {
	case m.Op == gatewayclient.OpAnswer:
		p.answer(m)
	case m.Op == gatewayclient.OpCancel:
		p.stop(m.ID)
	case m.Op == gatewayclient.OpNames:
		p.wg.Go(func() { p.names(m.ID) })
	case m.Op == gatewayclient.OpDial:
		p.dial(m)
	case f == nil: // all following messages need a file
		return fmt.Errorf("%q without a file: %w", m.Op, paddock.Invalid)
	case m.Op == gatewayclient.OpLink:
		return p.gateway.Open(f)
	case m.Op == gatewayclient.OpUpdate:
		p.update(m.ID, f) // one after another
	case m.Op == gatewayclient.OpChannel:
		p.wg.Go(func() {
			_ = gatewayclient.ServeDials(p.ctx, f, p.gateway.Connect, p.carry) // an invalid request ends the channel
		})
	default:
		f.Close()
		return fmt.Errorf("%q: %w", m.Op, paddock.Invalid)
	}
	return nil
}

func (p *process) stop(dial uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.dials[dial]; cancel != nil {
		cancel()
	}
}

// reply answers a call. It ignores errors, because then the owner has gone.
func (p *process) reply(id uint64, err error, files ...*os.File) {
	m := gatewayclient.Message{Op: gatewayclient.OpReply, ID: id}
	if err != nil {
		m = gatewayclient.ErrorReply(id, err)
	}
	_ = p.send(m, files...)
}

func (p *process) update(id uint64, f *os.File) {
	var policy paddock.NetworkPolicy
	err := gatewayclient.ReadContent(f, &policy)
	f.Close()
	if err == nil {
		err = p.gateway.Update(policy)
	}
	p.reply(id, err)
}

// names sends all names, in several packets if needed, after all events so far.
func (p *process) names(id uint64) {
	p.settle()
	var piece []string
	size := 0
	for _, n := range p.gateway.Names() {
		piece, size = append(piece, n), size+len(n)+3
		if size >= namesPiece {
			if p.send(gatewayclient.Message{Op: gatewayclient.OpReply, ID: id, Names: piece, More: true}) != nil {
				return // the owner has gone
			}
			piece, size = nil, 0
		}
	}
	_ = p.send(gatewayclient.Message{Op: gatewayclient.OpReply, ID: id, Names: piece}) // the owner has gone
}

// carry carries a connection that was dialled for the owner or through a channel.
func (p *process) carry(carry func() error) {
	p.wg.Go(func() { _ = carry() }) // the outcome was reported
}

func (p *process) dial(m gatewayclient.Message) {
	ctx, cancel := context.WithCancel(p.ctx)
	p.mu.Lock()
	p.dials[m.ID] = cancel
	p.mu.Unlock()
	p.wg.Go(func() {
		defer cancel()
		f, carry, err := gatewayclient.ConnectFunc(p.gateway.Connect).Join(ctx, m.Host, m.Port)
		p.mu.Lock()
		delete(p.dials, m.ID)
		p.mu.Unlock()
		if err != nil {
			p.reply(m.ID, err)
			return
		}
		p.carry(carry)
		p.reply(m.ID, nil, f)
		f.Close()
	})
}

// event queues an event. It does not block for long, because the owner either reads events
// or is gone.
func (p *process) event(e gatewayclient.Event) {
	select {
	case p.out <- queued{event: gatewayclient.CleanEvent(e, e.Sandbox)}:
	case <-p.ctx.Done():
	}
}

// A queued is an event, or a request to be told when all earlier events were sent.
type queued struct {
	event gatewayclient.Event
	told  chan struct{} // closed then; nil for an event
}

// settle waits until all events so far were sent.
func (p *process) settle() {
	told := make(chan struct{})
	select {
	case p.out <- queued{told: told}:
	case <-p.ctx.Done():
		return
	}
	select {
	case <-told:
	case <-p.ctx.Done():
	}
}

// tell sends queued events until the owner has gone.
func (p *process) tell() {
	for {
		select {
		case q := <-p.out:
			var b batch
			b.add(q)
			for more := true; more && len(b.events) < 64; {
				select {
				case q = <-p.out:
					b.add(q)
				default:
					more = false
				}
			}
			if p.sendBatch(&b) != nil {
				return // the owner has gone
			}
		case <-p.ctx.Done():
			p.rest()
			return
		}
	}
}

// A batch is the content of one sending.
type batch struct {
	events []gatewayclient.Event
	told   []chan struct{}
}

func (b *batch) add(q queued) {
	if q.told != nil {
		b.told = append(b.told, q.told)
		return
	}
	b.events = append(b.events, q.event)
}

func (p *process) sendBatch(b *batch) error {
	var err error
	if len(b.events) > 0 {
		err = p.sendEvents(b.events)
	}
	for _, c := range b.told {
		close(c)
	}
	return err
}

// sendEvents sends events in as many packets as needed. Their texts are the guest's, and
// may be long.
func (p *process) sendEvents(events []gatewayclient.Event) error {
	data, err := json.Marshal(gatewayclient.Message{Op: gatewayclient.OpEvents, Events: events})
	if err != nil {
		return err
	}
	if half := len(events) / 2; len(data) > sys.PacketMax && half > 0 {
		return errors.Join(p.sendEvents(events[:half]), p.sendEvents(events[half:]))
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.channel.Send(data)
}

// rest sends the remaining queue.
func (p *process) rest() {
	for {
		select {
		case q := <-p.out:
			var b batch
			b.add(q)
			if p.sendBatch(&b) != nil {
				return
			}
		default:
			return
		}
	}
}

// ask makes the owner ask a person, or the judge.
func (p *process) ask(ctx context.Context, q gatewayclient.Question) gatewayclient.Message {
	return p.question(ctx, gatewayclient.Message{Op: gatewayclient.OpAsk, Question: &q})
}

// question sends a question to the owner and waits for the answer. No answer is the zero Message.
func (p *process) question(ctx context.Context, m gatewayclient.Message) gatewayclient.Message {
	answer := make(chan gatewayclient.Message, 1)
	p.mu.Lock()
	p.asked++
	id := p.asked
	p.questions[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.questions, id)
	}()
	m.ID = id
	if p.send(m) != nil {
		return gatewayclient.Message{} // the owner has gone
	}
	select {
	case a := <-answer:
		return a
	case <-ctx.Done():
		_ = p.send(gatewayclient.Message{Op: gatewayclient.OpUnask, ID: id}) // the owner has gone
		return gatewayclient.Message{}
	}
}

func (p *process) answer(m gatewayclient.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.questions[m.ID]; c != nil {
		delete(p.questions, m.ID)
		c <- m
	}
}
