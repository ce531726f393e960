package supervisor

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

// The supervisor writes the saved files. If the sentry held the files, it could write anything
// to them, even much later. The sentry says what to write, and the supervisor reads that from
// the sentry's memory.

// A keep writes the three files of a checkpoint, up to a limit.
type keep struct {
	files  map[string]*os.File // by gVisor's names
	all    []*os.File
	limit  int64
	server *urpc.Server
}

// newKeep also returns the sentry's end of the connection.
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

// stop waits until all writes have ended.
func (k *keep) stop() { k.server.Stop(0) }

// over reports whether more than the limit was written or requested.
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

// A keptFile is one of the files. gVisor's writer appends. At most a few megabytes are in
// progress, so it is enough to check the limit between its steps.
type keptFile struct {
	stateio.AsyncWriter
	keep *keep
}

// Reserve implements stateio.AsyncWriter. It reserves nothing.
func (*keptFile) Reserve(uint64) {}

// Wait implements stateio.AsyncWriter.
func (f *keptFile) Wait(done []stateio.Completion, least int) ([]stateio.Completion, error) {
	if f.keep.over() {
		return done, syscall.EFBIG
	}
	return f.AsyncWriter.Wait(done, least)
}

// tooLarge is the error if the limit was exceeded.
func tooLarge(limit int64) error {
	return fmt.Errorf("the saved state is larger than %d MiB, the maximum by the limits of memory and disk: %w", limit>>20, paddock.Exhausted)
}

// lastWords bounds the time to read what is still in the pipe after the writer has ended.
const lastWords = 5 * time.Second

// copyUpTo copies what write writes, up to limit.
func copyUpTo(to *os.File, limit int64, write func(*os.File) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		err := write(w)
		written <- errors.Join(err, w.Close())
		// Another process that got the writing end may still hold it open.
		_ = r.SetReadDeadline(time.Now().Add(lastWords))
	}()
	n, err := io.Copy(struct{ io.Writer }{to}, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = tooLarge(limit)
	}
	r.Close() // makes a pending write fail
	if e := <-written; err == nil {
		err = e
	}
	return err
}
