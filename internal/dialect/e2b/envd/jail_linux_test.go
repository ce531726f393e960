package envd

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/program/programtest"
)

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime(), gvisor.Runtime()) || gateway.Main() {
		return
	}
	if err := programtest.Build("paddock-gvisor"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newJail is a trial with real processes.
func newJail(t *testing.T) *trial {
	t.Helper()
	return newReal(t, func(state string) (paddock.Driver, error) {
		return jail.New(jail.Options{State: state, Environ: os.Environ()})
	})
}

// newReal is one on a tier.
func newReal(t *testing.T, open func(state string) (paddock.Driver, error)) *trial {
	t.Helper()
	weak := drivertest.Weak(t, open)
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{User: "user", Ephemeral: true, AllowMissing: weak})
	if err != nil {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		t.Skipf("no such sandbox can be made here: %v", err)
	}
	return serve(t, d, sb)
}

func TestRootRunsCommandsWhereTheTierHasUsers(t *testing.T) {
	dir := t.TempDir()
	tr := newReal(t, func(state string) (paddock.Driver, error) {
		kernel, err := programtest.Program("paddock-gvisor")
		if err != nil {
			return nil, err
		}
		return gvisor.New(gvisor.Options{State: state, Data: dir, Environ: os.Environ(), Init: kernel})
	})
	as := func(user, script string) string {
		s := tr.open("process.Process/Start", start(script), "Authorization", "Basic "+base64Of(user+":"))
		s.pid()
		out, errs, _, failure := s.rest()
		return out + errs + failure
	}
	if said := as("root", "id -u; touch /tmp/mine && stat -c %U /tmp/mine"); said != "0\nroot\n" {
		t.Errorf("root: %q", said)
	}
	if said := as("user", "id -un; sudo -n true 2>/dev/null || echo no sudo"); said != "user\nno sudo\n" {
		t.Errorf("user: %q", said)
	}
	s := tr.open("process.Process/Start", start("true"), "Authorization", "Basic "+base64Of("zork:"))
	if _, _, _, failure := s.rest(); !strings.HasPrefix(failure, "unauthenticated: invalid username: 'zork'") {
		t.Errorf("nobody known: %s", failure)
	}
}

func TestRealProcessesAreToldAsTheyAre(t *testing.T) {
	tr := newJail(t)
	if out, errs, end, failure := tr.run("echo out; echo err >&2; whoami; pwd; exit 3"); out != "out\nuser\n/home/user\n" || errs != "err\n" || end["exitCode"] != 3.0 || failure != "" {
		t.Errorf("%q %q %v %s", out, errs, end, failure)
	}
	if _, _, end, _ := tr.run("kill -SEGV $$"); end["exitCode"] != -1.0 || !strings.HasPrefix(fmt.Sprint(end["status"]), "signal: segmentation fault") {
		t.Errorf("%v", end)
	}
	s := tr.open("process.Process/Start", start("sleep 1000"))
	pid := s.pid()
	tr.must("process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":"SIGNAL_SIGKILL"}`, pid))
	if _, _, end, _ := s.rest(); end["status"] != "signal: killed" {
		t.Errorf("%v", end)
	}
	withTime(t, func(ms string) bool {
		late := tr.open("process.Process/Start", start("sleep 1000"), "Connect-Timeout-Ms", ms)
		if late.started() == 0 {
			return false
		}
		if _, _, end, failure := late.rest(); end != nil || !strings.HasPrefix(failure, "deadline_exceeded: ") {
			t.Errorf("%v %s", end, failure)
		}
		return true
	})
	root := tr.open("process.Process/Start", start("true"), "Authorization", "Basic "+base64Of("root:"))
	if _, _, _, failure := root.rest(); failure != "unauthenticated: invalid username: 'root': commands run as user in this sandbox" {
		t.Errorf("root: %s", failure)
	}
	in := tr.open("process.Process/Start", `{"process":{"cmd":"sha256sum"},"stdin":true}`)
	pid = in.pid()
	data := strings.Repeat("0123456789", 200_000)
	tr.must("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%q}}`, pid, base64Of(data)))
	tr.must("process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
	if out, _, _, _ := in.rest(); !strings.HasPrefix(out, fmt.Sprintf("%x ", sha256.Sum256([]byte(data)))) {
		t.Errorf("%q", out)
	}
	terminal := tr.open("process.Process/Start", `{"process":{"cmd":"/bin/sh","args":["-c","read x; stty size; echo got $x"]},"pty":{"size":{"cols":80,"rows":24}}}`)
	pid = terminal.pid()
	tr.must("process.Process/Update", fmt.Sprintf(`{"process":{"pid":%d},"pty":{"size":{"cols":100,"rows":30}}}`, pid))
	tr.must("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"pty":%q}}`, pid, base64Of("it\n")))
	if out, _, _, _ := terminal.rest(); !strings.Contains(out, "30 100") || !strings.Contains(out, "got it") {
		t.Errorf("%q", out)
	}
}

func TestALargeFileArrivesWholeBothWays(t *testing.T) {
	tr := newJail(t)
	data := bytes.Repeat([]byte("paddock "), 4<<20)
	res := tr.do("POST", "/files?path=large", struct{ io.Reader }{bytes.NewReader(data)}, "Content-Type", "application/octet-stream")
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	got := sha256.New()
	if _, err := io.Copy(got, tr.do("GET", "/files?path=large", nil).Body); err != nil || [32]byte(got.Sum(nil)) != sha256.Sum256(data) {
		t.Errorf("what came back is not what was sent: %v", err)
	}
}

func TestStreamsOfAJailThatIsRemovedAreCut(t *testing.T) {
	tr := newJail(t)
	s := tr.open("process.Process/Start", start("sleep 1000"))
	s.pid()
	if err := tr.sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if flag, m, err := s.next(); err == nil {
		t.Errorf("the stream ended in order: %d %v", flag, m)
	}
	if code, _, _ := tr.ask("GET", "/health", ""); code != 502 {
		t.Errorf("health: %d", code)
	}
}
