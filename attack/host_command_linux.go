package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// noCommand returns the result of rows about the command line for a tier that it does not
// offer.
func (x *trial) noCommand() []protocol.Try {
	if x.h.Command {
		return nil
	}
	return []protocol.Try{{Name: "command line", Outcome: protocol.Absent, Detail: "the command line does not offer this tier"}}
}

// paddock returns `paddock run` on this tier, to which a command is appended. It accepts
// what this host cannot enforce, and keeps no caches of build tools, which are new files in
// the caller's home.
func (x *trial) paddock(dir string, args ...string) *exec.Cmd {
	all := []string{"run", "--no-cache", "--tier", string(x.h.Tier)}
	for _, f := range x.info.Controls {
		if f.Strength != paddock.Full {
			all = append(all, "--allow-missing", string(f.Control))
		}
	}
	cmd := exec.CommandContext(x.t.Context(), x.w.brief.Place+"/bin/paddock", append(all, args...)...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// escapeSequences is P27. The output on a terminal counts, so the command line gets one.
func escapeSequences(x *trial) []protocol.Try {
	if t := x.noCommand(); t != nil {
		return t
	}
	brief := protocol.BriefEnv + "={}"
	shown := func(args ...string) ([]byte, error) {
		inner := x.paddock(x.w.brief.Work, args...)
		cmd := exec.CommandContext(x.t.Context(), x.w.brief.Self, append([]string{"terminal", "-show"}, inner.Args...)...)
		cmd.Dir, cmd.Env = inner.Dir, inner.Env
		return cmd.Output()
	}
	dangerous := func(out []byte) bool {
		return bytes.ContainsAny(out, "\x1b\x07") || bytes.Contains(out, []byte("\u009b"))
	}
	var tries []protocol.Try
	run := []string{"--env", brief, "--read", x.w.brief.Place + "/bin", "--", x.w.brief.Self, "P27", "print"}
	if x.h.Tier == paddock.Sim {
		run = []string{"--", `printf 'plain text \e]52;c;b3duZWQ=\a \e[31m \u009b31m\n'`}
	}
	raw, err := shown(run...)
	if err != nil {
		return []protocol.Try{broken("plain", fmt.Errorf("%w: %s", err, raw))}
	}
	if !bytes.Contains(raw, []byte("plain text")) {
		return []protocol.Try{broken("plain", fmt.Errorf("no output: %q", raw))}
	}
	if dangerous(raw) {
		tries = append(tries, reached("plain: output", "sequences reach the terminal"))
	} else {
		tries = append(tries, protocol.Try{Name: "plain: output", Outcome: protocol.Denied, Errno: "stripped"})
	}
	clean, err := shown(append([]string{"--strip-escapes"}, run...)...)
	switch {
	case err != nil:
		tries = append(tries, broken("stripped", fmt.Errorf("%w: %s", err, clean)))
	case !bytes.Contains(clean, []byte("plain text")):
		tries = append(tries, broken("stripped", fmt.Errorf("the text is gone too: %q", clean)))
	case dangerous(clean):
		tries = append(tries, reached("stripped: output", "sequences reach the terminal: %q", clean))
	default:
		tries = append(tries, protocol.Try{Name: "stripped: output", Outcome: protocol.Denied, Errno: "stripped"})
	}
	// Paddock's own messages about names that the guest chose.
	words := map[string][]string{
		"our words: a command's name": {"--", "\x1b]0;owned\x07\u009b31m"},
		"our words: a refused name":   {"--workspace", x.w.brief.Work, "--", "/bin/sh", "-c", "mkdir -p .vscode/'\x1b]0;owned\x07' 2>/dev/null; exit 3"},
	}
	if x.h.Tier == paddock.Sim {
		// The shell reports a missing command.
		words = map[string][]string{
			"our words: a limit":        {"--", "f() { f \"$1\"; }; f '\x1b]0;owned\x07\u009b31m'"},
			"our words: a refused host": {"--", "curl -s 'http://x\x1b]0;owned\x07/'; curl -s http://owned.\u009b31m/; exit 3"},
			"our words: a user":         {"--user", "\x1b]0;owned\x07\u009b31m", "--", "id"},
		}
	}
	for name, args := range words {
		out, err := shown(args...)
		var exit *exec.ExitError
		switch {
		case err == nil:
			tries = append(tries, broken(name, fmt.Errorf("want a failure, got %q", out)))
		case !errors.As(err, &exit):
			tries = append(tries, broken(name, fmt.Errorf("want a failure of its own: %w: %q", err, out)))
		case dangerous(out):
			tries = append(tries, reached(name, "sequences reach the terminal: %q", out))
		default:
			tries = append(tries, protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "escaped", Detail: "shown as text"})
		}
	}
	return tries
}

// didRun is the output of the command of P28.
const didRun = "it did run"

// brokenPolicies is P28.
func brokenPolicies(x *trial) []protocol.Try {
	if t := x.noCommand(); t != nil {
		return t
	}
	work, ran := x.w.brief.Work, x.w.brief.Work+"/ran"
	run := func(policy string) (int, string) {
		cmd := x.paddock(work, "--workspace", work, "--policy", policy, "--", "/bin/sh", "-c", "echo ran > ran; echo "+didRun)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode(), string(out)
		}
		if err != nil {
			return -1, err.Error()
		}
		return 0, string(out)
	}
	good := filepath.Join(x.w.brief.State, "good.yaml")
	if err := os.WriteFile(good, []byte("version: 1\n"), 0o644); err != nil {
		return []protocol.Try{broken("prepare", err)}
	}
	if code, out := run(good); code != 0 || !strings.Contains(out, didRun) {
		return []protocol.Try{broken("a good policy", fmt.Errorf("exit %d: %s", code, out))}
	}
	// On a tier whose workspace is an overlay, it does not exist.
	if err := os.Remove(ran); err != nil && x.h.Tier != paddock.Sim {
		return []protocol.Try{broken("a good policy", err)}
	}
	var tries []protocol.Try
	for name, content := range map[string]string{
		"unknown key":         "version: 1\nfilez:\n  deny_read: [/etc/hosts]\n",
		"unknown key below":   "version: 1\nfiles:\n  denyread: [/etc/hosts]\n",
		"key twice":           "version: 1\nfiles:\n  deny_read: [/etc/hosts]\nfiles:\n  deny_read: []\n",
		"no version":          "files:\n  deny_read: [/etc/hosts]\n",
		"wrong version":       "version: 99\n",
		"wrong type":          "version: 1\nfiles: 7\n",
		"not YAML":            "version: 1\n\tfiles: [\n",
		"empty":               "",
		"two documents":       "version: 1\n---\nversion: 1\n",
		"NUL":                 "version: 1\nfiles:\n  deny_read: [\"/etc\\0/hosts\"]\n",
		"relative path":       "version: 1\nfiles:\n  deny_read: [\"../x\\0\"]\n",
		"network mode":        "version: 1\nnetwork:\n  mode: everything\n",
		"negative limit":      "version: 1\nlimits:\n  memory: -1\n",
		"alias bomb":          "version: 1\na: &a [1,1]\nb: &b [*a,*a]\nfiles: *b\n",
		"larger than allowed": "version: 1\n#" + strings.Repeat("x", 8<<20) + "\n",
	} {
		p := filepath.Join(x.w.brief.State, "bad.yaml")
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			return append(tries, broken(name, err))
		}
		tries = append(tries, refusal(name, ran, p, run))
	}
	tries = append(tries, refusal("missing", ran, x.w.brief.State+"/absent.yaml", run))
	tries = append(tries, refusal("a directory", ran, x.w.brief.State, run))
	tries = append(tries, refusal("endless", ran, "/dev/zero", run))
	return tries
}

