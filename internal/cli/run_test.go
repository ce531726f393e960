package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

func TestExitStatusAndOutputPassThrough(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
	if code := v.Run(t.Context()); code != 7 {
		t.Errorf("exit status %d, want 7", code)
	}
	if v.Stdout.String() != "out\n" || v.Stderr.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q", v.Stdout.String(), v.Stderr.String())
	}
	if spec := f.Made(); !spec.Ephemeral || spec.Tier != paddock.Jail {
		t.Errorf("spec %+v", spec)
	}
	if f.Created != 1 || f.Removed != 1 {
		t.Errorf("%d made, %d removed", f.Created, f.Removed)
	}
}

func TestACommandKilledByASignalEndsWith128AndItsNumber(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "sh", "-c", "kill -TERM $$")
	if code := v.Run(t.Context()); code != 128+15 {
		t.Errorf("exit status %d", code)
	}
	if v.Stderr.String() != "" {
		t.Errorf("said %q about the command's own affair", v.Stderr.String())
	}
}

func TestInputIsPassedOn(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "cat")
	v.App.Stdin = strings.NewReader("one\ntwo\n")
	if code := v.Run(t.Context()); code != 0 || v.Stdout.String() != "one\ntwo\n" {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, v.Stdout.String(), v.Stderr.String())
	}
}

func TestACommandThatEndsBeforeItsInputDoesNotHang(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	r, w := io.Pipe() // never written, never closed until the end
	defer w.Close()
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "true")
	v.App.Stdin = r
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("exit status %d, stderr %q", code, v.Stderr.String())
	}
}

// A trigger calls do when it has seen word.
type trigger struct {
	io.Writer
	word string
	do   func()
	mu   sync.Mutex
	seen string // guarded by mu
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.seen += string(p)
	fire := w.do != nil && strings.Contains(w.seen, w.word)
	do := w.do
	if fire {
		w.do = nil
	}
	w.mu.Unlock()
	if fire {
		do()
	}
	return len(p), nil
}

func (w *trigger) text() string { w.mu.Lock(); defer w.mu.Unlock(); return w.seen }

func TestSignalsGoToTheCommand(t *testing.T) {
	// What this process was started to ignore (nohup) a shell cannot trap; what
	// it listens to begins anew in what it starts.
	listening := make(chan os.Signal, 16)
	signal.Notify(listening, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(listening)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		f := &fake.Fake{About: fake.GoodInfo()}
		v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "sh", "-c",
			`trap 'echo caught; exit 3' INT TERM HUP QUIT; echo ready; while :; do sleep 0.01; done`)
		out := &trigger{word: "ready", do: func() { v.Signals <- sig }}
		v.App.Stdout = out
		if code := v.Run(t.Context()); code != 3 || !strings.Contains(out.text(), "caught") {
			t.Errorf("%v: exit status %d, output %q", sig, code, out.text())
		}
	}
}

func TestASecondInterruptKills(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "sh", "-c",
		`trap '' INT; echo ready; while :; do sleep 0.01; done`)
	v.App.Stdout = &trigger{word: "ready", do: func() { v.Signals <- syscall.SIGINT; v.Signals <- syscall.SIGINT }}
	if code := v.Run(t.Context()); code != 128+9 {
		t.Errorf("exit status %d, want 137", code)
	}
}

func TestTwoInterruptsBeforeTheStartIsKnownKill(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	sandbox, err := f.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Remove(t.Context())
	ignores, said := io.Pipe()
	defer ignores.Close()
	proc, err := sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "trap '' INT; echo; while :; do sleep 0.01; done"}, Output: paddock.Output{Stdout: said}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ignores.Read(make([]byte, 1)); err != nil { // the signal would end what does not ignore it yet
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	r := newRelay(signals, func(error) {})
	r.started = make(chan paddock.Process) // taken before done is looked at
	r.now = func() time.Time { return time.Unix(1000, 0) }
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { r.run(done) })
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	r.started <- proc
	close(done)
	wg.Wait()
	p := proc.(*fake.Process)
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if !slices.Contains(p.Signals, syscall.SIGKILL) {
		t.Errorf("it was not killed: %v", p.Signals)
	}
}

