package gvisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// counting is a process whose state is only in memory. It counts, and answers on a socket
// with its count and the size of its memory.
const counting = `
import socket, threading, time
held = bytearray(20 << 20)
n = 0
def count():
    global n
    while True:
        n += 1
        held[n % len(held)] = n % 251
        time.sleep(0.01)
threading.Thread(target=count, daemon=True).start()
s = socket.socket(); s.bind(("127.0.0.1", 7000)); s.listen()
while True:
    c, _ = s.accept()
    c.sendall(b"%d %d" % (n, len(held)))
    c.close()
`

func driver(t *testing.T) (paddock.Driver, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gv")
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return d, dir
}

func create(t *testing.T, d paddock.Driver, spec paddock.Spec) paddock.Sandbox {
	t.Helper()
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// ask returns the count of the counting process.
func ask(t *testing.T, sb paddock.Sandbox) int {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		conn, err := sb.Dial(t.Context(), 7000)
		if err == nil {
			var answer bytes.Buffer
			_, err = answer.ReadFrom(conn)
			conn.Close()
			var n, size int
			if _, e := fmt.Sscanf(answer.String(), "%d %d", &n, &size); err == nil && e == nil {
				if size != 20<<20 {
					t.Fatalf("it holds %d bytes", size)
				}
				return n
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the process does not answer: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func startCounting(t *testing.T, sb paddock.Sandbox) paddock.PID {
	t.Helper()
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"python3", "-c", counting}, Output: paddock.Output{Detached: true}})
	if err != nil {
		t.Fatal(err)
	}
	return p.ID()
}

// TestAPythonProcessCountsOnAfterPauseAndInForks demonstrates that a process survives a
// pause in which nothing of the sandbox runs, with the same PID, and that it continues
// separately in each fork.
func TestAPythonProcessCountsOnAfterPauseAndInForks(t *testing.T) {
	d, dir := driver(t)
	sb := create(t, d, paddock.Spec{ID: "counting"})
	pid := startCounting(t, sb)
	before := ask(t, sb)
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); len(boxes(t)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("while it is paused there runs %v", boxes(t))
		}
	}
	again, err := open(dir) // as if the server on this machine had been restarted
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	sb, err = again.Open(t.Context(), "counting")
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := ask(t, sb)
	if after < before || after > before+2000 {
		t.Errorf("it had counted to %d, and goes on from %d", before, after)
	}
	if list, err := sb.Processes(t.Context()); err != nil || len(list) != 1 || list[0].PID != pid || list[0].Exit != nil {
		t.Errorf("%+v, %v", list, err)
	}
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: true, Name: "fork"})
	if err != nil {
		t.Fatal(err)
	}
	var forks []paddock.Sandbox
	for range 2 {
		forks = append(forks, create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}))
	}
	for i, f := range forks {
		if n := ask(t, f); n < after {
			t.Errorf("fork %d begins at %d, its source was at %d", i, n, after)
		}
	}
	if err := forks[0].Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	one := ask(t, forks[1])
	time.Sleep(50 * time.Millisecond)
	if two := ask(t, forks[1]); two <= one {
		t.Errorf("a fork whose sister is gone stands at %d, after %d", two, one)
	}
	if n := ask(t, sb); n < after {
		t.Errorf("the source stands at %d", n)
	}
}

// An ephemeral sandbox, which has no keeper, is paused in the same way.
func TestAnEphemeralSandboxIsPausedToDisk(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true})
	startCounting(t, sb)
	before, kept := ask(t, sb), saved(t)
	for range 3 {
		if err := sb.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sb.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := ask(t, sb)
		if after < before {
			t.Errorf("it had counted to %d, and goes on from %d", before, after)
		}
		before = after
	}
	if now := saved(t); now != kept {
		t.Errorf("%d checkpoints are left of it", now-kept)
	}
}

// saved counts the saved states. The directory of snapshots of files, which stays, is none.
func saved(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "files" })
	return len(entries)
}

