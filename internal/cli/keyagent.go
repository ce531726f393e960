package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// keyAgents puts the agents that are forwarded into a spec, with the caller's own sockets. Flags replace those of a policy.
func (f *specFlags) keyAgents(s *paddock.Spec, a *App) error {
	if len(f.forward) > 0 {
		s.Policy.KeyAgents = nil
	}
	for _, text := range f.forward {
		agents, err := policy.ForwardAgent(s.Policy.KeyAgents, text)
		if err != nil {
			return WithHint(fmt.Errorf("--forward-agent %s: %w", text, err), "%s", policy.ForwardHint)
		}
		s.Policy.KeyAgents = agents
	}
	if f.look { // nothing is run, so no agent is needed
		return nil
	}
	for i := range s.Policy.KeyAgents {
		k := &s.Policy.KeyAgents[i]
		var err error
		switch k.Kind {
		case paddock.KeyAgentSSH:
			k.Socket, err = sshAgent(a)
		case paddock.KeyAgentGPG:
			k.Socket, err = gpgAgent(a, s.Mounts)
		}
		if err == nil { // the driver follows no link, and this one is the caller's
			if k.Socket, err = filepath.EvalSymlinks(k.Socket); err != nil {
				err = WithHint(fmt.Errorf("%w: %w", err, paddock.NotFound), "start the agent first")
			}
		}
		if err != nil {
			return fmt.Errorf("--forward-agent %s: %w", k.Kind, err)
		}
	}
	return nil
}

// sshAgent returns the socket of the caller's ssh-agent.
func sshAgent(a *App) (string, error) {
	socket, ok := a.Lookup("SSH_AUTH_SOCK")
	if !ok || socket == "" {
		return "", WithHint(fmt.Errorf("SSH_AUTH_SOCK is not set, so there is no agent: %w", paddock.NotFound), `start one: eval "$(ssh-agent)" && ssh-add`)
	}
	return socket, nil
}

// gpgTime bounds the calls of gpgconf, the first of which may start the agent.
const gpgTime = 10 * time.Second

// systemProgram finds a program of this machine that no sandbox with these mounts could exchange.
func systemProgram(name string, mounts []paddock.Mount) (string, error) {
	for _, dir := range hostroot.ProgramDirs() {
		found, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if m, inside := inReach(found, mounts, true); inside {
			return "", WithHint(fmt.Errorf("%s is, or leads over, what the sandbox may write: %w", found, paddock.Denied), "leave out the writable mount %s", m.Source)
		}
		return found, nil
	}
	return "", WithHint(fmt.Errorf("%s is in none of %s: %w", name, Join(hostroot.ProgramDirs()), paddock.NotFound), "install it there, as packages of the system do; PATH is not used, because a sandbox may write in it")
}

// gpgAgent starts the caller's gpg-agent if needed, and returns its socket for others than the caller.
func gpgAgent(a *App, mounts []paddock.Mount) (string, error) {
	program, err := systemProgram("gpgconf", mounts)
	if err != nil {
		return "", err
	}
	env := []string{"PATH=" + strings.Join(hostroot.ProgramDirs(), string(filepath.ListSeparator))} // the agent starts others by name
	for _, name := range []string{                                                                  // what the agent and its dialogues need; none is a program
		"HOME", "GNUPGHOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "GPG_TTY", "DISPLAY", "XAUTHORITY",
		"WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS",
	} {
		if v, ok := a.Lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	home, _ := a.Lookup("HOME")
	dir := filepath.Join(home, ".gnupg")
	if v, ok := a.Lookup("GNUPGHOME"); ok && v != "" {
		if dir = v; !filepath.IsAbs(dir) {
			return "", WithHint(fmt.Errorf("GNUPGHOME is %q: %w", dir, paddock.Invalid), "set it to an absolute path")
		}
	}
	// Its configuration names programs that the agent runs.
	for _, name := range []string{"gpg-agent.conf", "gpg.conf", "common.conf", "gpgconf.ctl"} {
		if m, inside := inReach(filepath.Join(dir, name), mounts, true); inside {
			return "", WithHint(fmt.Errorf("the configuration of GnuPG in %s is, or leads over, what the sandbox may write: %w", dir, paddock.Denied), "leave out the writable mount %s", m.Source)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), gpgTime)
	defer cancel()
	conf := func(args ...string) (string, error) {
		c := exec.CommandContext(ctx, program, args...)
		c.Dir, c.Env = "/", env
		c.WaitDelay = time.Second // an agent that it starts may keep the other end of the pipe
		out, err := c.Output()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // gpgconf has ended well
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := conf("--launch", "gpg-agent"); err != nil {
		return "", fmt.Errorf("gpgconf --launch gpg-agent: %w: %w", err, paddock.Unavailable)
	}
	text, err := conf("--list-dirs", "agent-extra-socket")
	if err != nil {
		return "", fmt.Errorf("gpgconf --list-dirs agent-extra-socket: %w: %w", err, paddock.Unavailable)
	}
	socket, err := url.PathUnescape(text) // gpgconf writes special characters as %XX
	if err != nil || !filepath.IsAbs(socket) {
		return "", fmt.Errorf("gpgconf says %q, which is no path: %w", text, paddock.Unavailable)
	}
	return socket, nil
}
