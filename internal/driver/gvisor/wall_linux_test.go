package gvisor_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// attempts prints which of these operations succeed for a command. An operation that only
// asks the kernel for a right is followed by one that would end or stop the sandbox.
const attempts = `
import ctypes, fcntl, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    if libc.syscall(*a) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
def fork(what):
    pid = os.fork()
    if pid == 0:
        try: what()
        except OSError: os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise PermissionError()
def clone(flag):
    r = libc.syscall(56 if os.uname().machine == "x86_64" else 220, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if r == 0: os._exit(0)
    if r < 0: raise PermissionError()
    os.waitpid(r, 0)
def tell(pid):
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, pid)
    fcntl.fcntl(r, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(w, b"x")
def ready():
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, 1)
    fcntl.fcntl(r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(w, b"x")
tried = []
def attempt(name, what):
    tried.append(name)
    try: what()
    except OSError: return
    print(name)
kinds = {"user": 0x10000000, "mnt": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000}
for name, flag in kinds.items():
    attempt("unshare " + name, lambda: fork(lambda: call(272 if os.uname().machine == "x86_64" else 97, flag)))
    attempt("clone " + name, lambda: clone(flag))
attempt("clone3", lambda: call(435, 0, 0))
attempt("mount", lambda: call(165 if os.uname().machine == "x86_64" else 40, b"none", b"/mnt", b"tmpfs", 0, 0))
attempt("chroot", lambda: os.chroot("/tmp"))
open("/tmp/program", "w").close()
attempt("set-id", lambda: os.chmod("/tmp/program", 0o4755))
attempt("limit", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3)))
attempt("trace", lambda: libc.ptrace(16, 1, 0, 0) and call(101 if os.uname().machine == "x86_64" else 117, 16, 1, 0, 0))
attempt("group", lambda: fork(lambda: os.setpgid(0, 1)))
attempt("memory", lambda: open("/proc/1/mem", "rb"))
attempt("signal when ready", lambda: tell(1))
ready() # it sends SIGIO or nothing, and does not say which
threads = [int(t) for t in os.listdir("/proc/1/task")]
assert len(threads) > 2, threads
for sig in 0, signal.SIGSTOP, signal.SIGTSTP, signal.SIGKILL:
    attempt("pidfd 1 %d" % sig, lambda: signal.pidfd_send_signal(os.pidfd_open(1), sig))
    for t in threads:
        attempt("kill %d %d" % (t, sig), lambda: os.kill(t, sig))
        attempt("tkill %d %d" % (t, sig), lambda: call(200 if os.uname().machine == "x86_64" else 130, t, sig))
        attempt("tgkill %d %d" % (t, sig), lambda: call(234 if os.uname().machine == "x86_64" else 131, 1, t, sig))
try: os.kill(-1, signal.SIGKILL)
except ProcessLookupError: pass
assert len(tried) > 60, tried
print("tried")
`

func said(t *testing.T, sb paddock.Sandbox, cmd paddock.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &out}
	p, err := sb.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
	return out.String()
}

// The kernel saves the filter and the agent's user with the sandbox.
func TestNoCommandMakesNamespacesOrHarmsItsAgent(t *testing.T) {
	for name, user := range map[string]string{"user": "", "user 0": "0"} {
		t.Run(name, func(t *testing.T) {
			d, _ := driver(t)
			sb := create(t, d, paddock.Spec{User: user})
			try := func(when string, sb paddock.Sandbox) {
				t.Helper()
				if got := said(t, sb, paddock.Cmd{Args: []string{"python3", "-c", attempts}}); got != "tried\n" {
					t.Errorf("%s a command could: %s", when, got)
				}
			}
			try("at first", sb)
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			try("after a pause", sb)
			id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: true})
			if err != nil {
				t.Fatal(err)
			}
			try("in a fork", create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}))
		})
	}
}

// The filter does not affect other operations.
func TestCommandsUseProcessesAsTheyDoElsewhere(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true})
	for _, row := range []struct {
		what, script string
		terminal     bool
	}{
		{"processes of Python", "import multiprocessing as m\nif __name__ == '__main__':\n with m.Pool(3) as p: assert p.map(abs, [-1, -2]) == [1, 2]", false},
		{"threads", "import threading\nl = [threading.Thread(target=int) for i in range(20)]\n[t.start() for t in l]\n[t.join() for t in l]", false},
		{"a session", "import os\nif os.fork() == 0: os.setsid(); os._exit(0)\nassert os.wait()[1] == 0", false},
		{"tracing a child", `
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0)
    os.execv("/bin/true", ["true"])
_, status = os.waitpid(pid, 0)
assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP, status
assert libc.ptrace(7, pid, 0, 0) == 0
assert os.waitpid(pid, 0)[1] == 0
`, false},
		{"attaching to a child", `
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
c = subprocess.Popen(["sleep", "60"])
assert libc.ptrace(16, c.pid, 0, 0) == 0, ctypes.get_errno()
os.waitpid(c.pid, 0)
assert libc.ptrace(17, c.pid, 0, 0) == 0
c.kill()
c.wait()
`, false},
		{"no tracer of its own", "t = [l for l in open('/proc/self/status') if l.startswith('TracerPid')]\nassert t == ['TracerPid:\\t0\\n'], t", false},
		{"jobs of a terminal", `
import os, pty, signal, subprocess
assert os.tcgetpgrp(0) == os.getpgrp()
s = "set -m; sleep 60 & kill -STOP %1; jobs; kill -KILL %1; wait; echo over"
out = subprocess.run(["bash", "-c", s], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
assert "over" in out, out
`, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			cmd := paddock.Cmd{Args: []string{"python3", "-c", row.script}}
			if row.terminal {
				cmd.Terminal = &paddock.Size{Rows: 24, Cols: 80}
			}
			if got := said(t, sb, cmd); strings.TrimSpace(got) != "" {
				t.Errorf("%s", got)
			}
		})
	}
}

// A command that fails to start leaves nothing and uses up no process.
func TestAFullSandboxStartsNothingMore(t *testing.T) {
	d, _ := driver(t)
	const most = 16
	sb := create(t, d, paddock.Spec{Ephemeral: true, Limits: paddock.Limits{PIDs: most}})
	var all []paddock.Process
	for i := range most + 1 {
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "600"}, Output: paddock.Output{Detached: true}})
		if i < most && err != nil {
			t.Fatalf("start %d: %v", i+1, err)
		}
		if i < most {
			all = append(all, p)
		} else if paddock.KindOf(err) != paddock.Exhausted || !strings.Contains(err.Error(), "the pids limit is reached") {
			t.Errorf("start %d: %v", i+1, err)
		}
	}
	if err := all[0].Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, sb, paddock.Cmd{Args: []string{"echo", "room"}}); got != "room\n" {
		t.Errorf("%q", got)
	}
}
