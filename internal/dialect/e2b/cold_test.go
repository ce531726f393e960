package e2b_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

func TestAPauseWithoutMemoryKeepsFilesUnderTheSameName(t *testing.T) {
	b := newBench(t)
	id, token := b.make("acme")
	if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/pause", `{"memory":false}`); code != 204 {
		t.Fatalf("pause: %d %v", code, v)
	}
	kept := b.cold()
	if list, err := b.d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("what was paused without its memory still runs: %v %v", list, err)
	}
	b.close()
	b.open()
	if code, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 || v["state"] != "paused" {
		t.Errorf("told: %d %v", code, v)
	}
	if code, v := b.ask("acme", "GET", "/v2/sandboxes?state=paused", ""); code != 200 || !strings.Contains(v["text"].(string), id) {
		t.Errorf("listed: %d %v", code, v)
	}
	if code, v := b.ask("", "GET", "/health", "", "E2b-Sandbox-Id", id); code != 502 {
		t.Errorf("health: %d %v", code, v)
	}
	for _, call := range []string{"pause", "snapshots", "fork"} {
		if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/"+call, ""); code != 409 {
			t.Errorf("%s: %d %v", call, code, v)
		}
	}
	if code, v := b.ask("acme", "POST", "/v2/sandboxes/"+id+"/connect", `{"memory":false}`); code != 201 || v["sandboxID"] != id || v["envdAccessToken"] != token {
		t.Errorf("connect: %d %v", code, v)
	}
	if code, v := b.ask("", "GET", "/x", "", "E2b-Sandbox-Id", id); code != 200 || v["text"] != token {
		t.Errorf("it answers: %d %v", code, v)
	}
	if code, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 || v["state"] != "running" {
		t.Errorf("told: %d %v", code, v)
	}
	if code, v := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d %v", code, v)
	}
	b.nothingIsLeft(kept)
}

func TestASandboxThatIsPausedWithoutItsMemoryCanBeKilled(t *testing.T) {
	b := newBench(t)
	id, _ := b.make("acme")
	if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/pause", `{"memory":false}`); code != 204 {
		t.Fatalf("pause: %d %v", code, v)
	}
	kept := b.cold()
	if code, _ := b.ask("other", "DELETE", "/sandboxes/"+id, ""); code != 404 {
		t.Errorf("by another tenant: %d", code)
	}
	if code, v := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d %v", code, v)
	}
	if code, _ := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 404 {
		t.Errorf("told: %d", code)
	}
	b.nothingIsLeft(kept)
}

// cold gives the snapshot that the one sandbox is kept as.
func (b *bench) cold() paddock.SnapshotID {
	b.Helper()
	var rec struct{ Cold paddock.SnapshotID }
	for _, data := range b.notes.data {
		if err := json.Unmarshal([]byte(data), &rec); err != nil {
			b.Fatal(err)
		}
	}
	if rec.Cold == "" {
		b.Fatalf("no snapshot is written down: %v", b.notes.data)
	}
	return rec.Cold
}

// nothingIsLeft says what a sandbox that was killed left.
func (b *bench) nothingIsLeft(kept paddock.SnapshotID) {
	b.Helper()
	list, err := b.d.List(b.Context())
	if err != nil || len(list) != 0 {
		b.Errorf("sandboxes: %v %v", list, err)
	}
	if _, err := b.d.Create(b.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: kept}}); paddock.KindOf(err) != paddock.NotFound {
		b.Errorf("its snapshot was left: %v", err)
	}
	if len(b.notes.data) != 0 {
		b.Errorf("notes: %v", b.notes.data)
	}
}

// A stubborn driver removes no snapshot, as one whose server is killed before; then it
// tells of each.
type stubborn struct {
	lifetime.Lessor
	removes chan error // nil refuses
}

func (s stubborn) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	if s.removes == nil {
		return fmt.Errorf("killed: %w", paddock.Unavailable)
	}
	err := s.Lessor.RemoveSnapshot(ctx, id)
	s.removes <- err
	return err
}

