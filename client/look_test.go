package client_test

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/server"
)

func TestAKeyThatMayOnlyLookGetsAllOutputThroughTheClient(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Caller: func(r *http.Request) (server.Caller, error) {
		return server.Caller{Name: "one", Driver: d, ReadOnly: r.Header.Get("Authorization") == "Bearer looks"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, address, err := onTCP("")
	if err != nil {
		t.Fatal(err)
	}
	web := s.HTTP()
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), web.Close(), d.Close()); err != nil {
			t.Errorf("stop the server: %v", err)
		}
		wg.Wait()
	})
	sb := newBox(t, connect(t, client.Options{Address: address}))
	var want, got bytes.Buffer
	p, err := sb.Start(bounded(t), paddock.Cmd{Args: []string{"seq", "1", "500000"}, Output: paddock.Output{Stdout: &want}})
	if err != nil {
		t.Fatal(err)
	}
	looker, err := connect(t, client.Options{Address: address, Key: "looks"}).Open(bounded(t), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	look, err := looker.Attach(bounded(t), p.ID(), paddock.Output{Stdout: &got})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(bounded(t)); err != nil {
		t.Fatal(err)
	}
	exit, err := look.Wait(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if missing := want.Len() - got.Len(); int64(missing) != exit.Dropped {
		t.Errorf("%d bytes came of %d, and %d were dropped", got.Len(), want.Len(), exit.Dropped)
	}
}
