package endtoend

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// basic parses Basic authorization.
func basic(h http.Header) (user, password string, ok bool) {
	return (&http.Request{Header: h}).BasicAuth()
}

// A waiter stores output, and can wait for a text in it.
type waiter struct {
	mu   sync.Mutex
	buf  bytes.Buffer  // guarded by mu
	more chan struct{} // guarded by mu: closed when there is more
}

func (w *waiter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	return w.buf.Write(p)
}

func (w *waiter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// until waits until text was written, and reports whether it was.
func (w *waiter) until(ctx context.Context, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w.mu.Lock()
		if strings.Contains(w.buf.String(), text) {
			w.mu.Unlock()
			return true
		}
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more := w.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// children returns all processes below this one.
func children(t *testing.T) map[int]bool {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte(" "))
		if fields := bytes.Fields(rest); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(string(fields[1]))
		}
	}
	self, out := os.Getpid(), map[int]bool{}
	for pid := range parents {
		for up := parents[pid]; up > 1; up = parents[up] {
			if up == self {
				out[pid] = true
				break
			}
		}
	}
	return out
}

func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(data), "\x00", " ")
}

func isGateway(pid int) bool { return strings.HasPrefix(commandLine(pid), gatewayclient.Argv0) }

// pages returns the memory of a process in pieces. It leaves out pages that are not
// present, because reading would create them.
func pages(t *testing.T, pid int) [][]byte {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil // it has ended
	}
	defer maps.Close()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	there, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	var out [][]byte
	for in := bufio.NewScanner(maps); in.Scan(); {
		var from, to uint64
		if _, err := fmt.Sscanf(in.Text(), "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(in.Text(), "[v") { // the kernel's own pages
			continue
		}
		out = append(out, present(mem, there, from, to)...)
	}
	return out
}

// present reads the runs of present pages between two addresses.
func present(mem, there *os.File, from, to uint64) [][]byte {
	size := uint64(os.Getpagesize())
	const step = 1 << 16 // pages looked up at once
	var out [][]byte
	for at := from; at < to; at += step * size {
		n := min(step, (to-at)/size)
		entries := make([]byte, 8*n)
		got, _ := there.ReadAt(entries, int64(at/size*8))
		for i := uint64(0); i < uint64(got/8); {
			first := i
			for i < uint64(got/8) && binary.NativeEndian.Uint64(entries[8*i:])>>62 != 0 { // present, or swapped out
				i++
			}
			if i == first {
				i++
				continue
			}
			data := make([]byte, (i-first)*size)
			m, _ := mem.ReadAt(data, int64(at+first*size))
			out = append(out, data[:m])
		}
	}
	return out
}
