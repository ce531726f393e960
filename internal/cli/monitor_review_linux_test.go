package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A suggestion is a proposal of a command that no sandbox ran, in directories of a test.
type suggestion struct {
	dir, work string
	number    int64
}

func propose(t *testing.T, kept json.RawMessage, files map[string]string) *suggestion {
	t.Helper()
	p := &suggestion{dir: t.TempDir()}
	p.work = filepath.Join(p.dir, "work")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(p.work, 0o755))
	v, err := step.OpenReviews(filepath.Join(p.dir, ".data", "reviews"), step.Options{})
	check(err)
	defer v.Close()
	l, err := v.Begin(t.Context(), step.About{Command: []string{"agent"}, Roots: []step.Root{{Path: step.Text(p.work)}}, Monitor: kept})
	check(err)
	for name, text := range files {
		at := filepath.Join(l.Dirs()[p.work], "upper", name)
		check(os.MkdirAll(filepath.Dir(at), 0o755))
		check(os.WriteFile(at, []byte(text), 0o600))
	}
	rec, err := l.Propose(t.Context(), step.Proposer{Sandbox: "sb", Tier: paddock.Jail, Exit: 3})
	check(err)
	p.number = rec.Number
	return p
}

// apply runs paddock apply, and tells whether the file f was applied.
func (p *suggestion) apply(t *testing.T, change func(*App), args ...string) (code int, said string, applied bool) {
	t.Helper()
	v := invoke(p.dir, map[string]string{"PATH": os.Getenv("PATH"), "HOME": p.dir}, nil, append([]string{"apply"}, append(args, fmt.Sprint(p.number))...)...)
	if change != nil {
		change(v.App)
	}
	code = v.Run(t.Context())
	_, err := os.Lstat(filepath.Join(p.work, "f"))
	return code, v.Stderr.String(), err == nil
}

