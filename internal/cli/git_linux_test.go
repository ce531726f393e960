package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/gitlogin"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// A gitHost is a user with a login of git and a repository whose remote is approved.
type gitHost struct {
	a         *App
	p         *plan
	top, work string
	env       map[string]string
	said      bytes.Buffer
	asked     []*os.File // the other end of each terminal, where somebody says yes
}

func newGitHost(t *testing.T, config string) *gitHost {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &gitHost{top: top, work: filepath.Join(top, "work")}
	for _, dir := range []string{h.work + "/.git", top + "/home", top + "/real", top + "/also"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(git, top+"/real/git"); err != nil {
		t.Fatal(err)
	}
	plainScript(t, top+"/helper", "#!/bin/sh\necho username=bob; echo password=long-secret\n")
	plainScript(t, top+"/home/.gitconfig", "[credential]\n\thelper = "+top+"/helper\n")
	plainScript(t, h.work+"/.git/config", config)
	h.env = map[string]string{"PATH": top + "/real:/usr/bin:/bin", "HOME": top + "/home"}
	h.a = &App{
		Stderr: &h.said, Lookup: func(name string) (string, bool) { v, ok := h.env[name]; return v, ok },
		Data: func() (string, error) { return filepath.Join(top, "data"), nil },
		Tty:  h.terminal,
	}
	h.p = &plan{workspace: h.work, spec: paddock.Spec{Mounts: []paddock.Mount{{Source: h.work, Target: "/work", Write: true}}}, host: policy.Host{Dir: h.work, Home: top + "/home"}}
	return h
}

func (h *gitHost) terminal() (*os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	other := os.NewFile(uintptr(fds[1]), "person")
	h.asked = append(h.asked, other)
	_, err = other.WriteString("y\n")
	return os.NewFile(uintptr(fds[0]), "terminal"), err
}

// shown is what the terminals showed.
func (h *gitHost) shown(t *testing.T) string {
	t.Helper()
	text := ""
	for _, f := range h.asked {
		data, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

func (h *gitHost) login(t *testing.T) gatewayclient.LoginAnswer {
	t.Helper()
	if h.p.login == nil {
		return gatewayclient.LoginAnswer{}
	}
	return h.p.login.Login(t.Context(), gatewayclient.LoginRequest{Host: "git.example", Port: 443, Method: "GET", Path: "/team/one/info/refs"})
}

const gitOrigin = "[user]\n\tname = x\n[remote \"origin\"]\n\turl = https://git.example/team/one\n"

// A box that exchanges what a directory of PATH leads over chooses no program of the host.
func TestABoxChoosesNoProgramForTheLoginOfGit(t *testing.T) {
	for what, at := range map[string]string{"the workspace": "work", "another writable directory": "also"} {
		h := newGitHost(t, gitOrigin)
		bin := filepath.Join(h.top, at, "bin")
		if err := os.Symlink(h.top+"/real", bin); err != nil {
			t.Fatal(err)
		}
		h.env["PATH"] = bin + ":" + h.env["PATH"]
		later := []paddock.Mount{{Source: h.top + "/also", Target: "/also", Write: true}}
		if err := h.p.useGit(t.Context(), h.a, later, true); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(bin), os.Mkdir(bin, 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"git", "sh", "helper"} {
			plainScript(t, filepath.Join(bin, name), "#!/bin/sh\n: > "+h.top+"/planted\n")
		}
		if a := h.login(t); len(a.Tokens) != 2 {
			t.Errorf("%s: there is no login: %s", what, &h.said)
		}
		if _, err := os.Stat(h.top + "/planted"); err == nil {
			t.Errorf("%s: a program of the box ran on the host", what)
		}
	}
}

// A home or a configuration that a box could write is not obeyed, and that is told.
func TestABoxSaysNothingToTheGitOfTheHost(t *testing.T) {
	for what, change := range map[string]func(h *gitHost) error{
		"a directory of settings": func(h *gitHost) error {
			h.env["XDG_CONFIG_HOME"] = h.work
			return os.Mkdir(h.work+"/git", 0o755)
		},
		"a home":   func(h *gitHost) error { h.env["HOME"] = h.work; return nil },
		"a link":   func(h *gitHost) error { return os.Symlink(h.work, h.top+"/home/.config") },
		"an entry": func(h *gitHost) error { return os.Symlink(h.work+"/later", h.top+"/home/.config") },
	} {
		h := newGitHost(t, gitOrigin)
		if err := change(h); err != nil {
			t.Fatal(err)
		}
		if err := h.p.useGit(t.Context(), h.a, nil, false); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		evil := "[credential]\n\thelper = !touch " + h.top + "/planted\n"
		if err := os.MkdirAll(h.work+"/git", 0o755); err != nil {
			t.Fatal(err)
		}
		plainScript(t, h.work+"/git/config", evil)
		plainScript(t, h.work+"/.gitconfig", evil)
		h.login(t)
		if _, err := os.Stat(h.top + "/planted"); err == nil || !strings.Contains(h.said.String(), "note: ") {
			t.Errorf("%s: a configuration of the box was obeyed, or nothing was told: %s", what, &h.said)
		}
	}
}

// Nothing is approved that the person did not see whole, and each remote has a question of its own.
func TestEachRemoteIsApprovedBySight(t *testing.T) {
	config := ""
	for i := range 3 {
		config += fmt.Sprintf("[remote \"a%d\"]\n\turl = https://git.example/project%s\n", i, strings.Repeat("/"+strings.Repeat("a", 96+i), 7))
	}
	config += gitOrigin + "[remote \"admin\"]\n\turl = https://admin@git.example/team/one\n"
	for i := range 12 {
		config += fmt.Sprintf("[remote \"b%d\"]\n\turl = https://git.example/b/%d\n", i, i)
	}
	h := newGitHost(t, config)
	kept, err := h.a.approvedRemotes(h.work, gitlogin.Read([]byte(config)).Remotes)
	if err != nil {
		t.Fatal(err)
	}
	shown := h.shown(t)
	for _, r := range kept {
		if !strings.Contains(shown, " "+r.String()+", also to push? [y/N]") {
			t.Errorf("%s is approved and was not shown", r)
		}
	}
	if len(h.asked) != questionsMax || len(kept) != questionsMax {
		t.Errorf("%d questions, and %d are approved", len(h.asked), len(kept))
	}
	if yes, err := h.a.askYes(strings.Repeat("x", Paragraph) + " really?"); yes || err == nil {
		t.Error("what is cut off was agreed to")
	}
}

// The user in the URL of a remote chooses a login, so the approval of another user does not count for it.
func TestAnotherUserOfARemoteIsAnotherApproval(t *testing.T) {
	h := newGitHost(t, gitOrigin)
	if err := h.a.approveGit(h.work, []string{"git.example/team/one"}); err != nil {
		t.Fatal(err)
	}
	h.a.Tty = func() (*os.File, error) { return nil, os.ErrNotExist }
	kept, err := h.a.approvedRemotes(h.work, gitlogin.Read([]byte("[remote \"x\"]\n\turl = https://admin@git.example/team/one\n"+gitOrigin)).Remotes)
	if err != nil || len(kept) != 1 || kept[0].User != "" {
		t.Errorf("%v, %v", kept, err)
	}
}

// A configuration that cannot be read, as a box or another program can leave it, ends no run that did not ask for git by name.
func TestARepositoryThatCannotBeReadEndsNoRun(t *testing.T) {
	for what, change := range map[string]func(h *gitHost, config string) error{
		"too large": func(_ *gitHost, config string) error { return os.Truncate(config, 2<<20) },
		"a link out": func(h *gitHost, config string) error {
			return errors.Join(os.Remove(config), os.Symlink(h.top+"/helper", config))
		},
		"a pipe": func(_ *gitHost, config string) error {
			return errors.Join(os.Remove(config), syscall.Mkfifo(config, 0o600))
		},
		"a link away": func(h *gitHost, _ string) error {
			return errors.Join(os.Rename(h.work+"/.git", h.top+"/away"), os.Symlink(h.top+"/away", h.work+"/.git"))
		},
	} {
		for _, asked := range []bool{false, true} {
			h := newGitHost(t, gitOrigin)
			if err := change(h, h.work+"/.git/config"); err != nil {
				t.Fatal(err)
			}
			err := h.p.useGit(t.Context(), h.a, nil, asked)
			if (err != nil) != asked || len(h.p.spec.Policy.Network.Rules) > 0 || !asked && !strings.Contains(h.said.String(), "note: ") {
				t.Errorf("%s, asked for: %v: %v, %s", what, asked, err, &h.said)
			}
		}
	}
	h := newGitHost(t, gitOrigin+strings.Repeat("#"+strings.Repeat("x", 1023)+"\n", 300))
	if err := h.p.useGit(t.Context(), h.a, nil, false); err != nil || len(h.p.spec.Policy.Network.Rules) != 1 {
		t.Errorf("300 KiB: %v, %s", err, &h.said)
	}
	h.p.git.close()
}