func TestTwoInterruptsFarApartDoNotKill(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	sandbox, err := f.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Remove(t.Context())
	proc, err := sandbox.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "trap '' INT TERM; while :; do sleep 0.01; done"}, Output: paddock.Output{Stdout: io.Discard}})
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal)
	r := newRelay(signals, func(error) {})
	clock := time.Unix(1000, 0)
	r.now = func() time.Time { clock = clock.Add(2 * twice); return clock }
	r.started <- proc
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { r.run(done) })
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	signals <- syscall.SIGTERM
	close(done)
	wg.Wait()
	p := proc.(*fake.Process)
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, s := range p.Signals {
		if s == syscall.SIGKILL {
			t.Errorf("it was killed: %v", p.Signals)
		}
	}
}

// A brokenPipeWriter fails as a pipe without a reader does.
type brokenPipeWriter struct{}

func (brokenPipeWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAReaderWhoGoesAwayEndsTheCommand(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "yes")
	v.App.Stdout = brokenPipeWriter{}
	if code := v.Run(t.Context()); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit status %d, want 141", code)
	}
	if v.Stderr.String() != "" {
		t.Errorf("said %q", v.Stderr.String())
	}
	if f.Removed != 1 {
		t.Error("the sandbox is left")
	}
}

func TestAFullDiskBehindOurOutputIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "yes")
	v.App.Stdout = full
	code := v.Run(t.Context())
	want := "paddock: write standard output: write /dev/full: no space left on device\nhint: the command was ended, because its output was lost\n"
	if code != 125 || v.Stderr.String() != want {
		t.Errorf("exit status %d, said %q", code, v.Stderr.String())
	}

	v = invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--json=/dev/full", "true")
	if code := v.Run(t.Context()); code != 125 || !strings.HasPrefix(v.Stderr.String(), "paddock: write the result: write /dev/full: no space left on device\n") {
		t.Errorf("exit status %d, said %q", code, v.Stderr.String())
	}
}

// A resized process notes its sizes.
type resized struct {
	paddock.Process
	sizes chan paddock.Size
}

func (r resized) Resize(_ context.Context, size paddock.Size) error {
	r.sizes <- size
	return nil
}

func TestAResizedTerminalIsTold(t *testing.T) {
	signals := make(chan os.Signal)
	r := newRelay(signals, func(error) {})
	r.size = func() paddock.Size { return paddock.Size{Rows: 40, Cols: 120} }
	p := resized{sizes: make(chan paddock.Size, 1000)}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { r.run(done) })
	r.started <- p
	for len(p.sizes) == 0 { // a signal that comes before the start is not told
		signals <- windowMoved
	}
	if got := <-p.sizes; got != (paddock.Size{Rows: 40, Cols: 120}) {
		t.Errorf("told %v", got)
	}
	for len(p.sizes) > 0 {
		<-p.sizes
	}
	close(done)
	wg.Wait()
}

func TestASignalBeforeTheStartStartsNothing(t *testing.T) {
	f := &fake.Slow{}
	v := invoke(t.TempDir(), nil, []Tier{{Name: paddock.Jail, Open: func(Gear) (paddock.Driver, error) { return f, nil }}}, "run", "true")
	v.Signals <- syscall.SIGTERM
	if code := v.Run(t.Context()); code != 128+15 {
		t.Errorf("exit status %d, stderr %q", code, v.Stderr.String())
	}
	if v.Stderr.String() != "paddock: interrupted: terminated\n" {
		t.Errorf("said %q", v.Stderr.String())
	}
}

