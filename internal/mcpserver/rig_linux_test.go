package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/mcpserver"
	"github.com/paddock-sandbox/paddock/internal/server"
)

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime()) || gateway.Main() {
		return
	}
	drivertest.Main(m, func(state string) (paddock.Driver, error) { return jailed(state, "") })
}

func jailed(state, steps string) (paddock.Driver, error) {
	return jail.New(jail.Options{State: state, Steps: steps, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

// A rig is a server of jails, for any number of agents.
type rig struct {
	address string
	work    string // the user's directory
	offer   mcpserver.Offer
	jails   paddock.Driver
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{work: filepath.Join(dir, "work"), address: "unix://" + filepath.Join(dir, "s.sock")}
	if err := os.Mkdir(r.work, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.jails, err = jailed(filepath.Join(dir, "state"), filepath.Join(dir, "steps")); err != nil {
		t.Fatal(err)
	}
	api, err := server.New(server.Options{Caller: func(*http.Request) (server.Caller, error) {
		return server.Caller{Name: "test", Driver: r.jails, Trusted: true}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	web := api.HTTP()
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
	t.Cleanup(func() {
		for _, closed := range []func() error{api.Close, web.Close, r.jails.Close} {
			if err := closed(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	})
	weak := drivertest.Weak(t, func(state string) (paddock.Driver, error) { return jailed(state, "") })
	r.offer = mcpserver.Offer{
		Spec:      paddock.Spec{AllowMissing: weak},
		Directory: []paddock.Mount{{Source: r.work, Write: true}}, Undo: paddock.UndoOn,
	}
	return r
}

// An agent is a client that calls tools.
type agent struct {
	*mcp.ClientSession
	t        *testing.T
	vanish   func()        // closes its end
	gone     chan struct{} // closed when the server has ended
	mu       sync.Mutex
	progress []string // guarded by mu
	told     chan struct{}
}

// agent starts a server for a client, as paddock mcp does, and connects it.
func (r *rig) agent(t *testing.T, single bool) *agent {
	t.Helper()
	d, err := client.New(client.Options{Address: r.address})
	if err != nil {
		t.Fatal(err)
	}
	s, err := mcpserver.New(mcpserver.Options{Version: "test", Single: single, Offer: r.offer})
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	a := &agent{t: t, gone: make(chan struct{}), told: make(chan struct{}, 100)}
	a.vanish = func() { _ = toServer.Close() }
	go func() {
		defer close(a.gone)
		if err := s.Serve(context.Background(), d, fromClient, toClient); err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		_ = toClient.Close()
	}()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) {
			a.mu.Lock()
			a.progress = append(a.progress, n.Params.Message)
			a.mu.Unlock()
			a.told <- struct{}{}
		},
	})
	if a.ClientSession, err = c.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close() // which may have vanished already
		a.vanish()
		<-a.gone
	})
	return a
}

type args map[string]any

// call calls a tool, and gives its text, its structure and whether it failed.
func (a *agent) call(name string, in any) (text string, out map[string]any, failed bool) {
	a.t.Helper()
	res, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: in})
	if err != nil {
		a.t.Fatalf("%s %v: %v", name, in, err)
	}
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if res.StructuredContent != nil {
		data, err := json.Marshal(res.StructuredContent)
		if err == nil {
			err = json.Unmarshal(data, &out)
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
	return text, out, res.IsError
}

// must calls a tool that must not fail.
func (a *agent) must(name string, in any) (string, map[string]any) {
	a.t.Helper()
	text, out, failed := a.call(name, in)
	if failed {
		a.t.Fatalf("%s %v failed: %s", name, in, text)
	}
	return text, out
}

// refused calls a tool that must fail, with these words.
func (a *agent) refused(name string, in any, words ...string) {
	a.t.Helper()
	text, _, failed := a.call(name, in)
	if !failed {
		a.t.Errorf("%s %v did not fail: %s", name, in, text)
		return
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			a.t.Errorf("%s %v says %q, and not %q", name, in, text, word)
		}
	}
}

// box makes a sandbox.
func (a *agent) box(in args) string {
	a.t.Helper()
	_, out := a.must("sandbox_create", in)
	id, _ := out["sandbox"].(string)
	if id == "" {
		a.t.Fatalf("sandbox_create answers %v", out)
	}
	return id
}

// boxes counts those that there are.
func (r *rig) boxes(t *testing.T) int {
	t.Helper()
	list, err := r.jails.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
