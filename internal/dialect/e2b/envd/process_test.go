package envd

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestACommandTellsItsOutputAndItsEnd(t *testing.T) {
	tr := newTrial(t)
	for script, want := range map[string]struct {
		out, errs string
		end       map[string]any
	}{
		"echo hi":                  {"hi\n", "", map[string]any{"exited": true, "status": "exit status 0"}},
		"echo no >&2; exit 3":      {"", "no\n", map[string]any{"exited": true, "exitCode": 3.0, "status": "exit status 3", "error": "exit status 3"}},
		"printf 'a\\0\\377b'":      {"a\x00\xffb", "", map[string]any{"exited": true, "status": "exit status 0"}},
		"head -c 100000 /dev/zero": {strings.Repeat("\x00", 100000), "", map[string]any{"exited": true, "status": "exit status 0"}},
	} {
		out, errs, end, failure := tr.run(script)
		if out != want.out || errs != want.errs || !reflect.DeepEqual(end, want.end) || failure != "" {
			t.Errorf("%s: %.40q %q %v %s", script, out, errs, end, failure)
		}
	}
}

func TestAPieceOfOutputIsNoLargerThanTheirs(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("head -c 300000 /dev/zero"))
	s.pid()
	total := 0
	for {
		name, m := s.event()
		if name != "data" {
			break
		}
		text, _ := m["stdout"].(string)
		n := len(unbase64(t, text))
		if n > 32<<10 {
			t.Errorf("a piece of %d bytes", n)
		}
		total += n
	}
	if total != 300000 {
		t.Errorf("%d bytes", total)
	}
}

func TestAProgramThatIsNotThereIsAnExitOf127(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", `{"process":{"cmd":"no-such-program"}}`)
	pid := s.pid()
	_, errs, end, failure := s.rest()
	if !strings.Contains(errs, "no-such-program: No such file or directory") || end["exitCode"] != 127.0 || failure != "" {
		t.Errorf("%q %v %s", errs, end, failure)
	}
	again := tr.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
	again.pid()
	if _, _, end, _ := again.rest(); end["exitCode"] != 127.0 {
		t.Errorf("connected to afterwards: %v", end)
	}
	if list := tr.must("process.Process/List", "{}"); len(list) != 0 {
		t.Errorf("it is listed: %v", list)
	}
}

func TestASignalEndsAProcessAsGoSays(t *testing.T) {
	tr := newTrial(t)
	for signal, want := range map[string]string{"SIGNAL_SIGKILL": "signal: killed", "SIGNAL_SIGTERM": "signal: terminated"} {
		s := tr.open("process.Process/Start", start("sleep 1000"))
		pid := s.pid()
		c := tr.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		c.pid()
		tr.must("process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":%q}`, pid, signal))
		for _, s := range []*events{s, c} {
			_, _, end, failure := s.rest()
			if !reflect.DeepEqual(end, map[string]any{"exitCode": -1.0, "status": want, "error": want}) || failure != "" {
				t.Errorf("%s: %v %s", signal, end, failure)
			}
		}
		_, failure := tr.call("process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":%q}`, pid, signal))
		if want := fmt.Sprintf("not_found: process with pid %d not found", pid); failure != want {
			t.Errorf("a second signal: %s", failure)
		}
	}
}