// judgeIn makes a judge that keeps what it is asked beside it, and returns what a proposal of its run keeps.
func judgeIn(t *testing.T, dir, script string) (name string, kept json.RawMessage) {
	t.Helper()
	name = filepath.Join(dir, "judge")
	if err := os.WriteFile(name, []byte("#!/bin/sh\ncat > '"+dir+"/asked'\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	kept, err := keptOf(&policy.Monitor{On: true, Task: "fix it", Timeout: time.Minute}, &monitor.Command{Args: []string{name}}, "sha256:digest")
	if err != nil {
		t.Fatal(err)
	}
	return name, kept
}

func TestAnApplicationAsksTheMonitorOfItsRun(t *testing.T) {
	const hook = ".husky/pre-commit"
	rules, err := keptOf(&policy.Monitor{On: true}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	denies := `echo '{"verdict":"deny","reason":"not wanted"}'`
	_, refusing := judgeIn(t, t.TempDir(), denies)
	_, failing := judgeIn(t, t.TempDir(), "echo out of order >&2; exit 7")
	_, allowing := judgeIn(t, t.TempDir(), `echo '{"verdict":"allow"}'`)
	gone := json.RawMessage(`{"rules":true,"command":["/nowhere/judge"]}`)
	newer := json.RawMessage(`{"rules":true,"council":["a","b"]}`)
	nobody := json.RawMessage(`{"rules":false}`)
	for _, row := range []struct {
		name  string
		kept  json.RawMessage
		files string // besides f
		args  []string
		code  int
		says  string
	}{
		{"rules that have nothing against it", rules, "", nil, 0, "1 path was applied"},
		{"rules that pause", rules, hook, nil, MonitorStatus, "the monitor refused it: it created .husky/pre-commit, which runs or is followed outside of the sandbox (rule write-hook); a person would be asked"},
		{"rules, and none by name", rules, hook, []string{"--monitor", "none"}, 0, "the monitor of the command is not asked"},
		{"rules, and the task speaks of it", rules, hook, []string{"--task", "add a hook"}, 0, "were applied"},
		{"no monitor", nil, hook, nil, 0, "were applied"},
		{"no monitor, and rules by name", nil, hook, []string{"--monitor", "rules"}, MonitorStatus, "(rule write-hook)"},
		{"a judge that allows", allowing, "", nil, 0, "1 path was applied"},
		{"a judge that denies", refusing, "", nil, MonitorStatus, "the monitor refused it: not wanted\nhint: nothing was applied; `paddock apply --monitor none "},
		{"a judge that fails", failing, "", nil, MonitorStatus, "the monitor gave no verdict, so it is denied"},
		{"a judge that is gone", gone, "", nil, MonitorStatus, "the monitor that judged the command cannot be asked: command: "},
		{"a judge that is gone, and another by name", gone, "", []string{"--monitor", "rules"}, 0, "1 path was applied"},
		{"what another version keeps", newer, "", nil, MonitorStatus, "cannot be asked"},
		{"what another version keeps, and none by name", newer, "", []string{"--monitor", "none"}, 0, "1 path was applied"},
		{"nobody who is asked", nobody, "", nil, MonitorStatus, "does not say who is asked"},
		{"a task without a monitor", nil, "", []string{"--task", "x"}, 125, "--task without a monitor"},
		{"a record without a monitor", nil, "", []string{"--audit", "events"}, 125, "--audit without a monitor"},
	} {
		files := map[string]string{"f": "1"}
		if row.files != "" {
			files[row.files] = "2"
		}
		p := propose(t, row.kept, files)
		code, said, applied := p.apply(t, nil, row.args...)
		if code != row.code || !strings.Contains(said, row.says) || applied != (row.code == 0) {
			t.Errorf("%s: %d, applied %t, %s", row.name, code, applied, said)
		}
		if row.code == 0 {
			continue
		}
		if code, said, applied := p.apply(t, nil, "--monitor", "none"); code != 0 || !applied { // it is all there
			t.Errorf("%s: afterwards: %d, %s", row.name, code, said)
		}
	}
}

func TestTheJudgeOfAnApplicationSeesItsEffects(t *testing.T) {
	dir := t.TempDir()
	_, kept := judgeIn(t, dir, `echo '{"verdict":"allow"}'`)
	p := propose(t, kept, map[string]string{"f": "1", "g": "2", ".env": "3"})
	if code, said, _ := p.apply(t, nil, "--audit", "events"); code != 0 {
		t.Fatalf("%d, %s", code, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	var in monitor.Input
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	s := in.Step
	if in.Moment != monitor.Apply || in.Sandbox != "sb" || in.Tier != "jail" || in.Policy != "sha256:digest" || in.Task != "fix it" || !in.Measured.Files || in.Measured.Network {
		t.Errorf("%s", text)
	}
	if s.Files == nil || s.Files.Created != 3 || s.Exit != 3 || len(s.Guest.Command) != 1 || len(s.Guest.Notable) != 1 || s.Guest.Notable[0] != (monitor.Notable{Path: ".env", Kind: "key", What: "created"}) {
		t.Errorf("%s", text)
	}
	data, err := os.ReadFile(filepath.Join(p.dir, "events"))
	if err != nil {
		t.Fatal(err)
	}
	events, _ := EventsIn(t, data)
	if len(events) != 1 || !strings.Contains(events[0], `"sandbox":"sb"`) || !strings.Contains(events[0], `"moment":"apply"`) || !strings.Contains(events[0], `"verdict":"allow"`) || !strings.Contains(events[0], `"latency`) {
		t.Errorf("%q", events)
	}
}

func TestAnApplicationThatCannotBeRecordedIsNone(t *testing.T) {
	p := propose(t, nil, map[string]string{"f": "1"})
	if err := os.WriteFile(filepath.Join(p.dir, "events"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"events", "work/events", "-"} {
		if code, said, applied := p.apply(t, nil, "--monitor", "rules", "--audit", name); code != 125 || applied {
			t.Errorf("%s: %d, %t, %s", name, code, applied, said)
		}
	}
}

func TestAProposalCannotHoldItsJudge(t *testing.T) {
	p := propose(t, nil, map[string]string{"f": "1"})
	name, _ := judgeIn(t, p.work, `echo '{"verdict":"allow"}'`)
	if code, said, applied := p.apply(t, nil, "--monitor", name); code != 125 || applied || !strings.Contains(said, "could rewrite it") {
		t.Errorf("%d, %t, %s", code, applied, said)
	}
	kept := json.RawMessage(fmt.Sprintf(`{"rules":true,"command":[%q]}`, filepath.Join(p.work, "judge")))
	q := propose(t, kept, map[string]string{"f": "1"}) // to another directory
	if code, said, applied := q.apply(t, nil); code != 0 || !applied {
		t.Errorf("%d, %t, %s", code, applied, said)
	}
}

func TestAPersonIsAskedAboutAnApplication(t *testing.T) {
	for _, row := range []struct {
		says string // nothing closes the terminal
		code int
		want string
	}{
		{"allow\n", 0, `"answered":"allow"`},
		{"d\n", MonitorStatus, `"answered":"deny"`},
		{"", MonitorStatus, `"answered":"deny"`},
	} {
		p := propose(t, nil, map[string]string{"f": "1", "AGENTS.md": "2"})
		terminal, person := terminalPair(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			var shown strings.Builder
			buf := make([]byte, 4096)
			for !strings.Contains(shown.String(), "deny it (d)? ") {
				n, err := person.Read(buf)
				if err != nil {
					t.Errorf("%q: after %q: %v", row.says, shown.String(), err)
					return
				}
				shown.Write(buf[:n])
			}
			if !strings.Contains(shown.String(), "it created AGENTS.md") || !strings.Contains(shown.String(), "2 paths would change") {
				t.Errorf("asked %q", shown.String())
			}
			if _, err := person.WriteString(row.says); err != nil || row.says == "" {
				_ = person.Close() // nothing is kept in it
			}
		})
		code, said, applied := p.apply(t, func(a *App) { a.Tty = func() (*os.File, error) { return terminal, nil } }, "--monitor", "rules", "--audit", "events")
		_ = terminal.Close() // ends the person, if nothing was asked
		wg.Wait()
		_ = person.Close()
		if code != row.code || applied != (code == 0) || code != 0 && !strings.Contains(said, "a person was asked and did not allow it") {
			t.Errorf("%q: %d, %t, %s", row.says, code, applied, said)
		}
		data, err := os.ReadFile(filepath.Join(p.dir, "events"))
		if err != nil || !strings.Contains(string(data), row.want) || !strings.Contains(string(data), `"verdict":"ask"`) {
			t.Errorf("%q: %s, %v", row.says, data, err)
		}
	}
}

// terminalPair returns what stands for a terminal, and the person's end of it.
func terminalPair(t *testing.T) (terminal, person *os.File) {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(pair[0]), "terminal"), os.NewFile(uintptr(pair[1]), "person")
}

func TestWhatAProposalKeepsOfAMonitorIsWhatItWas(t *testing.T) {
	command := &monitor.Command{Args: []string{"/bin/judge", "--strict"}}
	for _, s := range []policy.Monitor{
		{On: true},
		{On: true, NoRules: true, Command: command.Args, Env: []string{"TOKEN"}, Timeout: 3 * time.Second, Task: "x", Removed: 5, Moments: []string{"apply"}},
		{On: true, URL: "https://judge.example/v1", Key: "env:KEY"},
		{On: true, Model: &policy.MonitorModel{Interface: "openai", Name: "m", Key: "file:/k", URL: "http://127.0.0.1:1", Prompt: "~/p"}},
	} {
		var judge monitor.Judge
		if len(s.Command) > 0 {
			judge = command
		}
		kept, err := keptOf(&s, judge, "sha256:d")
		if err != nil {
			t.Fatal(err)
		}
		got, digest, err := readKept(kept)
		if !reflect.DeepEqual(got, s) || digest != "sha256:d" || err != nil {
			t.Errorf("%+v, %q, %v; want %+v", got, digest, err, s)
		}
	}
	if _, err := keptOf(&policy.Monitor{On: true, URL: "https://judge.example/?key=1"}, nil, ""); err == nil {
		t.Error("what may be a key is kept")
	}
}
