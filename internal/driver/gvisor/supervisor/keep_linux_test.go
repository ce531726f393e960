package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/sentry/state/checkpointfiles"
	"gvisor.dev/gvisor/pkg/sentry/state/stateio"
	"gvisor.dev/gvisor/pkg/sentry/state/stateipc"
	"gvisor.dev/gvisor/pkg/unet"
	"gvisor.dev/gvisor/pkg/urpc"
)

// hostile is a compromised sentry, which has only the connection.
func hostile(t *testing.T, limit int64) (*keep, *stateipc.AsyncFileClient, []*os.File) {
	t.Helper()
	var files []*os.File
	for _, name := range []string{"state", "index", "pages"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	k, theirs, err := newKeep(files, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	fd, err := syscall.Dup(int(theirs.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	socket, err := unet.NewSocket(fd)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stateipc.NewAsyncFileClient(urpc.NewClient(socket))
	if err != nil {
		t.Fatal(err)
	}
	return k, c, files
}

func TestASentryCannotWriteMoreThanThereIsRoomFor(t *testing.T) {
	const limit, underWay = 4 << 20, 64 << 20
	for i, name := range []string{checkpointfiles.StateFileName, checkpointfiles.PagesMetadataFileName, checkpointfiles.PagesFileName} {
		k, c, files := hostile(t, limit)
		out, err := c.OpenWrite(name)
		if err != nil {
			t.Fatal(err)
		}
		w, err := stateio.NewBufWriter(out, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		data, written := make([]byte, 1<<20), 0
		for err == nil && written < 1<<30 {
			_, err = w.Write(data)
			written += len(data)
		}
		_ = w.Close() // it has failed
		c.DecRef()
		k.stop()
		st, e := files[i].Stat()
		if e != nil {
			t.Fatal(e)
		}
		if err == nil || st.Size() > limit+underWay {
			t.Errorf("%s: of %d bytes %d were written: %v", name, written, st.Size(), err)
		}
		if !k.over() {
			t.Errorf("%s: nobody knows", name)
		}
	}
}

func TestASentryOpensEachFileOnceToWrite(t *testing.T) {
	k, c, _ := hostile(t, 1<<20)
	defer k.stop()
	defer c.DecRef()
	for _, name := range []string{"", "/etc/passwd", "../" + checkpointfiles.StateFileName, "files.tar"} {
		if _, err := c.OpenWrite(name); err == nil {
			t.Errorf("%q was opened", name)
		}
	}
	if _, err := c.OpenRead(checkpointfiles.StateFileName); err == nil {
		t.Error("it was opened to read")
	}
	w, err := c.OpenWrite(checkpointfiles.StateFileName)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.OpenWrite(checkpointfiles.StateFileName); err == nil {
		t.Error("it was opened twice")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A copy from a pipe ends at the limit, and the writer gets an error.
func TestACopyEndsWhereThereIsNoRoom(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var told error
	err = copyUpTo(f, 1<<20, func(w *os.File) error {
		data := make([]byte, 64<<10)
		for i := 0; i < 1<<14 && told == nil; i++ {
			_, told = w.Write(data)
		}
		return nil
	})
	st, e := f.Stat()
	if e != nil {
		t.Fatal(e)
	}
	if err == nil || told == nil || st.Size() > 1<<20+1 {
		t.Errorf("%v, %v, %d bytes", err, told, st.Size())
	}
}
