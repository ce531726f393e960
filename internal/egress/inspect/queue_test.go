package inspect

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func TestALargeAnswerIsCarriedAsItComes(t *testing.T) {
	piece := make([]byte, 3<<20+5)
	_, _ = rand.NewChaCha8([32]byte{}).Read(piece)
	for _, row := range []struct {
		name  string
		end   string // what happens once the piece has arrived
		whole bool
	}{
		{"it goes on", "more", true},
		{"it breaks off", "break", false},
		{"the rules cut it", "cut", false},
		{"the guest goes away", "away", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			both(t, func(t *testing.T, http2 bool) {
				arrived := make(chan struct{})
				gone := make(chan struct{})
				w := secure(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = w.Write(piece)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-arrived:
					case <-t.Context().Done():
					}
					switch row.end {
					case "more":
						_, _ = w.Write(piece)
					case "break":
						panic(http.ErrAbortHandler)
					default:
						<-r.Context().Done()
						close(gone)
					}
				})
				cut := make(chan struct{})
				w.rules = func(decide.Request) Decision { return Decision{Verdict: decide.Verdict{Allow: true}, Cut: cut} }
				response, err := w.client(http2).Do(request(t, "GET", w.url("/"), nil))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				// All of it arrives although the answer has not ended.
				got := make([]byte, len(piece))
				if _, err := io.ReadFull(response.Body, got); err != nil || !bytes.Equal(got, piece) {
					t.Fatalf("other bytes came; %v", err)
				}
				close(arrived)
				switch row.end {
				case "cut":
					close(cut)
				case "away":
					response.Body.Close()
					<-gone
					return
				}
				rest, err := io.ReadAll(response.Body)
				if row.whole && (err != nil || !bytes.Equal(rest, piece)) {
					t.Errorf("the rest has %d bytes; %v", len(rest), err)
				}
				if !row.whole && err == nil {
					t.Error("it is taken for whole")
				}
				if row.end == "cut" {
					<-gone
				}
			})
		})
	}
}

func TestQueuesAreBounded(t *testing.T) {
	var s slots
	for range queuesMax {
		if !s.begin() {
			t.Fatal("fewer queues than there may be")
		}
	}
	if s.begin() {
		t.Error("one queue too many")
	}
	s.end()
	if !s.begin() {
		t.Error("no queue where one has ended")
	}
}

// A failing decoder ends one answer, not the gateway.
func TestAFaultInABodyEndsItsAnswer(t *testing.T) {
	q := newQueue()
	go q.fill(faulty{}, make([]byte, 8))
	data, err := q.take(nil)
	for err == nil {
		data, err = q.take(data)
	}
	if !errors.Is(err, paddock.Internal) {
		t.Errorf("%v", err)
	}
}

type faulty struct{}

func (faulty) Read([]byte) (int, error) { panic("broken") }
