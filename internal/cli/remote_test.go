package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// A rack is a server for tests: the tier sim in this process.
type rack struct {
	d     paddock.Driver
	dir   string
	sites []Site // that were dialled
}

// lent is a driver that stays open when its user closes it.
type lent struct{ paddock.Driver }

func (lent) Close() error { return nil }

func (d lent) Unwrap() paddock.Driver { return d.Driver }

func newRack(t *testing.T) *rack {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rack{d: d, dir: t.TempDir()}
}

// invoke is an invocation whose server is the rack.
func (r *rack) invoke(args ...string) *Invocation {
	v := invoke(r.dir, map[string]string{"HOME": r.dir}, nil, args...)
	v.App.Private = func(context.Context) (string, error) { return "unix:/private", nil }
	v.App.Dial = func(_ context.Context, s Site) (paddock.Driver, error) {
		r.sites = append(r.sites, s)
		return lent{r.d}, nil
	}
	return v
}

// do runs a command that is to succeed, and gives its output.
func (r *rack) do(t *testing.T, args ...string) string {
	t.Helper()
	v := r.invoke(args...)
	if code := v.Run(t.Context()); code != 0 {
		t.Fatalf("%q: status %d, %s", args, code, v.Stderr.String())
	}
	return strings.TrimSpace(v.Stdout.String())
}

// fail runs a command that is to fail, and gives what it says.
func (r *rack) fail(t *testing.T, status int, args ...string) string {
	t.Helper()
	v := r.invoke(args...)
	if code := v.Run(t.Context()); code != status {
		t.Errorf("%q: status %d and not %d, %s", args, code, status, v.Stderr.String())
	}
	return v.Stderr.String()
}

func TestCreateWritesTheIDAlone(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create", "--tier", "sim", "--label", "team=web", "--label", "n=1")
	if !paddock.ID(id).Valid() {
		t.Errorf("wrote %q", id)
	}
	if named := r.do(t, "create", "--name", "job-1"); named != "job-1" {
		t.Errorf("wrote %q", named)
	}
	var list []paddock.Status
	if err := json.Unmarshal([]byte(r.do(t, "ls", "--json", "-l", "team=web")), &list); err != nil || len(list) != 1 || string(list[0].ID) != id {
		t.Errorf("listed %v: %v", list, err)
	}
	if ids := r.do(t, "ls", "-q"); ids != id+"\njob-1" {
		t.Errorf("listed %q", ids)
	}
	if none := r.do(t, "ls", "-q", "--state", "dead"); none != "" {
		t.Errorf("listed %q", none)
	}
	if said := r.fail(t, 125, "create", "--name", "job-1"); !strings.Contains(said, "job-1") {
		t.Errorf("said %q", said)
	}
}

