package agenttest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// A screen is a terminal of tmux in which the agent runs.
type screen struct {
	t      *testing.T
	socket string
}

func newScreen(t *testing.T, r *rig, args ...string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	s := &screen{t, filepath.Join(t.TempDir(), "tmux")}
	c := exec.Command("tmux", append([]string{"-S", s.socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", r.work, r.paddock}, args...)...)
	c.Env = r.surroundings()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() }) // it may have ended
	s.do("set-option", "-g", "remain-on-exit", "on")
	return s
}

func (s *screen) do(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

// keys types.
func (s *screen) keys(names ...string) {
	s.t.Helper()
	s.do(append([]string{"send-keys"}, names...)...)
}

// until waits for something, and fails with what the screen shows.
func (s *screen) until(what string, there func(shown string) bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if there(s.do("capture-pane", "-p")) {
			return
		}
	}
	s.t.Fatalf("%s never comes; the screen shows:\n%s", what, s.do("capture-pane", "-p"))
}

// In a terminal an agent comes to its prompt without a question of a first run, does what is typed, and ends by its own
// command.
func TestAnAgentInATerminal(t *testing.T) {
	each(t, "agents in a terminal", func(t *testing.T, tier string, p product) {
		r := newRig(t, p, tier, func(string) []agenttest.Turn {
			return []agenttest.Turn{agenttest.Shell("echo ran > shell.txt"), agenttest.Say("The work is done.")}
		})
		s := newScreen(t, r, r.flags(nil)...)
		s.until("its prompt", func(shown string) bool { return strings.Contains(shown, "bypass permissions on") })
		s.keys("-l", "do it")
		s.until("what is typed", func(shown string) bool { return strings.Contains(shown, "do it") })
		s.keys("Enter")
		s.until("its answer", func(shown string) bool { return strings.Contains(shown, "The work is done.") })
		if got, err := os.ReadFile(filepath.Join(r.work, "shell.txt")); string(got) != "ran\n" {
			t.Errorf("%q, %v", got, err)
		}
		s.do("resize-window", "-x", "90", "-y", "30")
		s.keys("-l", "/exit")
		s.until("what is typed", func(shown string) bool { return strings.Contains(shown, "/exit") })
		s.keys("Enter")
		s.until("the end", func(string) bool { return strings.TrimSpace(s.do("display-message", "-p", "#{pane_dead}")) == "1" })
		if got := s.do("capture-pane", "-p", "-J"); !strings.Contains(got, "brings back what was") {
			t.Errorf("at the end it shows %s", got)
		}
		r.secret(t)
	}, "claude")
}
