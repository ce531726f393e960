package sim

import (
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A pipe has the attributes of one, for descriptors whose other end is outside.
type pipe struct{}

func (pipe) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil
}

func (pipe) Close() {}

// An inlet joins a descriptor to a reader outside, which may take any time: it
// is read beside the tasks, so that they can be ended meanwhile. A read that
// nobody waits for any more ends when the reader answers.
type inlet struct {
	pipe

	from io.Reader // nil is empty

	mu      sync.Mutex
	pending chan struct{} // guarded by mu: closed when what is being read is there; nil while nothing is
	held    []byte        // guarded by mu: read, and not yet taken
	err     error         // guarded by mu: what comes after held
}

// inletSize is how much is read ahead.
const inletSize = 32 << 10

func (i *inlet) Read(t *kernel.Task, p []byte) (int, error) {
	if i.from == nil {
		return 0, io.EOF
	}
	for {
		n, pending, err := i.take(p)
		if pending == nil {
			return n, err
		}
		if err := t.AwaitIO(pending); err != nil {
			return 0, err
		}
	}
}

// take gives what is held; where that is nothing, a channel that is closed when
// there is more.
func (i *inlet) take(p []byte) (n int, pending <-chan struct{}, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case len(i.held) > 0 || len(p) == 0:
		n = copy(p, i.held)
		i.held = i.held[n:]
		return n, nil, nil
	case i.err != nil:
		return 0, nil, i.err
	case i.pending == nil:
		i.pending = make(chan struct{})
		go i.fetch(i.pending)
	}
	return 0, i.pending, nil
}

func (i *inlet) fetch(done chan struct{}) {
	b := make([]byte, inletSize)
	n, err := i.from.Read(b)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held, i.err, i.pending = b[:n], err, nil
	close(done)
}

func (i *inlet) Write(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

// An outlet joins a descriptor to a writer outside.
type outlet struct {
	to   io.Writer // nil discards
	turn *sync.Mutex
	*holding
}

func (o *outlet) Info() (vfs.Info, error) { return pipe{}.Info() }

// Close is for the last descriptor.
func (o *outlet) Close() { o.drop() }

func (o *outlet) Read(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

func (o *outlet) Write(t *kernel.Task, p []byte) (int, error) {
	_ = t.Must(t.Run.Output().Add(int64(len(p))))
	o.wrote()
	o.turn.Lock()
	defer o.turn.Unlock()
	if o.to == nil {
		return len(p), nil
	}
	if n, err := o.to.Write(p); err != nil {
		return n, linux.EPIPE
	}
	return len(p), nil
}
