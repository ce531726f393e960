//go:build linux

package guestclient_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// allocated returns how much do has allocated in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestAMessageOfEmptyMessagesIsRefusedBeforeItIsDecoded(t *testing.T) {
	one := []byte{1<<3 | 2, 0} // an empty message in field 1, in two bytes
	body := bytes.Repeat(one, 4<<20-1)
	args := append([]byte{1<<3 | 2, 0x80, 0x80, 0x80, 0x03}, bytes.Repeat([]byte{2<<3 | 2, 0}, 3<<20)...) // empty arguments of one process
	for name, tt := range map[string]struct {
		body []byte
		call func(g *guestclient.Guest) error
	}{
		"processes": {body, func(g *guestclient.Guest) error { _, err := g.Processes(limit(t)); return err }},
		"arguments": {args, func(g *guestclient.Guest) error { _, err := g.Processes(limit(t)); return err }},
		"refusals":  {body, func(g *guestclient.Guest) error { _, err := g.Refusals(limit(t)); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/proto")
				_, _ = w.Write(tt.body)
			}), guestclient.Options{})
			var err error
			if n := allocated(func() { err = tt.call(g) }); n > 96<<20 {
				t.Errorf("it takes %d MB", n>>20)
			}
			if !errors.Is(err, paddock.Internal) {
				t.Errorf("it answers %v", err)
			}
		})
	}
}

func TestAPartOfALongMessageIsNotHeldOfAProcessWhoseOutputIsNotAskedFor(t *testing.T) {
	for n, fits := range map[int]bool{4 << 10: true, 16 << 10: false} {
		head := []byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(append(head, make([]byte, n)...)))}
		res.Header.Set("Content-Type", "application/connect+proto")
		_, err := io.Copy(io.Discard, guestclient.GuardSilent(res, guestpb.GuestAttachProcedure))
		if (err == nil) != fits {
			t.Errorf("a message of %d bytes: %v", n, err)
		}
	}
}

func TestAPartOfALongMessageIsNotHeld(t *testing.T) {
	for _, tt := range []struct {
		procedure string
		most      int
	}{
		{guestpb.GuestStartProcedure, 64 << 10},
		{guestpb.GuestAttachProcedure, 64 << 10},
		{guestpb.GuestDialProcedure, 64 << 10},
		{guestpb.GuestReadProcedure, 256 << 10},
		{guestpb.GuestWatchProcedure, 256 << 10},
		{guestpb.GuestListProcedure, 2 << 20},
		{guestpb.GuestWriteProcedure, 64 << 10},
	} {
		for _, extra := range []int{0, 8 << 10} {
			n := tt.most + extra
			head := []byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
			res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(append(head, make([]byte, n)...)))}
			res.Header.Set("Content-Type", "application/connect+proto")
			_, err := io.Copy(io.Discard, guestclient.Guard(res, tt.procedure))
			if wrong := extra > 0; (err != nil) != wrong {
				t.Errorf("%s: a message of %d bytes: %v", tt.procedure, n, err)
			}
		}
	}
}