func TestExecIsAsRun(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create")
	v := r.invoke("exec", "-e", "X=1", id, "--", "sh", "-c", "cat; echo $X >&2; exit 7")
	v.App.Stdin = strings.NewReader("in\n")
	if code := v.Run(t.Context()); code != 7 || v.Stdout.String() != "in\n" || v.Stderr.String() != "1\n" {
		t.Errorf("status %d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	r.fail(t, 127, "exec", id, "no-such-program")
	if said := r.fail(t, 125, "exec", "nobody", "true"); !strings.Contains(said, "nobody") {
		t.Errorf("said %q", said)
	}
	r.fail(t, 125, "exec", id)
	out := r.invoke("exec", "--json", id, "sh", "-c", "echo out; exit 3")
	if code := out.Run(t.Context()); code != 3 {
		t.Errorf("status %d", code)
	}
	var answer struct {
		Status int
		Exit   paddock.Exit
		Stdout struct{ Text string }
	}
	if err := json.Unmarshal([]byte(out.Stdout.String()), &answer); err != nil || answer.Status != 3 || answer.Exit.Code != 3 || answer.Stdout.Text != "out\n" {
		t.Errorf("answered %s: %v", out.Stdout.String(), err)
	}
}

func TestACommandGoesOnWithoutItsClientAndIsJoinedAgainWithAllOfItsOutput(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create")
	pid := r.do(t, "exec", "-d", id, "--", "sh", "-c", "echo first; while [ ! -e /tmp/go ]; do sleep 0.01; done; echo second; exit 4")

	// Somebody looks, and goes away.
	ctx, leave := context.WithCancel(t.Context())
	looks := r.invoke("logs", "-f", id, pid)
	seen := &trigger{word: "first", do: leave}
	looks.App.Stdout = seen
	if code := looks.Run(ctx); code != 125 {
		t.Errorf("status %d", code)
	}

	joins := r.invoke("attach", id)
	joins.App.Stdout = &trigger{word: "first", do: func() { r.do(t, "exec", id, "touch", "/tmp/go") }}
	if code := joins.Run(t.Context()); code != 4 || joins.App.Stdout.(*trigger).text() != "first\nsecond\n" {
		t.Errorf("status %d, %q, %q", code, joins.App.Stdout.(*trigger).text(), joins.Stderr.String())
	}
	if out := r.do(t, "logs", id, pid); out != "first\nsecond" {
		t.Errorf("kept %q", out)
	}
	if list := r.do(t, "ps", id); !strings.Contains(list, "exited 4") || !strings.Contains(list, "PID") {
		t.Errorf("listed %q", list)
	}
	r.fail(t, 125, "attach", id)        // there are two now
	r.fail(t, 125, "attach", id, "999") // and not this one
	r.fail(t, 125, "logs", id, "x")
}

func TestLogsEndWithWhatThereIsOfACommandThatRuns(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create")
	pid := r.do(t, "exec", "-d", id, "--", "sh", "-c", "echo before; touch /tmp/said; while :; do sleep 0.01; done")
	r.do(t, "exec", id, "--", "sh", "-c", "while [ ! -e /tmp/said ]; do sleep 0.01; done")
	if out := r.do(t, "logs", id, pid); out != "before" {
		t.Errorf("wrote %q", out)
	}
	if list := r.do(t, "ps", "--json", id); !strings.Contains(list, `"pid": `+pid) {
		t.Errorf("listed %q", list)
	}
}

func TestSandboxesArePausedResumedRemovedAndLookedAt(t *testing.T) {
	r := newRack(t)
	a, b := r.do(t, "create"), r.do(t, "create")
	r.do(t, "pause", a, b)
	if ids := r.do(t, "ls", "-q", "--state", "paused"); ids != a+"\n"+b {
		t.Errorf("paused %q", ids)
	}
	r.do(t, "resume", a)
	if all := r.do(t, "inspect", a); !strings.Contains(all, a) || !strings.Contains(all, "ready") {
		t.Errorf("told %q", all)
	}
	if said := r.fail(t, 125, "rm", "nobody", a); !strings.Contains(said, "nobody") {
		t.Errorf("said %q", said)
	}
	r.do(t, "rm", "-f", a, "nobody")
	if ids := r.do(t, "ls", "-q"); ids != b {
		t.Errorf("left %q", ids)
	}
	if said := r.fail(t, 125, "rm", "--all"); !strings.Contains(said, "nobody to ask") {
		t.Errorf("said %q", said)
	}
	r.do(t, "rm", "--all", "-f")
	if ids := r.do(t, "ls", "-q"); ids != "" {
		t.Errorf("left %q", ids)
	}
}

func TestForksAndSnapshotsBeginWithTheFilesOfTheirOrigin(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create", "-l", "a=b", "--memory", "64M")
	r.do(t, "exec", id, "--", "sh", "-c", "echo kept >/tmp/file")
	forks := strings.Fields(r.do(t, "fork", "-n", "2", id))
	if len(forks) != 2 {
		t.Fatalf("forks %q", forks)
	}
	for _, one := range forks {
		if out := r.do(t, "exec", one, "cat", "/tmp/file"); out != "kept" {
			t.Errorf("%s has %q", one, out)
		}
		if !strings.Contains(r.do(t, "inspect", "--json", one), `"memory": 67108864`) || !strings.Contains(r.do(t, "ls", "-l", "a=b"), one) {
			t.Errorf("%s has not the limits and labels of its origin", one)
		}
	}
	snapshot := r.do(t, "snapshot", id)
	from := r.do(t, "create", "--root", "snapshot:"+snapshot)
	if out := r.do(t, "exec", from, "cat", "/tmp/file"); out != "kept" {
		t.Errorf("it has %q", out)
	}
	r.do(t, "rm", "--snapshot", snapshot)
	r.fail(t, 125, "create", "--root", "snapshot:"+snapshot)
	r.fail(t, 125, "fork", "--tier", "sim", id)
	r.fail(t, 125, "fork", "-n", "0", id)
}

func TestAServerIsNamedByTheFlagTheEnvironmentOrLoginInThisOrder(t *testing.T) {
	r := newRack(t)
	login := r.invoke("login", "https://one.example/", "--key-stdin")
	login.App.Stdin = strings.NewReader("its-key\n")
	if code := login.Run(t.Context()); code != 0 {
		t.Fatal(login.Stderr.String())
	}
	file := filepath.Join(r.dir, ".config", "paddock", "server.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
	for _, row := range []struct {
		env  map[string]string
		args []string
		want Site
	}{
		{nil, nil, Site{"https://one.example", "its-key"}},
		{map[string]string{"PADDOCK_KEY": "other"}, nil, Site{"https://one.example", "other"}},
		{map[string]string{"PADDOCK_SERVER": "http://two.example:1"}, nil, Site{"http://two.example:1", ""}}, // a key goes to its own server alone
		{map[string]string{"PADDOCK_SERVER": "http://two.example:1"}, []string{"--server", "unix:/run/x"}, Site{"unix:/run/x", ""}},
	} {
		v := r.invoke(append([]string{"ls"}, row.args...)...)
		v.App.Lookup = func(name string) (string, bool) {
			if name == "HOME" {
				return r.dir, true
			}
			value, ok := row.env[name]
			return value, ok
		}
		if code := v.Run(t.Context()); code != 0 || r.sites[len(r.sites)-1] != row.want {
			t.Errorf("%v %v: status %d, %v, %s", row.env, row.args, code, r.sites[len(r.sites)-1], v.Stderr.String())
		}
	}
	r.do(t, "logout")
	r.do(t, "logout")
	r.do(t, "ls")
	if last := r.sites[len(r.sites)-1]; last.Address != "unix:/private" {
		t.Errorf("asked %v", last)
	}
	for _, bad := range []string{"ftp://x", "example.com", "https://user:pass@example.com", "https://x/?a", "unix:relative", "http://"} {
		r.fail(t, 125, "ls", "--server", bad)
	}
}

func TestAnotherMachineIsNotShownFilesOfThisOne(t *testing.T) {
	r := newRack(t)
	if said := r.fail(t, 125, "create", "--server", "https://one.example", "--read", r.dir); !strings.Contains(said, "another machine") || !strings.Contains(said, "paddock cp") {
		t.Errorf("said %q", said)
	}
	r.do(t, "create", "--server", "http://127.0.0.1:1", "--tier", "sim", "--read", r.dir)
}

func TestAPortIsReachedAtLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		data, _ := io.ReadAll(c) // until the other side has said all
		_, _ = c.Write(append([]byte("you said "), data...))
	})
	sb := dialled{to: l.Addr().String()}
	v := invoke(t.TempDir(), nil, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	address := make(chan string, 1)
	v.App.Stdout = &trigger{word: "\n", do: func() { address <- "" }}
	ended := make(chan error, 1)
	wg.Go(func() { ended <- v.App.forward(ctx, sb, 80, 0, false) })
	<-address
	c, err := net.Dial("tcp", strings.TrimSpace(v.App.Stdout.(*trigger).text()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "you said hello" {
		t.Errorf("got %q: %v", got, err)
	}
	cancel(Interrupted{syscall.SIGINT})
	if err := <-ended; err == nil {
		t.Error("it ended without a reason")
	}
}

// dialled is a sandbox all of whose ports lead to one place.
type dialled struct {
	paddock.Sandbox
	to string
}

func (d dialled) Dial(context.Context, int) (net.Conn, error) { return net.Dial("tcp", d.to) }

func TestAnswersForProgramsAreJSONAloneAlsoWhereSomethingFails(t *testing.T) {
	r := newRack(t)
	a, b := r.do(t, "create"), r.do(t, "create")
	outcomes := func(status int, args ...string) string {
		t.Helper()
		v := r.invoke(args...)
		if code := v.Run(t.Context()); code != status {
			t.Errorf("%q: status %d and not %d, %s", args, code, status, v.Stderr.String())
		}
		var list []outcome
		if err := json.Unmarshal([]byte(v.Stdout.String()), &list); err != nil {
			t.Fatalf("%q answers %s: %v", args, v.Stdout.String(), err)
		}
		text := ""
		for _, o := range list {
			text += o.ID
			if o.Error != nil {
				text += " " + o.Error.Kind
				if !strings.Contains(v.Stderr.String(), o.Error.Message) {
					t.Errorf("%q: a person is not told %q", args, o.Error.Message)
				}
			}
			text += "\n"
		}
		return text
	}
	if got := outcomes(125, "pause", "--json", a, "nobody", b); got != a+"\nnobody not found\n"+b+"\n" {
		t.Errorf("paused %q", got)
	}
	if got := outcomes(0, "resume", "--json", a, b); got != a+"\n"+b+"\n" {
		t.Errorf("resumed %q", got)
	}
	if got := outcomes(0, "rm", "--json", b); got != b+"\n" {
		t.Errorf("removed %q", got)
	}
	if got := outcomes(0, "rm", "--all", "-f", "--json"); got != a+"\n" {
		t.Errorf("removed %q", got)
	}
	if got := outcomes(0, "rm", "--all", "-f", "--json"); got != "" {
		t.Errorf("removed %q", got)
	}
}

func TestKeptOutputIsToldToProgramsWithHowItEnded(t *testing.T) {
	r := newRack(t)
	id := r.do(t, "create")
	pid := r.do(t, "exec", "-d", id, "--", "sh", "-c", "echo out; echo err >&2; exit 4")
	type answer struct {
		PID            int
		Exit           *paddock.Exit
		Stdout, Stderr struct{ Text string }
	}
	var joined, logged answer
	v := r.invoke("attach", "--json", id, pid)
	if code := v.Run(t.Context()); code != 4 {
		t.Errorf("status %d, %s", code, v.Stderr.String())
	}
	for text, to := range map[string]*answer{v.Stdout.String(): &joined, r.do(t, "logs", "--json", id, pid): &logged} {
		if err := json.Unmarshal([]byte(text), to); err != nil || to.Stdout.Text != "out\n" || to.Stderr.Text != "err\n" || to.Exit == nil || to.Exit.Code != 4 {
			t.Errorf("%v: %s", err, text)
		}
	}
	if strconv.Itoa(logged.PID) != pid {
		t.Errorf("of %d, not %s", logged.PID, pid)
	}
	if said := r.fail(t, 125, "logs", "-f", "--json", id); !strings.Contains(said, "leave one out") {
		t.Errorf("said %q", said)
	}
}

func TestAServerOfTheCallersOwnThatEndsMeanwhileIsStartedAnew(t *testing.T) {
	r := newRack(t)
	for _, c := range []struct {
		args         []string
		ends, status int
	}{{[]string{"ls"}, 2, 0}, {[]string{"ls"}, 3, 125}, {[]string{"ls", "--server", "unix:/named"}, 1, 125}} {
		v := r.invoke(c.args...)
		dial, ended, started := v.App.Dial, 0, 0
		v.App.Private = func(context.Context) (string, error) { started++; return "unix:/private", nil }
		v.App.Dial = func(ctx context.Context, s Site) (paddock.Driver, error) {
			if ended < c.ends {
				ended++
				return nil, fmt.Errorf("no such socket: %w", paddock.Unavailable)
			}
			return dial(ctx, s)
		}
		if code := v.Run(t.Context()); code != c.status {
			t.Errorf("%q, of which %d servers end: status %d and not %d, after %d starts: %s", c.args, c.ends, code, c.status, started, v.Stderr.String())
		}
	}
}