// boxes lists the processes of sandboxes that this process started.
func boxes(t *testing.T) []string {
	t.Helper()
	var list []string
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		pid := strings.Split(name, "/")[2]
		parent := fmt.Sprintf("PPid:\t%d\n", os.Getpid())
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "status"))
		if bytes.Contains(status, []byte(parent)) && bytes.HasPrefix(line, []byte("paddock-")) {
			list = append(list, fmt.Sprintf("%s %q", pid, line))
		}
	}
	return list
}

// A checkpoint that was changed, or is of another version, is refused with a message, and
// the refusal leaves nothing.
func TestABrokenCheckpointIsRefused(t *testing.T) {
	d, dir := driver(t)
	source := create(t, d, paddock.Spec{Ephemeral: true})
	for _, memory := range []bool{true, false} {
		id, err := source.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		kind, at := paddock.Conflict, filepath.Join(data, string(id))
		parts := []string{"state", "index", "pages"}
		if !memory {
			kind, at, parts = paddock.Invalid, filepath.Join(data, "files", "snapshot"), []string{string(id)}
		}
		type damage struct {
			what string
			do   func(t *testing.T)
			kind paddock.Kind
			word string
		}
		var list []damage
		for _, part := range parts {
			file := filepath.Join(at, part)
			list = append(list,
				damage{part + " with a bit changed", func(t *testing.T) { change(t, file, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) }, kind, "damaged"},
				damage{part + " cut short", func(t *testing.T) { change(t, file, func(b []byte) []byte { return b[:len(b)/2] }) }, kind, "damaged"},
				damage{part + " emptied", func(t *testing.T) { change(t, file, func([]byte) []byte { return nil }) }, kind, "damaged"},
			)
			if memory {
				list = append(list, damage{part + " missing", func(t *testing.T) { rename(t, file) }, paddock.Conflict, "missing"})
			} else {
				list = append(list, damage{"missing", func(t *testing.T) { rename(t, file) }, paddock.NotFound, ""})
			}
		}
		about := filepath.Join(at, "checkpoint.json")
		edit := func(key string, value any) func(t *testing.T) {
			return func(t *testing.T) {
				change(t, about, func(b []byte) []byte {
					var m map[string]any
					if err := json.Unmarshal(b, &m); err != nil {
						t.Fatal(err)
					}
					m[key] = value
					b, err := json.Marshal(m)
					if err != nil {
						t.Fatal(err)
					}
					return b
				})
			}
		}
		described := []damage{
			{"another gVisor", edit("kernel", "gVisor 19990101"), paddock.Unsupported, "saved by gVisor 19990101"},
			{"another format", edit("format", 99), paddock.Unsupported, "format 99"},
			{"a description that is none", func(t *testing.T) { change(t, about, func(b []byte) []byte { return b[:len(b)/2] }) }, paddock.Conflict, "damaged"},
			{"no description", func(t *testing.T) { rename(t, about) }, paddock.NotFound, ""},
			{"another agent", edit("agent", "00000000"), paddock.Unsupported, "another version of Paddock"},
		}
		if memory {
			list = append(list, described...)
		}
		for _, row := range list {
			t.Run(row.what, func(t *testing.T) {
				row.do(t)
				sb, err := d.Create(t.Context(), paddock.Spec{ID: "broken", Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
				if err == nil {
					_ = sb.Remove(t.Context())
				}
				if paddock.KindOf(err) != row.kind || !strings.Contains(fmt.Sprint(err), row.word) {
					t.Errorf("%v (%v), want %v with %q", err, paddock.KindOf(err), row.kind, row.word)
				}
				if _, err := os.Lstat(filepath.Join(dir, "broken")); err == nil {
					t.Error("something was left")
				}
			})
		}
		sb := create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
		if st, err := sb.Status(t.Context()); err != nil || st.State != paddock.Ready {
			t.Errorf("whole again: %+v, %v", st, err)
		}
	}
}

// change replaces a file's content for the test.
func change(t *testing.T, file string, how func([]byte) []byte) {
	t.Helper()
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) {
		// Write a new file, so that open files of other processes do not change.
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { put(was) })
	put(how(bytes.Clone(was)))
}

func rename(t *testing.T, file string) {
	t.Helper()
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Rename(file+".away", file); err != nil {
			t.Error(err)
		}
	})
}
