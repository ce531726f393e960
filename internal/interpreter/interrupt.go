package interpreter

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	beginTime = time.Second            // in which a cell begins before it is interrupted all the same
	askAgain  = 100 * time.Millisecond // after which an interrupt may have been lost; then twice as long
	askSeldom = 2 * time.Second        // and so on, up to this
)

// interrupt interrupts the cell that runs in a turn as Ctrl-C would, and sees to it that
// this is heard of: until ended is closed, or the kernel has gone.
//
// An interrupt is easily lost. A kernel takes none for a cell that it has not begun. A
// shell's child that is between fork and exec has the shell's handler, which does
// nothing there. A shell that has just come to the end of a cell drops the line that
// would tell so. Hence the interrupt waits for the cell to begin, is repeated to those whom it
// missed, and the kernel is asked to say the end of the cell (again) when it is there.
func (k *kernel) interrupt(ctx context.Context, seq int64, begun, ended <-chan struct{}) {
	ctx = context.WithoutCancel(ctx)
	early := time.NewTimer(beginTime)
	defer early.Stop()
	select {
	case <-begun:
		begun = nil
	case <-early.C: // what an earlier cell left running may hold it up
	case <-ended:
		return
	case <-k.exited:
		return
	}
	k.signal(ctx)
	k.ask(seq)
	for wait := askAgain; ; wait = min(2*wait, askSeldom) {
		late := time.NewTimer(wait)
		select {
		case <-begun:
			begun, wait = nil, askAgain/2
			k.signal(ctx)
		case <-late.C:
			k.again(ctx, ended)
		case <-ended:
			late.Stop()
			return
		case <-k.exited:
			late.Stop()
			return
		}
		late.Stop()
		k.ask(seq)
	}
}

// signal interrupts the kernel and what it started, once.
func (k *kernel) signal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	if k.l.interrupt != "" {
		k.written(k.send([]byte(k.l.interrupt)))
	}
	if err := k.p.Signal(ctx, sigInterrupt); err != nil {
		k.i.log.Debug("interrupt a kernel", "err", err) // one that goes on is killed
	}
}

// again interrupts those whom the signal missed, until ended is closed: what is
// interrupted after that is another cell.
func (k *kernel) again(ctx context.Context, ended <-chan struct{}) {
	if k.l.again == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	k.i.wg.Go(func() {
		defer cancel()
		select {
		case <-ended:
		case <-k.exited:
		case <-ctx.Done():
		}
	})
	cmd := paddock.Cmd{Args: append(k.l.again[:len(k.l.again):len(k.l.again)], strconv.Itoa(int(k.p.ID()))), Dir: "/", User: k.i.o.User, Timeout: signalTime}
	p, err := k.i.o.Sandbox.Start(ctx, cmd)
	if err == nil {
		if _, err = p.Wait(ctx); err != nil {
			late, done := context.WithTimeout(context.WithoutCancel(ctx), signalTime)
			err = errors.Join(err, p.Signal(late, syscall.SIGKILL))
			done()
		}
		p.Release()
	}
	if err != nil {
		k.i.log.Debug("interrupt a kernel again", "err", err)
	}
}

// ask asks the kernel to say the end of a turn when it is between two cells.
func (k *kernel) ask(seq int64) { k.written(k.send(k.l.ping(seq))) }

// written waits until something was sent, or the kernel does not read: who waits for
// what it says finds that.
func (k *kernel) written(sent <-chan struct{}) {
	late := time.NewTimer(signalTime)
	defer late.Stop()
	select {
	case <-sent:
	case <-k.exited:
	case <-late.C:
	}
}

// stop interrupts whatever runs, and waits until the kernel has done nothing in the turn c.
func (k *kernel) stop(ctx context.Context, c *turn, bound time.Duration) error {
	begun, ended, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(begun)
	k.i.wg.Go(func() {
		defer close(done)
		k.interrupt(ctx, c.seq, begun, ended)
	})
	err := k.await(ctx, c, bound)
	close(ended)
	<-done
	return err
}
