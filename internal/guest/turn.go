package guest

import "context"

// maxTurns bounds how many calls work on files at once. Each holds a thread of the agent
// for as long as the disk takes, and in a sandbox that is full the agent gets no more.
const maxTurns = 8

// turns are taken by calls that work on files.
type turns chan struct{}

func newTurns() turns { return make(turns, maxTurns) }

// do calls f when it is the caller's turn, unless ctx ends before.
func (t turns) do(ctx context.Context, f func() error) error {
	one := turn{of: t}
	if err := one.take(ctx); err != nil {
		return err
	}
	defer one.give()
	return f()
}

// A turn is for one goroutine. It may be taken again.
type turn struct {
	of   turns
	mine bool
}

func (t *turn) take(ctx context.Context) error {
	select {
	case t.of <- struct{}{}:
		t.mine = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) give() {
	if t.mine {
		t.mine = false
		<-t.of
	}
}
