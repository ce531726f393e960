package envd

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// A flood is a sandbox whose processes write without end.
type flood struct {
	nothing
	started atomic.Int32
	taken   atomic.Int64 // bytes that were accepted
}

func (f *flood) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	p := &busy{pid: paddock.PID(100 + f.started.Add(1)), released: make(chan struct{}), end: make(chan struct{})}
	go func() { // ends when the process is released, because no writer waits then
		data := make([]byte, 64<<10)
		for {
			n, err := cmd.Output.Stdout.Write(data)
			select {
			case <-p.released:
				return
			default:
			}
			f.taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	return p, nil
}

func TestAFloodForClientsThatReadNothingTakesNoMoreThanWhatIsCounted(t *testing.T) {
	const many = 500
	f := &flood{}
	b, err := New(Options{Sandbox: f})
	if err != nil {
		t.Fatal(err)
	}
	readers := make([]*reader, many)
	for i := range readers {
		readers[i] = newReader()
		if _, err := b.start(t.Context(), http.Header{}, &envdpb.StartRequest{Process: &envdpb.ProcessConfig{Cmd: "x"}}, readers[i]); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for i := 0; i < many; {
		if len(readers[i].data) == cap(readers[i].data) {
			i++
			continue
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the output never stopped")
		}
	}
	// What is accepted is in the queues, but for a piece of each that waits for its turn. One more may be on its way to
	// the client, decoded and encoded.
	queued := int64(0)
	for _, r := range readers {
		queued += int64(cap(r.data)) * pieceSize
	}
	if most := int64(many * readerCost); queued+many*3*pieceSize > most || f.taken.Load() > most {
		t.Errorf("%d KiB of each client wait, and %d KiB were accepted; %d KiB are counted", queued/many>>10, f.taken.Load()/many>>10, readerCost>>10)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatASandboxSendsAheadCountsForItsOwner(t *testing.T) {
	const most = 2*processCost + 3*readerCost // a process and two clients of it can give way to a watch
	room := newNarrow(most)
	tr := newTrial(t, func(o *Options) { o.Ahead = room })
	first := tr.open("process.Process/Start", start("sleep 1000"))
	pid := first.pid()
	join := fmt.Sprintf(`{"process":{"pid":%d}}`, pid)
	other := tr.open("process.Process/Connect", join)
	other.pid()
	tr.open("process.Process/Start", start("sleep 1000")).pid()
	if n := room.taken(most); n != most {
		t.Errorf("%d bytes are counted", n)
	}
	for method, body := range map[string]string{
		"process.Process/Start": start("true"), "process.Process/Connect": join, "filesystem.Filesystem/WatchDir": `{"path":"/tmp"}`,
	} {
		if _, _, _, failure := tr.open(method, body).rest(); !strings.Contains(failure, "resource_exhausted") || !strings.Contains(failure, "too many processes") {
			t.Errorf("%s: %q", method, failure)
		}
	}
	if _, failure := tr.call("filesystem.Filesystem/CreateWatcher", `{"path":"/tmp"}`); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("a watcher: %q", failure)
	}
	other.quit()
	tr.must("process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":"SIGNAL_SIGKILL"}`, pid))
	_, _, _, failure := first.rest()
	if failure != "" {
		t.Error(failure)
	}
	var watcher map[string]any
	for limit := time.Now().Add(time.Minute); ; { // until the handlers have seen the ends
		if watcher, failure = tr.call("filesystem.Filesystem/CreateWatcher", `{"path":"/tmp"}`); failure == "" {
			break
		}
		if time.Now().After(limit) {
			t.Fatal(failure)
		}
	}
	tr.must("filesystem.Filesystem/RemoveWatcher", fmt.Sprintf(`{"watcherId":%q}`, watcher["watcherId"]))
	if err := tr.box.Close(); err != nil {
		t.Error(err)
	}
	if n := room.taken(most); n != 0 {
		t.Errorf("%d bytes are counted of nobody", n)
	}
}
