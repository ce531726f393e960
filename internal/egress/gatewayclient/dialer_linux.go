package gatewayclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A ConnectFunc judges a connection and dials it. The caller must call carry with the sandbox's side of the connection;
// carry closes it at the end.
type ConnectFunc func(ctx context.Context, host string, port uint16) (carry func(net.Conn) error, err error)

// Join calls c and returns the file of the connection's far end, and the function that carries the connection, which
// the caller runs.
func (c ConnectFunc) Join(ctx context.Context, host string, port uint16) (*os.File, func() error, error) {
	carry, err := c(ctx, host, port)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs, err := sys.Pair()
	if err != nil {
		return nil, nil, errors.Join(err, carry(closed{}))
	}
	conn, err := connOf(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close(), carry(closed{}))
	}
	return theirs, func() error { return carry(conn) }, nil
}

// ServeDials serves the Dialer at the other end of f until that end closes, breaks the protocol, or ctx ends. It owns
// f. The other end is hostile. It passes the function that carries a connection to run, and does not wait for
// connections when it returns.
func ServeDials(ctx context.Context, f *os.File, connect ConnectFunc, run func(func() error)) error {
	c, err := sys.NewChannelOf(f)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	s := &dials{channel: c, connect: connect, run: run, open: map[uint64]context.CancelFunc{}}
	defer s.wg.Wait()
	defer cancel()
	defer c.Until(ctx)()
	for {
		data, files, err := c.Receive()
		for _, f := range files {
			f.Close() // a request has no file
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		var a dialRequest
		if err == nil {
			a, err = readDialRequest(data)
		}
		if err == nil {
			err = s.take(ctx, a)
		}
		if err != nil {
			return fmt.Errorf("serve a dialling process: %w", err)
		}
	}
}

type dials struct {
	channel *sys.Channel
	connect ConnectFunc
	run     func(func() error)
	wg      sync.WaitGroup
	sending sync.Mutex // held while a packet is sent

	mu   sync.Mutex
	open map[uint64]context.CancelFunc // guarded by mu
}

func (s *dials) take(ctx context.Context, a dialRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	stop, known := s.open[a.ID]
	many := len(s.open) >= dialRequestsMax
	if !a.Cancel && !known && !many {
		s.open[a.ID] = cancel
	}
	s.mu.Unlock()
	switch {
	case a.Cancel && known:
		stop()
		fallthrough
	case a.Cancel:
		cancel()
		return nil
	case known:
		cancel()
		return fmt.Errorf("attempt %d, twice: %w", a.ID, paddock.Invalid)
	case many:
		cancel() // a client that does not read answers gets no more service
		s.answer(dialReply{ID: a.ID, Kind: paddock.Exhausted, Error: fmt.Sprintf("dial %s: %d others are under way: %v", a.Host, dialRequestsMax, paddock.Exhausted)}, nil)
		return nil
	}
	s.wg.Go(func() {
		defer cancel()
		f, carry, err := s.connect.Join(ctx, a.Host, a.Port)
		s.mu.Lock()
		delete(s.open, a.ID)
		s.mu.Unlock()
		if err != nil {
			s.answer(dialReply{ID: a.ID, Error: printable(err.Error(), textMax), Kind: paddock.KindOf(err)}, nil)
			return
		}
		s.run(carry)
		s.answer(dialReply{ID: a.ID}, f)
		f.Close()
	})
	return nil
}

func (s *dials) answer(o dialReply, f *os.File) {
	data, err := json.Marshal(o)
	if err != nil {
		return
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if f != nil {
		_ = s.channel.Send(data, f) // it fails only if the client has gone
		return
	}
	_ = s.channel.Send(data)
}

// A Dialer dials through a file that Process.Channel returned. It is safe for concurrent use.
type Dialer struct {
	channel *sys.Channel
	wg      sync.WaitGroup
	sending sync.Mutex // held while a packet is sent

	mu    sync.Mutex
	last  uint64           // guarded by mu
	calls map[uint64]*call // guarded by mu; nil after the end
}

// NewDialer makes a Dialer on f, which it owns.
func NewDialer(f *os.File) (*Dialer, error) {
	c, err := sys.NewChannelOf(f)
	if err != nil {
		return nil, err
	}
	d := &Dialer{channel: c, calls: map[uint64]*call{}}
	d.wg.Go(d.read)
	return d, nil
}

// Dial does what Process.Dial does.
func (d *Dialer) Dial(ctx context.Context, host string, port uint16) (net.Conn, error) {
	if host == "" || len(host) > nameMax || port == 0 {
		return nil, fmt.Errorf("dial %q: not a host and a port: %w", printable(host, nameMax), paddock.Invalid)
	}
	c := &call{done: make(chan struct{})}
	d.mu.Lock()
	d.last++
	id := d.last
	over := d.calls == nil
	if !over {
		d.calls[id] = c
	}
	d.mu.Unlock()
	if over {
		return nil, errOver()
	}
	if err := d.send(dialRequest{ID: id, Host: host, Port: port}); err != nil {
		d.abandon(id, c)
		return nil, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		_ = d.send(dialRequest{ID: id, Cancel: true}) // its reply will be discarded
		d.abandon(id, c)
		return nil, fmt.Errorf("dial: %w: %w", ctx.Err(), paddock.Canceled)
	}
	if c.err != nil {
		return nil, c.err
	}
	return connOf(c.file)
}

// Close ends the channel. Connections stay open.
func (d *Dialer) Close() error {
	err := d.channel.Close()
	d.wg.Wait()
	return err
}

func errOver() error { return fmt.Errorf("the gateway has gone: %w", paddock.Unavailable) }

func (d *Dialer) send(a dialRequest) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	d.sending.Lock()
	defer d.sending.Unlock()
	if err := d.channel.Send(data); err != nil {
		return fmt.Errorf("ask the gateway: %w: %w", err, paddock.Unavailable)
	}
	return nil
}

func (d *Dialer) abandon(id uint64, c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, id)
	if c.file != nil {
		c.file.Close()
	}
}

func (d *Dialer) read() {
	for {
		data, files, err := d.channel.Receive()
		if err != nil {
			break
		}
		var o dialReply
		if err = decodeStrictly(data, &o); err == nil {
			files = d.reply(o, files)
		}
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		c.err = errOver()
		close(c.done)
	}
	d.calls = nil
}

// reply passes a reply to its call, and returns the remaining files.
func (d *Dialer) reply(o dialReply, files []*os.File) []*os.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[o.ID]
	if c == nil {
		return files
	}
	delete(d.calls, o.ID)
	if o.Error != "" {
		c.err = &wordsError{printable(o.Error, textMax), o.Kind}
	} else if len(files) > 0 {
		c.file, files = files[0], files[1:]
	}
	close(c.done)
	return files
}