func TestWhatIsWrongWithAProcessHasItsCode(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("sleep 1000"))
	pid := s.pid()
	this := fmt.Sprintf(`"process":{"pid":%d}`, pid)
	for _, c := range []struct{ method, body, want string }{
		{"SendSignal", `{` + this + `,"signal":"SIGNAL_UNSPECIFIED"}`, "unimplemented: "},
		{"SendSignal", `{` + this + `,"signal":2}`, "unimplemented: "},
		{"SendSignal", `{"process":{"pid":77777},"signal":"SIGNAL_SIGKILL"}`, "not_found: process with pid 77777 not found"},
		{"SendSignal", `{"process":{"tag":"t"},"signal":"SIGNAL_SIGKILL"}`, "not_found: process with tag t not found"},
		{"SendSignal", `{"signal":"SIGNAL_SIGKILL"}`, "invalid_argument: "},
		{"SendInput", `{` + this + `,"input":{"stdin":"aGk="}}`, "failed_precondition: "},
		{"SendInput", `{` + this + `,"input":{"pty":"aGk="}}`, "failed_precondition: "},
		{"SendInput", `{` + this + `}`, "invalid_argument: "},
		{"SendInput", `{` + this + `,"input":{"stdin":"%%%"}}`, "invalid_argument: "},
		{"CloseStdin", `{` + this + `}`, "failed_precondition: "},
		{"CloseStdin", `{"process":{"pid":77777}}`, "not_found: "},
		{"Update", `{` + this + `,"pty":{"size":{"cols":80,"rows":24}}}`, "failed_precondition: "},
		{"Update", `{` + this + `,"pty":{"size":{"cols":70000,"rows":24}}}`, "invalid_argument: "},
		{"List", `{`, "invalid_argument: "},
		{"List", `[]`, "invalid_argument: "},
		{"SendSignal", `{` + this + `,"signal":"SIGNAL_SIGHUP"}`, "unimplemented: "},
	} {
		if _, failure := tr.call("process.Process/"+c.method, c.body); !strings.HasPrefix(failure, c.want) {
			t.Errorf("%s %s: %s, want %s", c.method, c.body, failure, c.want)
		}
	}
}

func TestAStartThatIsRefusedHasItsCodeAndNoStartEvent(t *testing.T) {
	tr := newTrial(t)
	basic := func(user string) []string { return []string{"Authorization", "Basic " + base64Of(user+":")} }
	for _, c := range []struct {
		body   string
		header []string
		want   string
	}{
		{start("true", `"cwd":"/nope"`), nil, "invalid_argument: cwd '/nope' does not exist"},
		{start("true", `"cwd":"nope"`), nil, "invalid_argument: cwd 'nope' does not exist"},
		{start("true", `"cwd":"/etc/passwd"`), nil, "invalid_argument: cwd '/etc/passwd' is not a directory"},
		{start("true", `"cwd":"a\u0000b"`), nil, "invalid_argument: "},
		{start("true", `"cwd":"/`+strings.Repeat("x", 5000)+`"`), nil, "invalid_argument: "},
		{start("true"), basic("zork"), "unauthenticated: invalid username: 'zork'"},
		{start("true"), basic("zo\nrk"), "unauthenticated: invalid username: 'zo\nrk'"},
		{start("a\x00b"), nil, "invalid_argument: "},
		{start("true", `"envs":{"A=B":"c"}`), nil, "invalid_argument: "},
		{start("true", `"envs":{"":"c"}`), nil, "invalid_argument: "},
		{`{}`, nil, "invalid_argument: "},
		{`{"process":{"cmd":"x"},"tag":"` + strings.Repeat("x", 2000) + `"}`, nil, "invalid_argument: "},
		{`{"process":{"cmd":"x"},"pty":{"size":{"cols":1000000,"rows":1}}}`, nil, "invalid_argument: "},
		{`{"process":`, nil, "invalid_argument: "},
	} {
		s := tr.open("process.Process/Start", c.body, c.header...)
		if s.res.StatusCode != 200 {
			t.Fatalf("%s: %s", c.body, s.res.Status)
		}
		if _, _, end, failure := s.rest(); end != nil || !strings.HasPrefix(failure, c.want) {
			t.Errorf("%.60s: %v %q, want %q", c.body, end, failure, c.want)
		}
	}
}

func TestAUserCanBeNamed(t *testing.T) {
	tr := newTrial(t)
	for _, user := range []string{"user", ""} {
		s := tr.open("process.Process/Start", start("whoami"), "Authorization", "Basic "+base64Of(user+":"))
		s.pid()
		if out, _, _, failure := s.rest(); out != "user\n" || failure != "" {
			t.Errorf("%s: %q %s", user, out, failure)
		}
	}
}