func TestFailuresHaveTheirOwnStatusAndAHint(t *testing.T) {
	missing := &fake.Fake{Refuse: &paddock.MissingError{Finding: paddock.Finding{
		Control: paddock.ControlUserNS, Strength: paddock.Absent, Cause: "user namespaces are forbidden by sysctl user.max_user_namespaces=0",
		Remedy: "sysctl user.max_user_namespaces=10000",
	}}}
	nocgroup := &fake.Fake{Refuse: fmt.Errorf("create sandbox: %w", &paddock.MissingError{Finding: paddock.Finding{
		Control: paddock.ControlMemory, Strength: paddock.Absent, Cause: "the control group cannot be written", Remedy: "loginctl enable-linger",
	}})}
	wrong := &fake.Fake{Refuse: fmt.Errorf("create sandbox: there is no user \"nosuch\": %w", paddock.Invalid)}
	taken := &fake.Fake{Refuse: fmt.Errorf("create sandbox: sandbox x: %w", paddock.Exists)}
	good := &fake.Fake{About: fake.GoodInfo()}
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	if err := os.WriteFile(foreign, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer nothing.Close()
	for _, row := range []struct {
		name   string
		driver *fake.Fake
		args   []string
		code   int
		say    string
	}{
		{"no command", good, []string{"run"}, 125, "paddock: there is no command to run, and no script on standard input\nhint: paddock run [flags] -- COMMAND [ARGUMENT…]; for a shell: paddock shell\n"},
		{"two scripts", good, []string{"run", "-c", "true", "-f", "x"}, 125, "paddock: -c and -f are two scripts\nhint: leave one out\n"},
		{"a script that is not there", good, []string{"run", "-f", "nowhere.sh"}, 125, "paddock: script nowhere.sh: there is no such file on this machine\nhint: a script inside the sandbox is a command: paddock run -- sh nowhere.sh\n"},
		{"a limit that another tier has", good, []string{"run", "--limit", "iterations=5", "true"}, 125, "paddock: tier jail: it has none of the limits of --limit\nhint: --limit is of --tier sim; "},
		{"a limit that never was", good, []string{"run", "--limit", "iteration=5", "true"}, 125, "paddock: --limit iteration: there is no such limit\nhint: limits are source, "},
		{"a limit of nothing", good, []string{"run", "--limit", "iterations=0", "true"}, 125, "paddock: --limit iterations: \"0\" cannot be its value\nhint: it is a whole number above 0\n"},
		{"a limit without a value", good, []string{"run", "--limit", "iterations", "true"}, 125, "paddock: --limit iterations: there is no value\nhint: write NAME=VALUE, such as iterations=10000000\n"},
		{"a limit of a size", good, []string{"run", "--limit", "string=many", "true"}, 125, "paddock: --limit string: \"many\" cannot be its value\nhint: it is a size: "},
		{"a limit of a time", good, []string{"run", "--limit", "wall=5", "true"}, 125, "paddock: --limit wall: \"5\" cannot be its value\nhint: it is a time: "},
		{"a limit twice", good, []string{"run", "--limit", "calls=5", "--limit", "calls=6", "true"}, 125, "paddock: --limit calls is there twice\nhint: leave one out\n"},
		{"unknown flag", good, []string{"run", "--worksapce", "x", "true"}, 125, "paddock: unknown flag: --worksapce\nhint: did you mean --workspace? `paddock run --help` lists the flags\n"},
		{"unknown command", good, []string{"rum"}, 125, "paddock: unknown command \"rum\"\nhint: did you mean rm? `paddock --help` lists the commands; a program is run with `paddock run -- rum`\n"},
		{"missing program", good, []string{"run", "no-such-program"}, 127, "paddock: start no-such-program: not found\nhint: the sandbox sees the programs of the system, and tool chains of your PATH: show another directory with --read DIR and call the program as DIR/NAME, or choose another --root\n"},
		{"wrong architecture", good, []string{"run", foreign}, 126, "paddock: start " + foreign + ": fork/exec " + foreign + ": exec format error"},
		{"no user namespaces", missing, []string{"run", "true"}, 125, "paddock: user-namespace: user namespaces are forbidden by sysctl user.max_user_namespaces=0\nhint: sysctl user.max_user_namespaces=10000\n"},
		{"no cgroup rights", nocgroup, []string{"run", "true"}, 125, "paddock: create sandbox: memory-limit: the control group cannot be written\nhint: loginctl enable-linger; to do without it: --allow-missing memory-limit\n"},
		{"a driver's refusal in words", wrong, []string{"run", "true"}, 125, "paddock: create sandbox: there is no user \"nosuch\"\n"},
		{"a driver's refusal by its kind", taken, []string{"run", "true"}, 125, "paddock: create sandbox: sandbox x: already exists\n"},
		{"a tier that is not there", good, []string{"run", "--tier", "gvisor", "true"}, 125, "paddock: tier gvisor is not in this version\nhint: `paddock doctor` tells which tiers there are\n"},
		{"a tier that never was", good, []string{"run", "--tier", "docker", "true"}, 125, "paddock: there is no tier \"docker\"\nhint: tiers are auto, sim, jail, gvisor, microvm; `paddock doctor` tells which this machine can run\n"},
		{"-t and --json", good, []string{"run", "-t", "--json", "true"}, 125, ""},
		{"-t and --strip-escapes", good, []string{"run", "-t", "--strip-escapes", "true"}, 125, "paddock: -t and --strip-escapes contradict each other: a terminal's programs need escape sequences\nhint: leave one out\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := invoke(dir, nil, []Tier{{Name: paddock.GVisor}, AsTier(row.driver, paddock.Jail)}, row.args...)
			v.App.Stdin = nothing
			code := v.Run(t.Context())
			if code != row.code {
				t.Errorf("exit status %d, want %d", code, row.code)
			}
			if row.say != "" && !strings.HasPrefix(v.Stderr.String(), row.say) {
				t.Errorf("said:\n%swant:\n%s", v.Stderr.String(), row.say)
			}
			if row.driver.Created != row.driver.Removed {
				t.Errorf("%d made, %d removed", row.driver.Created, row.driver.Removed)
			}
		})
	}
}

