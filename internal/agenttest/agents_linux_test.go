package agenttest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// each runs a test of a suite for the named agents on each tier, or for all. Of a sample it is one agent on one tier.
func each(t *testing.T, suite string, run func(t *testing.T, tier string, p product), agents ...string) {
	t.Helper()
	var names []string
	cases := map[string]func(*testing.T){}
	for _, tier := range []string{"jail", "gvisor"} {
		for _, p := range products() {
			if len(agents) > 0 && !slices.Contains(agents, p.name) {
				continue
			}
			name := tier + "/" + p.name
			names = append(names, name)
			cases[name] = func(t *testing.T) { run(t, tier, p) }
		}
	}
	tried, left := sample.Part(sample.Seed(suite), suite, names, len(names))
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	for _, name := range tried {
		t.Run(name, cases[name])
	}
}

// An agent works a session: it runs a command that looks for its key, makes, reads and changes a file, plants a hook,
// and destroys the project. Then it goes on with the session, after an undo.
func TestAgentsWorkInABox(t *testing.T) {
	each(t, "agents", func(t *testing.T, tier string, p product) {
		r := newRig(t, p, tier, func(work string) []agenttest.Turn {
			at := func(name string) string { return filepath.Join(work, name) }
			return []agenttest.Turn{
				agenttest.Shell("getent hosts refused.example; " + (&rig{product: p}).search() + " > found.json 2> error.txt; echo ran > shell.txt"),
				agenttest.Write(at("made.txt"), "two\n"),
				agenttest.Read(at("made.txt")),
				agenttest.Edit(at("made.txt"), "two", "three"),
				agenttest.Write(at(".git/hooks/pre-commit"), "#!/bin/sh\ntouch "+at("planted")+"\n"),
				agenttest.Shell("cp made.txt shell.txt found.json error.txt ../out/; find .git src -delete"),
				agenttest.Say("I am done."),
				agenttest.Shell("echo again > again.txt"),
				agenttest.Say("I am done again."),
			}
		})
		before, host := tree(t, r.work), tree(t, r.home)
		out := r.start(t, r.flags(p.once(r.model.URL(), "do it"))...)
		t.Log(out)
		if got := r.model.Reached(); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6}) {
			t.Fatalf("the agent took the turns %d", got)
		}
		r.session(t, out)
		if _, err := os.Stat(filepath.Join(r.work, "src", "main.c")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the sources are still there: %v", err)
		}
		t.Log(r.start(t, "undo", "."))
		if after := tree(t, r.work); !maps.Equal(before, after) {
			t.Errorf("undo left %v of %v", after, before)
		}
		r.git(t, "commit", "-q", "--allow-empty", "-m", "second") // runs hooks, if there are any
		if after := tree(t, r.home); !maps.Equal(host, after) {
			t.Errorf("the home of the host became %v", after)
		}
		t.Log(r.start(t, r.flags(p.again(r.model.URL(), "go on"))...))
		if got := r.model.Reached(); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("when it went on, the agent took the turns %d", got)
		}
		if _, err := os.Stat(filepath.Join(r.work, "again.txt")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(r.work, "planted")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a hook that the agent planted ran on the host: %v", err)
		}
		r.secret(t)
	})
}

// session checks what the first session left.
func (r *rig) session(t *testing.T, out string) {
	t.Helper()
	for name, want := range map[string]string{"made.txt": "three\n", "shell.txt": "ran\n"} {
		if got, err := os.ReadFile(filepath.Join(r.out, name)); string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, want := range []string{"refused.example", ".git/hooks/pre-commit"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s was refused, and is not told at the end", want)
		}
	}
	data, err := os.ReadFile(filepath.Join(r.out, "found.json"))
	if err != nil {
		t.Fatal(err)
	}
	said, _ := os.ReadFile(filepath.Join(r.out, "error.txt"))
	var found struct {
		Key, Placeholder []string
		Refused, Memory  int
	}
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatalf("%s: %v: %s", data, err, said)
	}
	t.Logf("the placeholder is in %s; %d files cannot be read; %d bytes of memory were read", found.Placeholder, found.Refused, found.Memory)
	if len(found.Key) > 0 {
		t.Errorf("the key is in %s", found.Key)
	}
	places := []string{"/environ", "/mem"}
	if r.tier == "gvisor" && found.Memory == 0 {
		places = places[:1] // its kernel shows no process the memory of another
	}
	for _, place := range places {
		if !slices.ContainsFunc(found.Placeholder, func(name string) bool { return strings.HasSuffix(name, place) }) {
			t.Errorf("the search did not even find the placeholder in any %s", place)
		}
	}
}

// secret checks that the key is nowhere on the disk, and in the traffic only where it belongs.
func (r *rig) secret(t *testing.T) {
	t.Helper()
	for _, top := range append(r.states(t), r.work, r.home, r.out) {
		if list := holds(t, top); len(list) > 0 {
			t.Errorf("the key is on the disk: %s", list)
		}
	}
	used := false
	for _, q := range r.model.Requests() {
		if bytes.Contains(q.Body, []byte(key)) || strings.Contains(q.Path, key) {
			t.Errorf("the key is in a request: %s %s", q.Method, q.Path)
		}
		for name, values := range q.Header {
			if !strings.Contains(strings.Join(values, "\n"), key) {
				continue
			}
			used = true
			if !slices.Contains([]string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"}, name) {
				t.Errorf("the key is in %s", name)
			}
		}
	}
	if !used {
		t.Error("no request has the key")
	}
}

// A person who interrupts an agent gets the prompt back, and the box is gone.
func TestAnAgentIsInterrupted(t *testing.T) {
	each(t, "agents that are interrupted", func(t *testing.T, tier string, p product) {
		r := newRig(t, p, tier, func(string) []agenttest.Turn {
			return []agenttest.Turn{agenttest.Shell("echo ran > shell.txt"), agenttest.Wait()}
		})
		c := r.command(t, r.flags(p.once(r.model.URL(), "do it"))...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case <-r.model.Waiting():
		case err := <-ended:
			t.Fatalf("it ended by itself: %v: %s", err, out.String())
		}
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Log("the agent ends with 0 when it is interrupted")
		}
		if got, err := os.ReadFile(filepath.Join(r.work, "shell.txt")); string(got) != "ran\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
}