func TestTheEnvironmentAndDirectoryAreTheirs(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start(`echo $HOME $USER $GLOBAL $OWN $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID; pwd`, `"envs":{"OWN":"o"}`))
	s.pid()
	if out, _, _, _ := s.rest(); out != "/home/user user g o true i1 base\n/home/user\n" {
		t.Errorf("%q", out)
	}
	tr.must("filesystem.Filesystem/MakeDir", `{"path":"sub"}`)
	for cwd, want := range map[string]string{"/tmp": "/tmp\n", "~": "/home/user\n", "~/sub": "/home/user/sub\n", "sub/../sub": "/home/user/sub\n", "": "/home/user\n"} {
		s := tr.open("process.Process/Start", start("pwd", `"cwd":"`+cwd+`"`))
		s.pid()
		if out, _, _, failure := s.rest(); out != want {
			t.Errorf("%s: %q %s", cwd, out, failure)
		}
	}
	s = tr.open("process.Process/Start", start(`echo $GLOBAL`, `"envs":{"GLOBAL":"mine"}`))
	s.pid()
	if out, _, _, _ := s.rest(); out != "mine\n" {
		t.Errorf("a request's variable does not win: %q", out)
	}
}

func TestAProcessWhoseTimeIsOverIsKilledAndTheSandboxGoesOn(t *testing.T) {
	tr := newTrial(t)
	withTime(t, func(ms string) bool {
		s := tr.open("process.Process/Start", start("echo before; sleep 1000"), "Connect-Timeout-Ms", ms)
		pid := s.started()
		if pid == 0 {
			return false
		}
		c := tr.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		if c.started() == 0 {
			return false
		}
		_, _, end, failure := s.rest()
		if end != nil || !strings.HasPrefix(failure, "deadline_exceeded: ") {
			t.Errorf("who started it: %v %s", end, failure)
		}
		if _, _, end, failure := c.rest(); end["status"] != "signal: killed" || failure != "" {
			t.Errorf("who joined: %v %s", end, failure)
		}
		return true
	})
	if out, _, _, _ := tr.run("echo after"); out != "after\n" {
		t.Errorf("afterwards: %q", out)
	}
}

func TestAConnectionWhoseTimeIsOverKillsNothing(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("sleep 1000"))
	pid := s.pid()
	withTime(t, func(ms string) bool {
		c := tr.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid), "Connect-Timeout-Ms", ms)
		if c.started() == 0 {
			return false
		}
		if _, _, end, failure := c.rest(); end != nil || !strings.HasPrefix(failure, "deadline_exceeded: ") {
			t.Errorf("%v %s", end, failure)
		}
		return true
	})
	if list := tr.must("process.Process/List", "{}"); len(list) != 1 {
		t.Errorf("the process is gone: %v", list)
	}
}

func TestAProcessOutlivesItsClient(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("read line; echo got $line")[:len(start("read line; echo got $line"))-len(`false}`)]+`true,"tag":"mine"}`)
	pid := s.pid()
	s.quit()
	list := tr.must("process.Process/List", "{}")
	all, _ := list["processes"].([]any)
	if len(all) != 1 {
		t.Fatalf("%v", list)
	}
	one, _ := all[0].(map[string]any)
	config, _ := one["config"].(map[string]any)
	if one["pid"] != float64(pid) || one["tag"] != "mine" || config["cmd"] != "/bin/bash" || !reflect.DeepEqual(config["args"], []any{"-l", "-c", "read line; echo got $line"}) {
		t.Errorf("%v", one)
	}
	c := tr.open("process.Process/Connect", `{"process":{"tag":"mine"}}`)
	if c.pid() != pid {
		t.Error("another process has the tag")
	}
	tr.must("process.Process/SendInput", `{"process":{"tag":"mine"},"input":{"stdin":"`+base64Of("it\n")+`"}}`)
	if out, _, end, _ := c.rest(); out != "got it\n" || end["exited"] != true {
		t.Errorf("%q %v", out, end)
	}
}

func TestAProcessThatEndedCanBeConnectedToForAWhile(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("echo out; exit 4"))
	pid := s.pid()
	s.rest()
	c := tr.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
	c.pid()
	if out, _, end, _ := c.rest(); out != "" || end["exitCode"] != 4.0 {
		t.Errorf("%q %v", out, end)
	}
	if list := tr.must("process.Process/List", "{}"); len(list) != 0 {
		t.Errorf("it is listed: %v", list)
	}
}

