package fileserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// bodies returns a request of each kind, for a tree whose first nodes and handles have low
// numbers.
func bodies() map[op]*message {
	return map[op]*message{
		opLookup:        names("work"),
		opForget:        new(message).u64(1),
		opGetattr:       new(message).u32(0, 0).u64(0),
		opSetattr:       setBody(setSize|setMode|setMtime, 0, 3, 0o600, 1, 0),
		opReadlink:      {},
		opSymlink:       names("l", "/etc"),
		opMknod:         new(message).u32(0o644, 0, 0, 0).text("n"),
		opMkdir:         new(message).u32(0o755, 0).text("d"),
		opUnlink:        names("n"),
		opRmdir:         names("d"),
		opRename:        new(message).u64(2).text("n", "m"),
		opRename2:       new(message).u64(2).u32(renameExchange, 0).text("note", "m"),
		opLink:          new(message).u64(3).text("o"),
		opOpen:          new(message).u32(2, 0),
		opRead:          readBody(4, 0, 100),
		opWrite:         new(message).u64(4, 0).u32(2, 0).u64(0).u32(0, 0).text("x"),
		opStatfs:        {},
		opRelease:       new(message).u64(4, 0, 0),
		opFsync:         new(message).u64(4).u32(1, 0),
		opInit:          new(message).u32(7, 38, 0, 0xffffffff),
		opOpendir:       new(message).u32(0, 0),
		opReaddir:       readBody(5, 0, 600),
		opReaddirplus:   readBody(5, 0, 600),
		opReleasedir:    new(message).u64(5, 0, 0),
		opFsyncdir:      new(message).u64(5).u32(0, 0),
		opAccess:        new(message).u32(4, 0),
		opCreate:        createBody(syscall.O_RDWR, 0o644, "c"),
		opInterrupt:     new(message).u64(2),
		opDestroy:       {},
		opBatchForget:   new(message).u32(1, 0).u64(3, 1),
		opFallocate:     new(message).u64(4, 0, 100).u32(0, 0),
		opLseek:         new(message).u64(4, 0).u32(seekHole, 0),
		opCopyFileRange: new(message).u64(4, 0, 3, 4, 50, 9, 0),
	}
}

// A tape is read to its end, and discards everything written.
type tape struct {
	net.Conn

	in  *bytes.Reader
	out bytes.Buffer
}

func (t *tape) Read(p []byte) (int, error)  { return t.in.Read(p) }
func (t *tape) Write(p []byte) (int, error) { return t.out.Write(p) }
func (t *tape) Close() error                { return nil }