func TestTheEndIsToldInWords(t *testing.T) {
	f := &fake.Fake{
		About: fake.GoodInfo(),
		Refused: []paddock.Refusal{
			{What: "write", Target: "/w/.git/hooks/pre-commit\npaddock: all fine", Rule: "protected name .git/hooks", Remedy: "--unprotect .git/hooks", Count: 2},
			{What: "connect", Target: "\x1b[2J1.2.3.4:443", Rule: "no network", Count: 1},
		},
		Amend: func(e *paddock.Exit) { e.Cause, e.Limit, e.Peak = paddock.OutOfMemory, 512<<20, 511<<20 },
	}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "true")
	v.Run(t.Context())
	want := `paddock: the command was killed: it ran out of memory, limit 512 MiB, peak 511 MiB
hint: more memory: --memory
paddock: 2 things were refused:
  write /w/.git/hooks/pre-commit\npaddock: all fine (2 times): protected name .git/hooks
    hint: --unprotect .git/hooks
  connect \x1b[2J1.2.3.4:443: no network
`
	if v.Stderr.String() != want {
		t.Errorf("said:\n%swant:\n%s", v.Stderr.String(), want)
	}
}

func TestOnlyTheLastRefusalsAreToldOneByOne(t *testing.T) {
	var list []paddock.Refusal
	for range told + 5 {
		list = append(list, paddock.Refusal{What: "write", Target: "/x", Count: 1})
	}
	var b strings.Builder
	refusals(&b, list)
	if n := strings.Count(b.String(), "write /x"); n != told || !strings.Contains(b.String(), "  and 5 before; --json lists all\n") {
		t.Errorf("said:\n%s", b.String())
	}
}

func TestATimeoutIsTold(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--timeout", "50ms", "sh", "-c", "while :; do sleep 1; done")
	if code := v.Run(t.Context()); code != 137 {
		t.Errorf("exit status %d", code)
	}
	if v.Stderr.String() != "paddock: the command was killed: it ran out of time\nhint: more time: --timeout\n" {
		t.Errorf("said %q", v.Stderr.String())
	}
}

func TestAWeakerTierThanUsualIsTold(t *testing.T) {
	unable := AsTier(&fake.Fake{Refuse: paddock.Unsupported}, paddock.GVisor)
	never := Tier{Name: paddock.MicroVM, Open: unable.Open, Weak: func() string { return "slow" }}
	v := invoke(t.TempDir(), nil, []Tier{never, unable, AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}, "run", "true")
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if told := v.Stderr.String(); !strings.HasPrefix(told, "paddock: note: the sandbox is on tier jail, because tier gvisor could not make it: ") || strings.Count(told, "\n") != 1 {
		t.Errorf("told %q", told)
	}
}

func TestJSONIsOneObjectWithTheOutputInIt(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo(), Refused: []paddock.Refusal{{What: "write", Target: "/etc/passwd", Count: 1}}}
	v := invoke(t.TempDir(), nil, []Tier{{Name: paddock.GVisor}, AsTier(f, paddock.Jail)}, "run", "--json", "sh", "-c", `echo hello; printf '\377' >&2; exit 4`)
	if code := v.Run(t.Context()); code != 4 {
		t.Errorf("exit status %d", code)
	}
	var got struct {
		Version int
		Status  int
		Tier    string
		Passed  []auto.PassedOver `json:"passed_over"`
		Exit    paddock.Exit
		Stdout  struct {
			Text  string
			Bytes int
		}
		Stderr   struct{ Base64 string }
		Enforced []paddock.Finding
		Refused  []paddock.Refusal
	}
	if err := json.Unmarshal([]byte(v.Stdout.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, v.Stdout.String())
	}
	if got.Version != 1 || got.Status != 4 || got.Exit.Code != 4 || got.Exit.Cause != paddock.Exited || got.Tier != "jail" ||
		got.Stdout.Text != "hello\n" || got.Stdout.Bytes != 6 || got.Stderr.Base64 != "/w==" ||
		len(got.Enforced) != 1 || len(got.Refused) != 1 || len(got.Passed) != 1 || got.Passed[0].Tier != paddock.GVisor {
		t.Errorf("got %+v from %s", got, v.Stdout.String())
	}
}