func TestAnotherBoxFindsTheProcesses(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", `{"process":{"cmd":"/bin/bash","args":["-c","read line; echo got $line; read line"]},"stdin":true}`)
	pid := s.pid()
	second, err := New(Options{Sandbox: tr.sb})
	if err != nil {
		t.Fatal(err)
	}
	other := &trial{t: t, sb: tr.sb, box: second, web: nil}
	other.web = newServer(t, second)
	list := other.must("process.Process/List", "{}")
	if all, _ := list["processes"].([]any); len(all) != 1 {
		t.Fatalf("%v", list)
	}
	c := other.open("process.Process/Connect", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
	c.pid()
	other.must("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%q}}`, pid, base64Of("it\n")))
	if name, m := c.event(); name != "data" || string(unbase64(t, fmt.Sprint(m["stdout"]))) != "got it\n" {
		t.Errorf("%s %v", name, m)
	}
	other.must("process.Process/SendSignal", fmt.Sprintf(`{"process":{"pid":%d},"signal":"SIGNAL_SIGKILL"}`, pid))
	if _, _, end, _ := s.rest(); end["status"] != "signal: killed" {
		t.Errorf("%v", end)
	}
}

func TestInputArrivesInOrderAndEnds(t *testing.T) {
	tr := newTrial(t)
	for stdin, want := range map[string]string{`,"stdin":true`: "abc", "": "abc"} {
		s := tr.open("process.Process/Start", `{"process":{"cmd":"cat"}`+stdin+`}`)
		pid := s.pid()
		for _, text := range []string{"a", "", "b", "c"} {
			tr.must("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%q}}`, pid, base64Of(text)))
		}
		tr.must("process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
		if out, _, _, _ := s.rest(); out != want {
			t.Errorf("%s: %q", stdin, out)
		}
	}
}

func TestInputCanBeStreamed(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", `{"process":{"cmd":"cat"},"stdin":true}`)
	pid := s.pid()
	data := func(text string) string {
		return frame(0, fmt.Sprintf(`{"data":{"input":{"stdin":%q}}}`, base64Of(text)))
	}
	first := frame(0, fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid))
	send := func(body string) string {
		_, answer, _ := tr.ask("POST", "/process.Process/StreamInput", body, "Content-Type", "application/connect+json")
		return answer
	}
	if got := send(first + data("one ") + frame(0, `{"keepalive":{}}`) + data("two")); got != frame(0, "{}")+frame(2, "{}") {
		t.Errorf("%q", got)
	}
	for body, want := range map[string]string{
		"":            `"code":"invalid_argument"`,
		data("early"): `"code":"invalid_argument"`,
		frame(0, `{"start":{"process":{"pid":77777}}}`): `"message":"process with pid 77777 not found"`,
		first + frame(0, `{`):                           `"code":"invalid_argument"`,
		first + "\x00\x00\x00":                          `"code":"internal"`,
		first + "\x00\xff\xff\xff\xff":                  `"code":"resource_exhausted"`,
	} {
		if got := send(body); !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %s", body, got, want)
		}
	}
	tr.must("process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid))
	if out, _, _, _ := s.rest(); out != "one two" {
		t.Errorf("%q", out)
	}
}

func TestATerminalHasASizeAndTakesInput(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", `{"process":{"cmd":"/bin/bash","args":["-c","read line; stty size; echo got $line"]},"pty":{"size":{"cols":80,"rows":24}}}`)
	pid := s.pid()
	tr.must("process.Process/Update", fmt.Sprintf(`{"process":{"pid":%d},"pty":{"size":{"cols":100,"rows":30}}}`, pid))
	if _, failure := tr.call("process.Process/CloseStdin", fmt.Sprintf(`{"process":{"pid":%d}}`, pid)); !strings.HasPrefix(failure, "invalid_argument: ") {
		t.Errorf("closing: %s", failure)
	}
	if _, failure := tr.call("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":"eA=="}}`, pid)); !strings.HasPrefix(failure, "failed_precondition: ") {
		t.Errorf("stdin: %s", failure)
	}
	tr.must("process.Process/SendInput", fmt.Sprintf(`{"process":{"pid":%d},"input":{"pty":%q}}`, pid, base64Of("it\r")))
	out, _, end, _ := s.rest()
	if !strings.Contains(out, "30 100\r\n") || !strings.Contains(out, "got it\r\n") || end["exited"] != true {
		t.Errorf("%q %v", out, end)
	}
}

func TestASilentProcessIsKeptAlive(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("sleep 1000"), "Keepalive-Ping-Interval", "1")
	s.pid()
	if name, m := s.event(); name != "keepalive" || len(m) != 0 {
		t.Errorf("%s %v", name, m)
	}
	w := tr.open("filesystem.Filesystem/WatchDir", `{"path":"/tmp"}`, "Keepalive-Ping-Interval", "1")
	for _, want := range []string{"start", "keepalive"} {
		if _, m, err := w.next(); err != nil || m[want] == nil {
			t.Errorf("%v %v", m, err)
		}
	}
}

func TestWhoReadsNothingHoldsAProcessUpAndNoMemory(t *testing.T) {
	tr := newTrial(t)
	s := tr.open("process.Process/Start", start("head -c 60000000 /dev/zero; echo done > /tmp/done; sleep 1000"))
	pid := s.pid()
	p := tr.box.processes.get(uint32(pid))
	if p == nil {
		t.Fatal("not known")
	}
	for limit := time.Now().Add(time.Minute); ; { // until what is kept for the reader is full
		p.mu.Lock()
		full := false
		for r := range p.readers {
			full = len(r.data) == piecesAhead
		}
		p.mu.Unlock()
		if full {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the output never stopped")
		}
	}
	if m := tr.must("process.Process/List", "{}"); len(m) != 1 {
		t.Errorf("other calls: %v", m)
	}
	s.quit()
	w := tr.open("filesystem.Filesystem/WatchDir", `{"path":"/tmp"}`)
	w.event()
	for {
		if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"/tmp/done"}`); failure == "" {
			break // the process went on without the client
		}
		if _, _, err := w.next(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryCauseOfAnEndIsSaid(t *testing.T) {
	for _, c := range []struct {
		exit   paddock.Exit
		status string
		why    string
		late   bool
	}{
		{paddock.Exit{Cause: paddock.Exited}, "exit status 0", "", false},
		{paddock.Exit{Cause: paddock.Exited, Code: 7}, "exit status 7", "exit status 7", false},
		{paddock.Exit{Cause: paddock.Signaled, Signal: syscall.SIGKILL, Code: 137}, "signal: killed", "signal: killed", false},
		{paddock.Exit{Cause: paddock.Signaled, Signal: syscall.SIGKILL, Code: 137, Reason: "why"}, "signal: killed", "signal: killed", false},
		{paddock.Exit{Cause: paddock.OutOfMemory, Signal: syscall.SIGKILL, Code: 137, Reason: "memory"}, "signal: killed", "signal: killed: memory", false},
		{paddock.Exit{Cause: paddock.TimedOut, Signal: syscall.SIGKILL, Code: 137}, "signal: killed", "signal: killed", true},
		{paddock.Exit{Cause: paddock.KilledByPolicy, Signal: syscall.SIGSYS, Code: 159, Reason: "a call"}, "signal: bad system call", "signal: bad system call: a call", false},
	} {
		e := endOf(c.exit)
		if e.event.GetStatus() != c.status || e.event.GetError() != c.why || e.late != c.late || (e.event.Error == nil) != (c.why == "") {
			t.Errorf("%+v: %v", c.exit, e)
		}
	}
	if e := endOf(paddock.Exit{Cause: paddock.SandboxGone}); e.err == nil {
		t.Error("the end of a sandbox is no end of a process")
	}
}

func TestTheEnvironmentOfTheBoxIsNotTheCallers(t *testing.T) {
	env := map[string]string{"A": "1"}
	tr := newTrial(t, func(o *Options) { o.Env = env })
	env["A"] = "2"
	if got := tr.box.environment(nil)["A"]; got != "1" {
		t.Errorf("%s", got)
	}
	first := tr.box.environment(map[string]string{"B": "3"})
	if second := tr.box.environment(nil); maps.Equal(first, second) {
		t.Error("one request's variables are another's")
	}
}

func TestATagMeansTheProcessThatRuns(t *testing.T) {
	tr := newTrial(t)
	tagged := func(script string) *events {
		return tr.open("process.Process/Start", `{"process":{"cmd":"/bin/bash","args":["-c","`+script+`"]},"tag":"one","stdin":false}`)
	}
	for range 3 {
		s := tagged("true")
		s.pid()
		s.rest()
	}
	pid := tagged("sleep 1000").pid()
	c := tr.open("process.Process/Connect", `{"process":{"tag":"one"}}`)
	if got := c.pid(); got != pid {
		t.Errorf("process %d, and %d runs", got, pid)
	}
}