// small makes a directory below top, and a secret beside it.
func small(t testing.TB, top string) string {
	t.Helper()
	for name, text := range map[string]string{"root/work/note": "a note", "root/usr/tool": "tool", "secret": "secret"} {
		path := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(top, "root")
	if err := os.Symlink("../..", filepath.Join(root, "work/up")); err != nil {
		t.Fatal(err)
	}
	return root
}

// FuzzRequest sends any input to a server of a real directory. Every answer must be valid,
// and nothing outside the workspace may change.
func FuzzRequest(f *testing.F) {
	begun := frame(opInit, 2, 0, bodies()[opInit].data)
	begun = append(begun, frame(opLookup, 4, rootID, []byte("work\x00"))...)
	all := append(bytes.Clone(begun), frame(opLookup, 6, 2, []byte("note\x00"))...)
	all = append(all, frame(opOpen, 8, 3, bodies()[opOpen].data)...)
	all = append(all, frame(opOpendir, 10, 2, bodies()[opOpendir].data)...)
	for o, m := range bodies() {
		f.Add(append(bytes.Clone(all), frame(o, 12, 2, m.data)...))
		f.Add(append(bytes.Clone(begun), frame(o, 12, 3, m.data)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		top, err := os.MkdirTemp("", "share")
		if err != nil {
			t.Fatal(err)
		}
		defer removeAll(t, top)
		dir := small(t, top)
		s, err := New(options(t, dir, work(true)))
		if err != nil {
			t.Fatal(err)
		}
		s.nodeMax, s.handleMax = 50, 10
		c := &tape{in: bytes.NewReader(data)}
		_ = s.Serve(c)
		state, err := s.State()
		if err != nil {
			t.Error(err)
		}
		s.Close()
		if s, err = Restore(options(t, dir, work(true)), state); err != nil {
			t.Error(err)
		} else {
			s.Close()
		}
		checkReplies(t, c.out.Bytes())
		for name, want := range map[string]string{"secret": "secret", "root/usr/tool": "tool"} {
			if got, err := os.ReadFile(filepath.Join(top, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if list, _ := os.ReadDir(top); len(list) != 2 {
			t.Errorf("%d files beside the directory", len(list))
		}
	})
}

// removeAll removes a directory, whatever modes its entries have.
func removeAll(t *testing.T, top string) {
	t.Helper()
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // the walk calls this before it reads the directory
		}
		return nil
	})
	if err := os.RemoveAll(top); err != nil {
		t.Error(err)
	}
}

func checkReplies(t *testing.T, data []byte) {
	t.Helper()
	for in := bytes.NewReader(data); in.Len() > 0; {
		head := make([]byte, headOut)
		if _, err := io.ReadFull(in, head); err != nil {
			t.Fatal(err)
		}
		n := int64(binary.LittleEndian.Uint32(head)) - headOut
		errno := int32(binary.LittleEndian.Uint32(head[4:]))
		if n < 0 || n > maxData || n > int64(in.Len()) || errno > 0 || errno < -511 || errno != 0 && n != 0 {
			t.Fatalf("an answer of %d bytes with %d", n, errno)
		}
		_, _ = in.Seek(n, io.SeekCurrent)
	}
}

// FuzzRestore restores a server from any input.
func FuzzRestore(f *testing.F) {
	root := small(f, f.TempDir())
	c := begin(f, root, work(true))
	note := c.walk("work", "note").id
	_, _, _ = c.open(opOpen, note, syscall.O_RDWR)
	_, _, _ = c.open(opOpendir, rootID, 0)
	state, err := c.server.State()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add(bytes.Replace(state, []byte("note"), []byte("../s"), 1))
	f.Add(bytes.Replace(state, []byte("work"), make([]byte, 4), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Restore(options(t, root, work(true)), data)
		if err != nil {
			return
		}
		defer s.Close()
		again, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readState(again); err != nil {
			t.Error(err)
		}
		var ask []byte
		for id := range s.nodes {
			ask = append(ask, frame(opGetattr, 2, id, bodies()[opGetattr].data)...)
			ask = append(ask, frame(opOpen, 2, id, bodies()[opOpen].data)...)
		}
		for id := range s.handles {
			ask = append(ask, frame(opRead, 2, 0, readBody(id, 0, 9).data)...)
			ask = append(ask, frame(opReaddirplus, 2, 0, readBody(id, 0, 999).data)...)
			ask = append(ask, frame(opRelease, 2, 0, new(message).u64(id, 0, 0).data)...)
		}
		out := &tape{in: bytes.NewReader(ask)}
		if err := s.Serve(out); err != nil {
			t.Error(err)
		}
		checkReplies(t, out.out.Bytes())
	})
}

func BenchmarkRequest(b *testing.B) {
	dir := tree(b)
	if err := os.WriteFile(filepath.Join(dir, "usr/big"), make([]byte, 4<<20), 0o644); err != nil {
		b.Fatal(err)
	}
	c := begin(b, dir, work(true))
	c.in = bufio.NewReaderSize(c.conn, 256<<10)
	usr := c.walk("usr").id
	h, _, _ := c.open(opOpen, c.walk("usr", "big").id, syscall.O_RDONLY)
	for _, bb := range []struct {
		name    string
		request []byte
		reply   int
		size    int64
	}{
		{"getattr", frame(opGetattr, 2, usr, bodies()[opGetattr].data), headOut + 104, 0},
		{"lookup", frame(opLookup, 2, usr, []byte("big\x00")), headOut + entrySize, 0},
		{"read 4 KiB", frame(opRead, 2, 0, readBody(h, 4096, 4096).data), headOut + 4096, 4096},
		{"read 128 KiB", frame(opRead, 2, 0, readBody(h, 4096, 128<<10).data), headOut + 128<<10, 128 << 10},
		{"read 1 MiB", frame(opRead, 2, 0, readBody(h, 4096, 1<<20).data), headOut + 1<<20, 1 << 20},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(bb.size)
			b.ReportAllocs()
			reply := make([]byte, bb.reply)
			for b.Loop() {
				if _, err := c.conn.Write(bb.request); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c.in, reply); err != nil {
					b.Fatal(err)
				}
				if binary.LittleEndian.Uint32(reply) != uint32(bb.reply) {
					b.Fatalf("% x", reply[:headOut])
				}
			}
		})
	}
}
