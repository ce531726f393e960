package endtoend

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// The agent's program: it sends its key in three forms, prints every answer, and keeps
// running with everything in memory.
const agent = `import base64, http.client, os, ssl, sys
key, host, port = os.environ["TRIAL_KEY"], sys.argv[1], int(sys.argv[2])
told = b""
for method, path, header, body in (
	("GET", "/header", {"Authorization": "Bearer " + key}, None),
	("GET", "/basic", {"Authorization": "Basic " + base64.b64encode(("user:" + key).encode()).decode()}, None),
	("GET", "/query?key=" + key, {}, None),
	("POST", "/body", {"Content-Type": "application/json"}, '{"key": "' + key + '"}'),
):
	c = http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
	c.request(method, path, body, header)
	r = c.getresponse()
	told += str(r.status).encode() + b" " + str(r.getheaders()).encode() + b"\n" + r.read() + b"\n"
sys.stdout.buffer.write(told)
print("canary", os.environ["TRIAL_CANARY"], "done", flush=True)
sys.stdin.read()
`

// TestASecretIsUsedByARealClientAndCannotBeFoundInItsBox searches for the value of a secret
// wherever the box, or a reader of its remains, could find it. It does so after a client
// has used the secret in every place of a request, and while the client still runs.
func TestASecretIsUsedByARealClientAndCannotBeFoundInItsBox(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can read the memory of a box")
	}
	w := newWorld(t, "model.test")
	w.put(t, "agent.py", []byte(agent))
	for _, name := range everywhere {
		t.Run(string(name), func(t *testing.T) { w.hide(t, tierOf(t, name)) })
	}
}

func (w *world) hide(t *testing.T, tr tier) {
	t.Helper()
	// They are generated here, because the box's agent is this program and contains its
	// constants.
	hidden, canary := "sk-hidden-"+rand.Text(), "sk-canary-"+rand.Text()
	b := w.box(t, tr, paddock.NetworkPolicy{
		Mode:  paddock.NetworkList,
		Rules: []paddock.NetworkRule{{Host: "model.test", Ports: []uint16{w.HTTPS}}, {Host: w.home()}},
		Secrets: []paddock.Secret{{
			Name: "TRIAL_KEY", Value: hidden, Hosts: []string{fmt.Sprintf("model.test:%d", w.HTTPS)},
			Places: []paddock.SecretPlace{paddock.SecretHeader, paddock.SecretQuery, paddock.SecretBody},
		}},
	}, func(s *paddock.Spec) { s.Env["TRIAL_CANARY"] = canary })
	before := len(w.all())
	told := new(waiter)
	p, err := b.Start(t.Context(), paddock.Cmd{Args: []string{"/usr/bin/python3", inside + "/agent.py", "model.test", strconv.Itoa(int(w.HTTPS))}, Input: true, Output: paddock.Output{Stdout: told, Stderr: told}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	defer p.Input().Close()
	if !told.until(t.Context(), "done\n") {
		t.Fatalf("the agent said %q\n\t%s", told.text(), b.events)
	}
	got := w.all()[before:]
	if len(got) != 4 || got[0].Header.Get("Authorization") != "Bearer "+hidden || !strings.Contains(got[2].Query, hidden) || !strings.Contains(got[3].Body, hidden) {
		t.Fatalf("the server did not see the value: %+v\n\tthe agent was told %s", got, told.text())
	}
	if user, pass, ok := basic(got[1].Header); !ok || user != "user" || pass != hidden {
		t.Errorf("the server saw %q, %q as Basic authorization", user, pass)
	}

	s := searched{t: t, b: b, hidden: hidden, canary: canary, name: "TRIAL_KEY"}
	s.text("what the agent was told", told.text(), true)
	s.text("the environment of the box's processes", b.must(t, `cat /proc/[0-9]*/environ | tr '\0' '\n'; env`), true)
	b.must(t, `mkdir -p "$HOME/kept" && env >"$HOME/kept/environment" && env >/tmp/environment`)
	s.archive()
	s.state()
	s.told()
	s.memory()
}

// searched searches a box for the hidden value. The box does have the canary in the same
// places, so a search that does not find it would find nothing.
type searched struct {
	t              *testing.T
	b              *testBox
	hidden, canary string
	name           string // of the secret in the record
}

// forms are the encodings in which a value could occur.
func forms(value string) [][]byte {
	return [][]byte{[]byte(value), wide(value)}
}

// wide returns the value in UTF-16.
func wide(value string) []byte {
	var b []byte
	for _, c := range []byte(value) {
		b = append(b, c, 0)
	}
	return b
}

// has reports whether data contains a value.
func has(data []byte, value string) bool {
	return slices.ContainsFunc(forms(value), func(f []byte) bool { return bytes.Contains(data, f) })
}

func (s searched) text(what, text string, known bool) {
	s.t.Helper()
	if has([]byte(text), s.hidden) {
		s.t.Errorf("%s hold the value: %s", what, clip(text))
	}
	if known && !has([]byte(text), s.canary) {
		s.t.Errorf("%s do not hold the canary, so the search is of no use", what)
	}
}

// archive searches every file that the box can write.
func (s searched) archive() {
	s.t.Helper()
	out := s.b.must(s.t, `tar -c --ignore-failed-read --warning=none /etc /home /tmp /var/tmp /run /dev/shm "$HOME" 2>/dev/null; true`)
	found := false
	in := tar.NewReader(strings.NewReader(out))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			s.t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			s.t.Fatal(err)
		}
		if has(data, s.hidden) {
			s.t.Errorf("%s holds the value", h.Name)
		}
		found = found || has(data, s.canary)
	}
	if !found {
		s.t.Error("no file holds the canary, so the search is of no use")
	}
}

// state searches the driver's files on the host.
func (s searched) state() {
	s.t.Helper()
	for _, dir := range s.b.kept {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // a file that disappears meanwhile holds nothing
			}
			data, err := os.ReadFile(name)
			if err == nil && has(data, s.hidden) {
				s.t.Errorf("%s holds the value", name)
			}
			return nil
		})
		if err != nil {
			s.t.Error(err)
		}
	}
}

// told searches records and reports.
func (s searched) told() {
	s.t.Helper()
	used := false
	for _, e := range s.b.events.list() {
		line, err := audit.Line(e)
		if err != nil {
			s.t.Fatal(err)
		}
		s.text("the lines of the audit file", string(line), false)
		used = used || e.Network != nil && slices.Contains(e.Network.Secrets, s.name)
	}
	if !used {
		s.t.Errorf("the use of the secret was not recorded:\n\t%s", s.b.events)
	}
	st, err := s.b.Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.text("the words of its status", fmt.Sprintf("%+v", st), false)
}

// memory searches the memory of every process of the box, as seen from the host. The
// gateway is not one of them; it holds the value.
func (s searched) memory() {
	s.t.Helper()
	found, processes := false, 0
	for pid := range children(s.t) {
		if s.b.mine[pid] || isGateway(pid) {
			continue
		}
		processes++
		for _, p := range pages(s.t, pid) {
			if has(p, s.hidden) {
				s.t.Errorf("the memory of process %d (%s) holds the value", pid, commandLine(pid))
				break
			}
			found = found || has(p, s.canary)
		}
	}
	if !found {
		s.t.Errorf("no memory of %d processes holds the canary, so the search is of no use", processes)
	}
}
