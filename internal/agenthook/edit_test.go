package agenthook

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

const program = "/usr/local/bin/paddock"

func sampleFiles(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/settings/*")
	if err != nil || len(names) < 5 {
		t.Fatal("there are no samples", err)
	}
	files := map[string][]byte{"empty": {}, "braces": []byte("{}"), "white": []byte(" \n")}
	for _, name := range names {
		if files[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// withoutSpace gives a file's words.
func withoutSpace(t *testing.T, file []byte) string {
	t.Helper()
	v, err := hujson.Parse(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	v.Minimize()
	return string(v.Pack())
}

func TestAFileKeepsAllThatItHad(t *testing.T) {
	t.Parallel()
	for name, file := range sampleFiles(t) {
		for _, a := range Agents() {
			if a.Plugin() {
				continue
			}
			to, err := a.Install(file, program, []string{"--memory=2G"}, nil)
			if err != nil {
				t.Errorf("%s, %s: %v", a.Name, name, err)
				continue
			}
			if rest := missing(file, to); len(rest) > 0 {
				t.Errorf("%s, %s: %q is lost in\n%s", a.Name, name, rest, to)
			}
			if n := strings.Count(string(to), guardedInJSON(t)); n != len(a.entries(func(Event) string { return "" })) {
				t.Errorf("%s, %s: there are %d hooks in\n%s", a.Name, name, n, to)
			}
			// Without the hooks the words are what they were.
			left, found, err := a.Remove(to, orEmpty(file))
			if err != nil || !found {
				t.Errorf("%s, %s: found %v, %v", a.Name, name, found, err)
				continue
			}
			want := "{}"
			if len(bytes.TrimSpace(file)) > 0 {
				want = withoutSpace(t, file)
			} else if a.versioned() {
				want = `{"version":1}`
			}
			if got := withoutSpace(t, left); got != want {
				t.Errorf("%s, %s: %s is left of %s", a.Name, name, got, want)
			}
		}
	}
}

// missing gives what of a file is not in another one, in the same order.
func missing(file, in []byte) []byte {
	for _, c := range in {
		if len(file) > 0 && file[0] == c {
			file = file[1:]
		}
	}
	return bytes.TrimSpace(file)
}

func orEmpty(file []byte) []byte {
	if file == nil {
		return []byte{}
	}
	return file
}

func guardedInJSON(t *testing.T) string {
	t.Helper()
	text, err := marshal(guarded)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), `"`)
}

func TestTheHooksAreWhatTheAgentReads(t *testing.T) {
	t.Parallel()
	for _, a := range Agents() {
		to, err := a.Install(nil, program, []string{"--allow=github.com", "--read=/a b'c"}, []string{"--approve"})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("testdata/installed", a.Name+filepath.Ext(a.Home))
		if os.Getenv("PADDOCK_UPDATE") != "" {
			if err := os.WriteFile(name, to, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(to, want) {
			t.Errorf("%s: %v; it is now\n%s", a.Name, err, to)
		}
		if left, found, err := a.Remove(to, nil); err != nil || !found || left != nil {
			t.Errorf("%s: %q is left, found %v, %v", a.Name, left, found, err)
		}
	}
}

func TestAUsersOwnHooksStay(t *testing.T) {
	t.Parallel()
	a := claude()
	own := []byte(`{
  // mine
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}, // keep me
    ],
  },
}
`)
	to, err := a.Install(own, program, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The user changes the file meanwhile, and puts one more hook into our group.
	to = bytes.Replace(to, []byte("// mine"), []byte("// still mine"), 1)
	left, found, err := a.Remove(to, own)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if want := strings.Replace(string(own), "// mine", "// still mine", 1); withoutSpace(t, left) != withoutSpace(t, []byte(want)) ||
		!bytes.Contains(left, []byte("// still mine")) || !bytes.Contains(left, []byte("// keep me")) {
		t.Errorf("left is\n%s", left)
	}
}

func TestAFileThatCannotBeReadIsNotChanged(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"[]", "{", `{"hooks": 1}`, `{"hooks": {"PreToolUse": {}}}`, "hooks: {}", "\xff", `{"hooks": null}`} {
		if to, err := claude().Install([]byte(file), program, nil, nil); err == nil {
			t.Errorf("%q became\n%s", file, to)
		}
	}
}

func TestAHookThatFailsDenies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		program  string
		status   int
		out, err string
	}{
		{script("good", "echo answer"), 0, "answer\n", ""},
		{script("refusing", "echo reason >&2; exit 2"), 2, "", "reason\n"},
		{script("failing", "exit 125"), 2, "", "paddock: the hook did not run, so this step is refused\n"},
		{script("one", "exit 1"), 2, "", "paddock: the hook did not run, so this step is refused\n"},
		{script("killed", "kill -9 $$"), 2, "", "paddock: the hook did not run, so this step is refused\n"},
		{filepath.Join(dir, "gone"), 2, "", "paddock: the hook did not run, so this step is refused\n"},
	} {
		command, err := claude().Command(Step, c.program, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		run := exec.Command("/bin/sh", "-c", command)
		var out, errs strings.Builder
		run.Stdout, run.Stderr = &out, &errs
		_ = run.Run()
		if got := run.ProcessState.ExitCode(); got != c.status || out.String() != c.out || !strings.HasSuffix(errs.String(), c.err) {
			t.Errorf("%s: status %d, %q, %q", c.program, got, out.String(), errs.String())
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte("{\"a\": 1, // x\n}"))
	f.Add([]byte("{\"hooks\":{\"PreToolUse\":[],\"SessionEnd\":[1,],},}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, a := range []Agent{claude(), cursor()} {
			to, err := a.Install(file, program, nil, nil)
			if err != nil {
				continue
			}
			v, err := hujson.Parse(to)
			if err != nil {
				t.Fatalf("%q became %q: %v", file, to, err)
			}
			v.Standardize()
			if !json.Valid(v.Pack()) {
				t.Fatalf("%q became %q", file, to)
			}
			left, found, err := a.Remove(to, orEmpty(file))
			if err != nil || !found {
				t.Fatalf("%q: found %v, %v", to, found, err)
			}
			if len(bytes.TrimSpace(file)) > 0 && withoutSpace(t, left) != withoutSpace(t, file) {
				t.Fatalf("%q is left of %q", left, file)
			}
		}
	})
}
