package sentry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/sentry/state/checkpointfiles"
	"gvisor.dev/gvisor/pkg/sentry/state/stateio"
	"gvisor.dev/gvisor/pkg/sentry/state/stateipc"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/pkg/urpc"

	"github.com/paddock-sandbox/paddock"
)

// What is saved is written by the starter: a sentry that held the files could
// write what it liked, and still long after. It says what there is to write, and
// the starter takes that from the sentry's memory.

// A keep writes three files for a sentry, up to a limit.
type keep struct {
	files  map[string]*os.File // by gVisor's names
	all    []*os.File
	limit  int64
	server *urpc.Server
}

// newKeep gives the sentry's end of its connection too.
func newKeep(files []*os.File, limit int64) (*keep, *os.File, error) {
	k := &keep{all: files, limit: limit, files: map[string]*os.File{
		checkpointfiles.StateFileName: files[0], checkpointfiles.PagesMetadataFileName: files[1], checkpointfiles.PagesFileName: files[2],
	}}
	ours, theirs, err := unet.SocketPair(false)
	if err != nil {
		return nil, nil, err
	}
	fd, err := theirs.Release()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), theirs.Close())
	}
	server, err := stateipc.NewAsyncFileServer(k)
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close(), syscall.Close(fd))
	}
	k.server = urpc.NewServer()
	k.server.Register(server)
	k.server.StartHandling(ours)
	return k, os.NewFile(uintptr(fd), "keep"), nil
}

// stop waits until nothing is written any more.
func (k *keep) stop() { k.server.Stop(0) }

// over tells whether more than the limit was written, or was to be.
func (k *keep) over() bool {
	var sum int64
	for _, f := range k.all {
		st, err := f.Stat()
		if err != nil {
			return true
		}
		sum += st.Size()
	}
	return sum > k.limit
}

// Destroy implements stateipc.AsyncFileServerImpl.
func (*keep) Destroy() {}

// OpenRead implements stateipc.AsyncFileServerImpl.
func (*keep) OpenRead(string) (stateio.AsyncReader, error) { return nil, os.ErrPermission }

// OpenWrite implements stateipc.AsyncFileServerImpl. It is called by one goroutine.
func (k *keep) OpenWrite(name string) (stateio.AsyncWriter, error) {
	f := k.files[name]
	if f == nil {
		return nil, os.ErrPermission
	}
	delete(k.files, name) // each is written once
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return &keptFile{AsyncWriter: stateio.NewPagesFileFDWriterDefault(int32(fd)), keep: k}, nil
}

// A keptFile is one of the files. gVisor's writer appends; what is under way is
// a few megabytes at most, so it is enough to look between its steps.
type keptFile struct {
	stateio.AsyncWriter
	keep *keep
}

// Reserve implements stateio.AsyncWriter: nothing is, before it is there.
func (*keptFile) Reserve(uint64) {}

// Wait implements stateio.AsyncWriter.
func (f *keptFile) Wait(done []stateio.Completion, least int) ([]stateio.Completion, error) {
	if f.keep.over() {
		return done, syscall.EFBIG
	}
	return f.AsyncWriter.Wait(done, least)
}

// tooLarge is why nothing was saved.
func tooLarge(limit int64) error {
	return fmt.Errorf("what is to be saved is more than %d MiB, which its limits of memory and disk allow: %w", limit>>20, paddock.Exhausted)
}

// lastWords is how long what was written is read when nobody writes any more: it
// is in the pipe.
const lastWords = 5 * time.Second

// copyUpTo copies what write writes, and no more than limit.
func copyUpTo(to *os.File, limit int64, write func(*os.File) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		err := write(w)
		written <- errors.Join(err, w.Close())
		// Whom it was handed to may hold it open.
		_ = r.SetReadDeadline(time.Now().Add(lastWords))
	}()
	n, err := io.Copy(struct{ io.Writer }{to}, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = tooLarge(limit)
	}
	r.Close() // whoever still writes is told
	if e := <-written; err == nil {
		err = e
	}
	return err
}