// refusal runs with a policy that must be refused.
func refusal(name, ran, policy string, run func(string) (int, string)) protocol.Try {
	code, out := run(policy)
	if _, err := os.Lstat(ran); err == nil || strings.Contains(out, didRun) {
		_ = os.Remove(ran)
		return reached(name, "the command ran, exit %d", code)
	}
	if code != 125 || strings.TrimSpace(out) == "" {
		return reached(name, "exit %d in place of 125, with the words %q", code, out)
	}
	line, _, _ := strings.Cut(out, "\n")
	return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "refused", Detail: line}
}

// plantedHelpers is P29: programs named like helpers, found first in PATH and in the
// working directory.
func plantedHelpers(x *trial) []protocol.Try {
	if t := x.noCommand(); t != nil {
		return t
	}
	work := x.w.brief.Work
	proof := filepath.Join(x.w.brief.State, "proof")
	for _, n := range []string{"bwrap", "newuidmap", "newgidmap", "socat", "rg", "git", "sh", "bash", "mount", "umount", "ip", "iptables", "nft", "fusermount3", "unshare", "setpriv", "nsenter", "runc", "runsc", "crun", "qemu-system-x86_64", "paddock", "paddock-guest", "slirp4netns", "pasta", "dockerd", "ldd", "id", "getent", "systemctl", "systemd-run", "true"} {
		script := fmt.Sprintf("#!/bin/sh\necho %s >> %s\nexit 0\n", n, proof)
		if err := os.WriteFile(filepath.Join(work, n), []byte(script), 0o755); err != nil {
			return []protocol.Try{broken("plant", err)}
		}
	}
	// The trap works.
	if err := exec.CommandContext(x.t.Context(), work+"/bwrap").Run(); err != nil {
		return []protocol.Try{broken("plant", err)}
	}
	if err := os.Remove(proof); err != nil {
		return []protocol.Try{broken("plant", err)}
	}
	var tries []protocol.Try
	for name, args := range map[string][]string{
		"run":           {"--workspace", work, "--", x.w.brief.Work + "/main-check"},
		"absolute name": {"--", "/bin/true"},
		"name in PATH":  {"--", "true"},
	} {
		if name == "run" {
			if err := os.WriteFile(work+"/main-check", []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
				return append(tries, broken(name, err))
			}
		}
		cmd := x.paddock(work, args...)
		cmd.Env = append(cmd.Env, "PATH=.:"+work+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if data, e := os.ReadFile(proof); e == nil {
			tries = append(tries, reached(name, "ran %s", strings.Join(strings.Fields(string(data)), " ")))
			_ = os.Remove(proof)
			continue
		}
		if err != nil {
			tries = append(tries, broken(name, fmt.Errorf("%w: %s", err, out)))
			continue
		}
		tries = append(tries, protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "ignored", Detail: "no planted program ran"})
	}
	return tries
}