func TestASnapshotThatAKilledServerLeftIsRemovedByTheNext(t *testing.T) {
	b := newBench(t)
	reopen := func(k lifetime.Lessor) {
		b.close()
		b.lessor = k
		b.open()
	}
	id, _ := b.make("acme")
	reopen(stubborn{Lessor: b.d})
	if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/pause", `{"memory":false}`); code != 204 {
		t.Fatalf("pause: %d %v", code, v)
	}
	kept := b.cold()
	reopen(stubborn{b.d, make(chan error)}) // it would hang if what is in use were removed
	reopen(stubborn{Lessor: b.d})
	if code, v := b.ask("acme", "POST", "/v2/sandboxes/"+id+"/connect", ""); code != 201 {
		t.Fatalf("connect: %d %v", code, v)
	}
	removes := make(chan error, 1)
	reopen(stubborn{b.d, removes})
	if err := <-removes; err != nil {
		t.Errorf("removed: %v", err)
	}
	if code, v := b.ask("acme", "GET", "/sandboxes/"+id, ""); code != 200 || v["state"] != "running" {
		t.Errorf("what goes on: %d %v", code, v)
	}
	b.close()
	b.lessor = b.d
	b.open()
	if code, v := b.ask("acme", "DELETE", "/sandboxes/"+id, ""); code != 204 {
		t.Errorf("kill: %d %v", code, v)
	}
	b.nothingIsLeft(kept)
}

func TestPagesOfAnyOriginMayAskWithAKey(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{"/v2/sandboxes", "/files", "/process.Process/Start"} {
		code, _, head := b.whole("OPTIONS", path, "Origin", "https://page.test", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-api-key,e2b-sandbox-id")
		if code != 204 || head.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(head.Get("Access-Control-Allow-Headers"), "x-api-key") {
			t.Errorf("%s: %d %v", path, code, head)
		}
	}
	code, _, head := b.whole("GET", "/v2/sandboxes", "Origin", "https://page.test", "X-Api-Key", "acme")
	if code != 200 || head.Get("Access-Control-Allow-Origin") != "*" || head.Get("Access-Control-Expose-Headers") != "*" {
		t.Errorf("%d %v", code, head)
	}
	if code, _, head := b.whole("GET", "/v2/sandboxes", "Origin", "https://page.test"); code != 401 || head.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("without a key: %d %v", code, head)
	}
}

func TestPagesOfAnyOriginMayAskTheAgentAndTheInterpreter(t *testing.T) {
	b := newBench(t)
	id, token := b.make("acme")
	for _, port := range []string{"49983", "49999"} {
		for _, at := range [][]string{{"E2b-Sandbox-Id", id, "E2b-Sandbox-Port", port}, {"E2b-Sandbox-Id", "inothing", "E2b-Sandbox-Port", port}} {
			page := append(slices.Clone(at), "Origin", "https://page.test")
			code, _, head := b.whole("OPTIONS", "/x", append(page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "x-access-token,connect-protocol-version")...)
			if code != 204 || head.Get("Access-Control-Allow-Origin") != "*" || head.Get("Access-Control-Allow-Headers") != "x-access-token,connect-protocol-version" {
				t.Errorf("%s, beforehand: %d %v", at, code, head)
			}
			for _, shown := range []string{token, "wrong"} {
				code, text, head := b.whole("GET", "/x", append(page, "X-Access-Token", shown)...)
				if head.Get("Access-Control-Allow-Origin") != "*" || head.Get("Access-Control-Expose-Headers") != "*" || len(head.Values("Access-Control-Allow-Origin")) != 1 {
					t.Errorf("%s: %d %s %v", at, code, text, head)
				}
			}
		}
	}
	if code, _, head := b.whole("GET", "/", "E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "3000", "Origin", "https://page.test"); head.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("what listens inside says that itself: %d %v", code, head)
	}
}

func TestABrowserIsToldOfAClosedPortByAPage(t *testing.T) {
	b := newBench(t)
	id, _ := b.make("acme")
	code, text, head := b.whole("GET", "/", "E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "3000", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64)")
	if code != 502 || !strings.Contains(text, "<title>Closed Port Error</title>") || !strings.HasPrefix(head.Get("Content-Type"), "text/html") || !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %s %v", code, text, head)
	}
	if code, text, _ := b.whole("GET", "/", "E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "3000"); code != 502 || !strings.HasPrefix(text, "{") {
		t.Errorf("a program: %d %s", code, text)
	}
}

// whole makes a request, and gives all of its answer.
func (b *bench) whole(method, path string, head ...string) (int, string, http.Header) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.s.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(head); i += 2 {
		r.Header.Set(head[i], head[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res.StatusCode, string(data), res.Header
}
