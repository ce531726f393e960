package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent"
)

// greeter is a server on loopback, which only a rule that lists the address
// reaches.
func greeter(t *testing.T) (at string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "welcome") }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// alone runs the program on its real tiers.
func alone(t *testing.T, args ...string) *clitest.Invocation {
	t.Helper()
	return invoke(t.TempDir(), map[string]string{"HOME": t.TempDir()}, tiers.Registry(tiers.Programs{}), args...)
}

func TestWhatIsRefusedIsToldWithTheFlagThatAllowsIt(t *testing.T) {
	at := greeter(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "events")
	v := alone(t, "run", "--tier", "sim", "--allow", at, "--audit", file, "--audit-kinds", "network", "--",
		"curl -sS http://"+at+"/; curl -s http://other.example:81/; exit 4")
	if code := v.Run(t.Context()); code != 4 || v.Stdout.String() != "welcome\n" {
		t.Fatalf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	for _, want := range []string{"  connect other.example:81: no rule allows other.example:81\n", "hint: --allow other.example:81\n"} {
		if !strings.Contains(v.Stderr.String(), want) {
			t.Errorf("said %q, want %q in it", v.Stderr.String(), want)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]int{}
	lines, _ := clitest.EventsIn(t, data)
	for _, line := range lines {
		var e audit.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Kind != audit.Started && (e.Kind != audit.Network || e.Network == nil) {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Kind == audit.Started {
			continue
		}
		verdicts[e.Network.Verdict]++
	}
	if verdicts["allow"] == 0 || verdicts["deny"] == 0 {
		t.Errorf("recorded %s", data)
	}
}

func TestAPersonIsAskedWhileTheCommandWaits(t *testing.T) {
	at := greeter(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	// A name that leads to the server; what it leads to must be listed all the same.
	row := cli.Tier{Name: paddock.Sim, Open: func(g cli.Gear) (paddock.Driver, error) {
		return parent.New(parent.Options{Hosts: map[string][]netip.Addr{"web.test": {netip.MustParseAddr("127.0.0.1")}}, Ask: g.Ask, Judge: g.Judge, Audit: g.Audit})
	}}
	url := "http://web.test:" + port + "/"
	v := invoke(t.TempDir(), nil, []cli.Tier{row}, "run", "--tier", "sim", "--allow", at, "--ask", "--", "curl -sS "+url+" && curl -sS "+url)
	v.App.Tty = func() (*os.File, error) { return r, nil }
	ended := make(chan struct{})
	var person sync.WaitGroup
	person.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond):
				fmt.Fprintln(w, "always")
			}
		}
	})
	code := v.Run(t.Context())
	close(ended)
	person.Wait()
	if code != 0 || v.Stdout.String() != "welcome\nwelcome\n" {
		t.Errorf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if want := "hint: to allow it from the start: --allow web.test:" + port + "\n"; !strings.HasSuffix(v.Stderr.String(), want) {
		t.Errorf("said %q, want %q at its end", v.Stderr.String(), want)
	}
}

func TestLearningReachesNothingPrivate(t *testing.T) {
	at := greeter(t)
	v := alone(t, "policy", "learn", "--tier", "sim", "--", "curl -sS http://"+at+"/")
	if code := v.Run(t.Context()); code == 0 || strings.Contains(v.Stdout.String(), "welcome") || strings.Contains(v.Stderr.String(), "welcome") {
		t.Fatalf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if !strings.Contains(v.Stdout.String(), "#   "+at+": ") || strings.Contains(v.Stdout.String(), "- allow") {
		t.Errorf("wrote %s", v.Stdout.String())
	}
}