func TestJSONTellsAFailureToo(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--json", "no-such-program")
	if code := v.Run(t.Context()); code != 127 {
		t.Errorf("exit status %d", code)
	}
	var got result
	if err := json.Unmarshal([]byte(v.Stdout.String()), &got); err != nil {
		t.Fatalf("%v: %s", err, v.Stdout.String())
	}
	if got.Exit != nil || got.Status != 127 || got.Error == nil || got.Error.Kind != "not found" || got.Error.Hint == "" {
		t.Errorf("got %s", v.Stdout.String())
	}
}

func TestJSONGoesToAFileWhileOutputPassesThrough(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	name := filepath.Join(t.TempDir(), "result.json")
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--json="+name, "echo", "hello")
	if code := v.Run(t.Context()); code != 0 || v.Stdout.String() != "hello\n" {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, v.Stdout.String(), v.Stderr.String())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got result
	if err := json.Unmarshal(data, &got); err != nil || got.Exit == nil || got.Stdout != nil {
		t.Errorf("%v: %s", err, data)
	}
}

func TestNothingRunsWhereTheResultCannotBeWritten(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--json=/no/such/dir/x.json", "true")
	if code := v.Run(t.Context()); code != 125 || f.Created != 0 {
		t.Errorf("exit status %d, %d sandboxes made", code, f.Created)
	}
}

func TestCapturedOutputIsCutWithinTheBoundAndStaysText(t *testing.T) {
	c := &captured{}
	io.WriteString(c, strings.Repeat("x", kept-1))
	io.WriteString(c, "日本")
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Text    *string
		Bytes   int64
		Dropped int64
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Text == nil || len(*got.Text) != kept-1 || got.Bytes != kept+5 || got.Dropped != 6 {
		t.Errorf("%d bytes, %d dropped, text %v", got.Bytes, got.Dropped, got.Text != nil)
	}
}

func TestAutoPassesOverOnlyWhatCannotBe(t *testing.T) {
	jail := &fake.Fake{About: fake.GoodInfo()}
	unsupported := &fake.Fake{Refuse: paddock.Unsupported}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(unsupported, paddock.GVisor), AsTier(jail, paddock.Jail)}, "run", "-v", "true")
	if code := v.Run(t.Context()); code != 0 || v.Stderr.String() != "paddock: tier jail (gvisor: unsupported)\n" {
		t.Errorf("exit status %d, stderr %q", code, v.Stderr.String())
	}
	broken := &fake.Fake{Refuse: paddock.Exhausted}
	jail = &fake.Fake{About: fake.GoodInfo()}
	v = invoke(t.TempDir(), nil, []Tier{AsTier(broken, paddock.GVisor), AsTier(jail, paddock.Jail)}, "run", "true")
	if code := v.Run(t.Context()); code != 125 || jail.Created != 0 {
		t.Errorf("a passing trouble of the stronger tier led to a weaker one: exit status %d", code)
	}
}

func TestTheHintOfACommandThatCannotStartFitsItsCause(t *testing.T) {
	for _, row := range []struct {
		words string
		kind  paddock.Kind
		hint  bool
	}{
		{"it is not executable", paddock.Denied, true},
		{"exec format error: the file is for ARM", paddock.Unsupported, true},
		{"it is a directory", paddock.Invalid, false},
		{"the interpreter of the script, \"/x\", does not exist", paddock.NotFound, false},
		{"the file is open for writing", paddock.Conflict, false},
	} {
		message, hint := words(&paddock.StartError{Path: "./x", Code: 126, Err: fmt.Errorf("%s: %w", row.words, row.kind)})
		if message != "start ./x: "+row.words {
			t.Errorf("said %q", message)
		}
		if strings.Contains(hint, "chmod") != row.hint || !row.hint && hint != "" {
			t.Errorf("%s: hint %q", row.words, hint)
		}
	}
}

func TestALongHintOfAPolicyIsTold(t *testing.T) {
	var b strings.Builder
	hint := strings.Repeat("word ", longest/4) + "end"
	problems(&b, &policy.Error{Name: "p", Problems: []policy.Problem{{Text: "wrong", Hint: hint}}})
	if !strings.Contains(b.String(), "hint: "+hint+"\n") {
		t.Errorf("said:\n%s", b.String())
	}
}
