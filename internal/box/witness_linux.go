package box

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Witness is told what the commands of a sandbox change in writable mounts.
type Witness interface {
	// Change is called in the order of the changes, never twice at once. A kind that waits is told before the change is made,
	// which an error refuses. Errors of the others have no effect. What a sandbox reports may be forged: its commands may
	// have taken it over.
	Change(boxinit.Change) error

	// Missed says that something changes, or has changed, that no report can tell. An error refuses it, as for Change.
	Missed(why string) error

	// Unseen says that something changes, or was made already, of which the box's init could not tell what it is.
	Unseen(why string, made bool) error
}

// A WitnessedTree is a writable mount whose changes a Witness is told. Its index is the tree of a change.
type WitnessedTree struct {
	Source string // on the host; empty for a tree of the sandbox's own, of which nothing is told
	Target string
}

// witnessed returns the trees of a layout.
func witnessed(l *Layout) []WitnessedTree {
	prefix := "" // of the tree in which a guest kernel's commands are
	if l.Config.GuestKernel != nil {
		prefix = boxinit.Root
	}
	list := make([]WitnessedTree, len(l.Config.Trees))
	for i, t := range l.Config.Trees {
		st, err := os.Stat(t.Source)
		if t.Protected && !t.Cache && err == nil && st.IsDir() { // of a single file nothing is recorded; the caller knows it
			list[i] = WitnessedTree{t.Source, strings.TrimPrefix(t.Path, prefix)}
		}
	}
	return list
}

// witness gives the box's init the end of a channel on which it tells changes, if somebody wants to know.
func (m *making) witness(c *Configuration) error {
	if m.p.witness == nil {
		return nil
	}
	w, err := m.p.witness(witnessed(c.Layout))
	if err != nil || w == nil {
		return err
	}
	channel, theirs, err := sys.NewChannelPair()
	if err != nil {
		return err
	}
	c.Own(theirs)
	c.Files.Add(boxinit.FileWitness, theirs)
	m.b.wg.Go(func() { // ends with the box, which has the only other end
		defer channel.Close()
		if err := hearChanges(channel, w); err != nil {
			_ = w.Missed("changes could not be received: " + err.Error()) // without this channel, no file of a mount can change
		}
	})
	return nil
}

// layered tells what is about to change in mounts that have a layer.
type layered struct {
	changing func(source, path string)
	trees    []WitnessedTree
}

// watch implements what Plan.witness is.
func (l *layered) watch(trees []WitnessedTree) (Witness, error) {
	l.trees = trees
	return l, nil
}

// Change implements Witness.
func (l *layered) Change(c boxinit.Change) error {
	l.tell(c.Tree, c.Path)
	if c.Kind.Two() {
		l.tell(c.ToTree, c.To)
	}
	return nil
}

func (l *layered) tell(tree int, path string) {
	if tree >= 0 && tree < len(l.trees) && l.trees[tree].Source != "" && path != "" {
		l.changing(l.trees[tree].Source, path)
	}
}

// Missed implements Witness. What is not told has no base.
func (l *layered) Missed(string) error { return nil }

// Unseen implements Witness.
func (l *layered) Unseen(string, bool) error { return nil }

// hearChanges tells w what comes on a channel, until that ends.
func hearChanges(channel *sys.Channel, w Witness) error {
	for {
		data, files, err := channel.Receive()
		CloseAll(files)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := boxinit.ParseChange(data)
		waits := len(data) > 0 && boxinit.ChangeKind(data[0]).Waits()
		no := syscall.ENAMETOOLONG // what cannot be told is not changed; the init refuses it itself if it was not taken over
		if err == nil {
			err = w.Change(c)
			no = errnoFor(err)
		} else {
			err = w.Unseen(err.Error(), !waits)
		}
		if !waits {
			if err != nil {
				_ = w.Missed(err.Error()) // it was made already
			}
			continue
		}
		if err := channel.Send(binary.BigEndian.AppendUint32(nil, uint32(no))); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
	}
}

// errnoFor returns the number with which a call fails that was not recorded.
func errnoFor(err error) syscall.Errno {
	switch {
	case err == nil:
		return 0
	case paddock.KindOf(err) == paddock.Exhausted:
		return syscall.EDQUOT
	case step.Refused(err):
		return syscall.EACCES
	case step.Elsewhere(err):
		return syscall.EBUSY
	}
	return syscall.EIO
}

// held is Held of a box that may be about to end. One that has ended holds nothing.
func (b *Box) held(ctx context.Context) ([]boxinit.Change, error) {
	list, err := b.Held(ctx)
	if err == nil {
		return list, nil
	}
	select {
	case <-b.ended:
		return nil, nil
	case <-time.After(endTime):
		return nil, err
	}
}

// Held returns the files of writable mounts that commands have open for writing.
func (b *Box) Held(ctx context.Context) ([]boxinit.Change, error) {
	f, err := b.Ask(boxinit.OpHeld, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(heldTime)) // sockets support deadlines
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	list, err := boxinit.ReadChanges(bufio.NewReader(conn))
	if err != nil {
		return nil, fmt.Errorf("list open files: %w", errors.Join(err, context.Cause(ctx)))
	}
	return list, nil
}

// heldTime bounds the answer of a box's init, which looks at the descriptors of all processes.
const heldTime = time.Minute
