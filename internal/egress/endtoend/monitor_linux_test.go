package endtoend

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// fetch is a program that gets a page, and tells what came of it.
const fetch = `import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=300).read()
    print("fetched")
except Exception as e:
    print("failed", e)
`

// TestAMonitorJudgesTheConnectionsOfAKeptSandbox has the rules in the process that owns the sandbox, and the gateway ask it.
func TestAMonitorJudgesTheConnectionsOfAKeptSandbox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the jail of an ordinary user cannot be paused, and has no monitor")
	}
	w := newWorld(t, "first.test", "second.test")
	w.put(t, "fetch.py", []byte(fetch))
	for _, name := range everywhere {
		t.Run(string(name), func(t *testing.T) {
			rules := []paddock.NetworkRule{{Host: w.home()}}
			for _, host := range []string{"first.test", "second.test"} {
				rules = append(rules, paddock.NetworkRule{Host: host, Ports: []uint16{w.HTTP}})
			}
			b := w.box(t, tierOf(t, name), paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules}, func(s *paddock.Spec) {
				s.Ephemeral, s.Monitor = false, &paddock.Monitor{}
			})
			get := func(before, host string) string {
				return b.must(t, before+`python3 `+inside+`/fetch.py "$1"`, "http://"+net.JoinHostPort(host, fmt.Sprint(w.HTTP))+"/")
			}
			if out := get("", "first.test"); !strings.HasPrefix(out, "fetched") {
				t.Fatalf("the first host: %s\n\t%s", out, b.events)
			}
			if out := get("cat .env 2>/dev/null; ", "second.test"); !strings.HasPrefix(out, "failed") {
				t.Errorf("a new host after a command named a file of keys: %s", out)
			}
			if out := get("", "first.test"); !strings.HasPrefix(out, "fetched") {
				t.Errorf("the first host afterwards: %s", out)
			}
			st, err := b.Status(t.Context())
			if err != nil || st.Monitor == nil || st.Monitor.Verdicts["deny"] == 0 || st.Monitor.Verdicts["allow"] == 0 {
				t.Errorf("the status says %+v, %v", st.Monitor, err)
			}
			data, err := os.ReadFile(filepath.Join(b.kept[0], string(b.ID()), "audit.jsonl"))
			if err != nil || !strings.Contains(string(data), `"rule":"host-after-keys"`) {
				t.Errorf("the events are %s, %v", data, err)
			}
		})
	}
}
