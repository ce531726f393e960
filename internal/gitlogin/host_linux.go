package gitlogin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	answerMax = 64 << 10 // bytes that git on the host may answer
	patience  = 2 * time.Minute
	lastWords = time.Second // for a helper that stays, such as a daemon that keeps credentials
)

// A host runs git on this machine, where no repository is and nothing counts that a box can write.
type host struct {
	program string
	env     []string
	dirs    []string // of PATH
	home    string
}

// findGit finds git in the caller's PATH. Its directories are kept by their real names, so that no link on the way to one
// is followed again. Nothing that the lookup gives is in reach of a box.
func findGit(lookup func(string) (string, bool), reach func(string) bool) (*host, error) {
	search, _ := lookup("PATH")
	h := &host{}
	for _, dir := range filepath.SplitList(search) {
		if real, err := filepath.EvalSymlinks(dir); filepath.IsAbs(dir) && err == nil && !reach(dir) {
			h.dirs = append(h.dirs, real)
		}
	}
	if h.program = h.find("git"); h.program == "" {
		return nil, fmt.Errorf("no directory of PATH outside of what the sandbox may write has git: %w", paddock.NotFound)
	}
	if reach(h.program) {
		return nil, inReach(h.program)
	}
	h.env = []string{
		"PATH=" + strings.Join(h.dirs, string(filepath.ListSeparator)),
		"GIT_DIR=/dev/null",                                     // no repository, wherever this runs
		"GIT_TERMINAL_PROMPT=0",                                 // nobody is asked: the terminal is the agent's
		"GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never", // likewise
	}
	for _, name := range kept() {
		if v, ok := lookup(name); ok {
			h.env = append(h.env, name+"="+v)
		}
	}
	h.home, _ = lookup("HOME")
	return h, nil
}

// find returns the program with a name, or nothing.
func (h *host) find(name string) string {
	for _, dir := range h.dirs {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	return ""
}

func inReach(what string) error {
	return fmt.Errorf("%s is, or leads over, what the sandbox may write, so your git's login is not used: %w", what, paddock.Denied)
}

// kept are the variables that helpers need to find what they keep. None of them configures git.
func kept() []string {
	return []string{
		"HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
		"DBUS_SESSION_BUS_ADDRESS", "GNUPGHOME", "PASSWORD_STORE_DIR", "GCM_CREDENTIAL_STORE", "GH_CONFIG_DIR", "GH_TOKEN", "GITHUB_TOKEN",
		"GLAB_CONFIG_DIR", "GITLAB_TOKEN", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE",
	}
}

// run runs git with an input and returns its output.
func (h *host) run(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, h.program, args...)
	c.Dir, c.Env, c.Stdin = "/", h.env, strings.NewReader(input)
	c.WaitDelay = lastWords
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without the caller's terminal
	c.Cancel = func() error { return killGroup(c.Process.Pid) }
	out := &limited{}
	c.Stdout = out
	if err := c.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if c.Process != nil { // its helpers do not stay, as a daemon of one that succeeded may
			_ = killGroup(c.Process.Pid) // most often nobody is left
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.String(), nil
}

// killGroup ends a program with all that it started and that did not leave its group.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// limited keeps the beginning of an output, and fails beyond.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > answerMax {
		return 0, fmt.Errorf("the answer is longer than %d bytes", answerMax)
	}
	return l.Buffer.Write(b)
}

// value returns what the caller's own configuration says, or nothing.
func (h *host) value(ctx context.Context, key string) string {
	text, err := h.run(ctx, "", "config", "--get", key)
	text = strings.TrimSuffix(text, "\n")
	if err != nil || len(text) > 200 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	return text
}

// A credential is what git on the host knows for a repository.
type credential struct {
	user, password string
	until          time.Time // zero does not end
}

// credential asks for that of one repository. The names are plain: see parse.
func (h *host) credential(ctx context.Context, r Remote) (credential, error) {
	input := "protocol=https\nhost=" + r.host() + "\npath=" + r.asked + "\n"
	if r.User != "" {
		input += "username=" + r.User + "\n"
	}
	text, err := h.run(ctx, input+"\n", "credential", "fill")
	if err != nil {
		return credential{}, err
	}
	return readCredential(text, r.host())
}

// readCredential reads the answer of git, which may be about this host only.
func readCredential(text, asked string) (credential, error) {
	var c credential
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "protocol":
			if value != "https" {
				return c, fmt.Errorf("it is for %.20q: %w", value, paddock.Denied)
			}
		case "host":
			if value != asked {
				return c, fmt.Errorf("it is for another host: %w", paddock.Denied)
			}
		case "username":
			c.user = value
		case "password":
			c.password = value
		case "password_expiry_utc":
			var seconds int64
			if _, err := fmt.Sscan(value, &seconds); err == nil && seconds > 0 {
				c.until = time.Unix(seconds, 0)
			}
		}
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	// A shorter password could not be kept out of answers.
	if c.user == "" || strings.Contains(c.user, ":") || len(c.password) < 6 || slices.ContainsFunc([]string{c.user, c.password}, func(s string) bool { return strings.ContainsFunc(s, control) }) {
		return credential{}, fmt.Errorf("it has no user and password that can be sent: %w", paddock.Invalid)
	}
	return c, nil
}
