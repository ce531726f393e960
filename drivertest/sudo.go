package drivertest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func sudoPromises() []promise {
	return []promise{
		{"sudo runs a command as root, or as another user, where the spec asks for it", sudoRuns},
		{"who calls sudo keeps its streams, its directory and the command's exit", sudoStreams},
		{"sudo gives the environment of the other user, and of the caller's what is asked for", sudoEnvironment},
		{"sudo has no right that a command of root does not have", sudoRights},
		{"what sudo runs ends with who called it: by a signal, a kill or a timeout", sudoEnds},
		{"sudo in a terminal has a terminal", sudoTerminal},
		{"sudo says in words what it cannot do, and what is garbage is refused", sudoRefuses},
		{"without asking there is no sudo, and nobody listens", sudoAbsent},
	}
}

func asking(spec *paddock.Spec) { spec.Sudo = true }

// says runs a script as the sandbox's user and compares its output.
func (b box) says(t *testing.T, script, want string) {
	t.Helper()
	r := b.run(t, paddock.Cmd{Args: []string{"sh", "-c", script}})
	if r.out != want {
		t.Errorf("%s:\n%q, not %q (%+v)", script, r.out, want, r)
	}
}

func sudoRuns(t *testing.T, s *suite) {
	b := s.own(t, asking)
	own := strings.TrimSpace(b.must(t, "id -un"))
	for _, script := range []string{"sudo whoami", "sudo -n -- id -un", "/usr/bin/sudo -u root id -un", "sudo --user=root id -un", "sudo -uroot sudo id -un",
		"sudo -i id -un", "sudo -s id -un", "cd / && sudo -H whoami", "sudo -k whoami", "echo secret | sudo -S whoami", "env -i /usr/bin/sudo whoami"} {
		b.says(t, script, "root\n")
	}
	b.says(t, "sudo -u nobody id -un", "nobody\n")
	b.says(t, "sudo -u "+own+" id -un", own+"\n")
	b.says(t, "sudo -u '#'$(id -u) id -un", own+"\n")
	b.says(t, "sudo sudo -u "+own+" id -un", own+"\n")
	b.says(t, `sudo sh -c 'echo "$(id -u) $(id -g) $(id -G)"'`, "0 0 0\n")
	b.says(t, "sudo -v && sudo -k && sudo -K && sudo -l > /dev/null && sudo -V > /dev/null && sudo -h > /dev/null && echo fine", "fine\n")
}

func sudoStreams(t *testing.T, s *suite) {
	b := s.own(t, asking)
	b.says(t, "printf 'a\\nb\\n' | sudo cat | sudo tail -n 1", "b\n")
	b.says(t, "cd /usr/bin && sudo pwd && sudo -D /usr pwd", "/usr/bin\n/usr\n")
	b.says(t, `cd "$HOME" && [ "$(sudo pwd)" = "$HOME" ] && echo same`, "same\n")
	b.says(t, "sudo sh -c 'echo out; echo err >&2' 2> /dev/null", "out\n")
	b.says(t, "sudo sh -c 'exit 7'; echo $?", "7\n")
	b.says(t, "sudo sh -c 'kill -9 $$'; echo $?", "137\n")
	b.says(t, `sudo printf '%s|' 'a b' '$HOME' "it's" ''; echo`, "a b|$HOME|it's||\n")
	b.says(t, `sudo -s printf '%s,' 'a b' 'c;d'; echo`, "a b,c;d,\n")
	b.says(t, "seq 1 100000 | sudo cat | tail -n 1", "100000\n")
}

func sudoEnvironment(t *testing.T, s *suite) {
	b := s.own(t, asking)
	own := strings.TrimSpace(b.must(t, "id -un"))
	b.says(t, `X=1 sudo sh -c 'echo "[$X] $USER $LOGNAME $SUDO_USER"'`, "[] root root "+own+"\n")
	b.says(t, `X=1 Y=2 sudo --preserve-env=X sh -c 'echo "$X[$Y]"'`, "1[]\n")
	b.says(t, `X=1 sudo -E sh -c 'echo "$X $USER"'`, "1 root\n")
	b.says(t, `sudo X=3 sh -c 'echo "$X"'`, "3\n")
	b.says(t, `PATH=/tmp:$PATH LANG=C.UTF-8; sudo sh -c 'echo "$PATH $LANG"'`, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin C.UTF-8\n")
	b.says(t, `[ "$(sudo -u '#'$(id -u) sh -c 'echo "$HOME $SUDO_UID $SUDO_GID"')" = "$HOME $(id -u) $(id -g)" ] && echo same`, "same\n")
	b.says(t, `sudo sh -c 'echo "$HOME"'; sudo -E sh -c '[ "$HOME" = "$0" ] && echo kept' "$HOME"; sudo -EH sh -c 'echo "$HOME"'`, "/root\nkept\n/root\n")
}

// sudoRights compares with a command that the host runs as root.
func sudoRights(t *testing.T, s *suite) {
	const look = `grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/self/status | tr -s ' \t' ' '
kill -0 1 2> /dev/null && echo signals the agent
{ echo x > /proc/sys/kernel/hostname; } 2> /dev/null && echo names the kernel
mount -t tmpfs none /tmp 2> /dev/null && echo mounts
unshare -U true 2> /dev/null && echo has a namespace
ls /proc/self/fd | tr '\n' ' '
ulimit -n; umask`
	b := s.own(t, asking)
	host := b.run(t, paddock.Cmd{Args: []string{"sh", "-c", look}, User: "root", Dir: "/"})
	sudo := b.run(t, paddock.Cmd{Args: []string{"sudo", "sh", "-c", look}, Dir: "/"})
	if host.out == "" || host.out != sudo.out {
		t.Errorf("root by the host:\n%s\nand by sudo:\n%s%s", host.out, sudo.out, sudo.err)
	}
	b.says(t, `{ sudo rm -f /usr/bin/sudo || sudo mv /usr/bin/sudo /usr/bin/other || sudo sh -c ': > /usr/bin/sudo'; } 2> /dev/null; sudo whoami`, "root\n")
}

func sudoEnds(t *testing.T, s *suite) {
	b := s.own(t, asking)
	gone := func() {
		t.Helper()
		until(t, "nothing of it is left", func() bool {
			return !strings.Contains(b.must(t, "cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' ' '"), "sleep 4321")
		})
	}
	b.says(t, `sudo sleep 4321 & pid=$!; sleep 1; kill -TERM $pid; wait $pid; echo $?`, "143\n")
	gone()
	b.says(t, `sudo sh -c 'trap "echo asked; exit 3" TERM; echo up; while :; do sleep 0.1; done' > "$HOME/said" & pid=$!
until grep -q up "$HOME/said"; do sleep 0.1; done; kill -TERM $pid; wait $pid; echo $?; cat "$HOME/said"`, "3\nup\nasked\n")
	b.says(t, `sudo sh -c 'sleep 4321 & sleep 4321' & pid=$!; sleep 1; kill -KILL $pid; wait $pid; echo $?`, "137\n")
	gone()
	for _, args := range [][]string{{"sudo", "sleep", "4321"}, {"sh", "-c", "sudo sudo sleep 4321; true"}} {
		r, err := b.try(bounded(t), paddock.Cmd{Args: args, Timeout: 3 * time.Second})
		if err != nil || r.exit.Cause != paddock.TimedOut {
			t.Errorf("%q: %+v, %v", args, r, err)
		}
		gone()
	}
}

func sudoTerminal(t *testing.T, s *suite) {
	b := s.own(t, asking)
	r := b.run(t, paddock.Cmd{
		Args:     []string{"sh", "-c", `sudo sh -c 'stty size; tty > /dev/null && echo terminal; : < /dev/tty && echo its own'; stty -a | tr -s ' ;' '\n' | grep -qx echo && echo restored`},
		Terminal: &paddock.Size{Rows: 33, Cols: 77},
	})
	if got := strings.ReplaceAll(r.out, "\r", ""); got != "33 77\nterminal\nits own\nrestored\n" {
		t.Errorf("%q, %+v", got, r.exit)
	}
	var out syncBuffer
	p := b.start(t, paddock.Cmd{Args: []string{"sh", "-c", `sudo sleep 4321; echo ended $?`}, Terminal: &paddock.Size{Rows: 24, Cols: 80}, Output: paddock.Output{Stdout: &out}})
	// Do not use a shell that prints a line when it is ready. dash would handle a signal
	// that arrives before its next fork only after the child has ended.
	until(t, "it is up", func() bool {
		// Count sudo and the command. In the script itself another character follows.
		return strings.Count(b.must(t, "cat /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' ' '"), "sleep 4321 ") == 2
	})
	if _, err := p.Input().Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	wait(t, p)
	if !strings.Contains(out.String(), "ended 130") {
		t.Errorf("%q", out.String())
	}
}

func sudoRefuses(t *testing.T, s *suite) {
	b := s.own(t, asking)
	for script, want := range map[string]string{
		"sudo no-such-program":           "command not found",
		"sudo -u no-such-user id":        "unknown user",
		"sudo -g wheel id":               "cannot be had",
		"sudo -e /etc/hosts":             "cannot be had",
		"sudo":                           "usage",
		"sudo -Y id":                     "invalid option",
		"sudo --frobnicate id":           "unrecognized option",
		"cd /usr && sudo -D /no/such id": "no/such",
		"sudo -i -s id":                  "both",
	} {
		r := b.run(t, paddock.Cmd{Args: []string{"sh", "-c", script}})
		if r.exit.Code == 0 || !strings.Contains(r.out+r.err, want) {
			t.Errorf("%s: %+v", script, r)
		}
	}
	b.says(t, "sudo whoami", "root\n")
}

// sudoMounts checks that any user inside has the caller's rights to the host's files, and
// that protected names are protected from all users.
func sudoMounts(t *testing.T, s *suite) {
	dir := repository(t)
	for name, mode := range map[string]os.FileMode{"src": 0o777, ".git/hooks": 0o777, ".git/config": 0o666, "README": 0o644} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	b := s.own(t, asking, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	})
	b.dir = "/mnt/desk"
	b.must(t, "echo fine > src/own && rm src/own")
	for _, who := range []string{"root", "nobody"} {
		for _, script := range []string{
			"echo x > README", "echo x >> .git/config", "echo x > .git/hooks/pre-commit", "mkdir src/.vscode", "echo x > src/.bashrc",
			"rm -rf .mcp.json .vscode .git README", "mv .git src/git", "chmod 666 README", "chmod 4755 src/main.c", "chown $(id -u) README", "mknod src/null c 1 3",
		} {
			b.attempt(t, "sudo -u "+who+" sh -c '"+script+"'")
		}
	}
	wantTree(t, dir, before)
	b.says(t, "sudo whoami", "root\n")
}

func sudoAbsent(t *testing.T, s *suite) {
	b := s.own(t)
	b.says(t, "grep -c paddock-sudo /proc/net/unix", "0\n")
	r := b.run(t, paddock.Cmd{Args: []string{"sh", "-c", "sudo -n id -u"}})
	if r.exit.Code == 0 || slices.Contains(strings.Fields(r.out), "0") {
		t.Errorf("there is a sudo: %+v", r)
	}
}

func sudoResumes(t *testing.T, s *suite) {
	b := s.own(t, asking)
	b.says(t, "sudo whoami", "root\n")
	if err := b.Pause(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Resume(bounded(t)); err != nil {
		t.Fatal(err)
	}
	b.says(t, "sudo whoami", "root\n")
}

func sudoForks(t *testing.T, s *suite) {
	b := s.own(t, asking)
	id, err := b.Snapshot(bounded(t), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.driver.RemoveSnapshot(bounded(t), id) })
	from := func(spec *paddock.Spec) { spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id} }
	s.own(t, asking, from).says(t, "sudo whoami", "root\n")
	sb, err := s.driver.Create(bounded(t), s.spec(from))
	if err == nil {
		s.removeAfter(t, sb)
	}
	wantKind(t, "a spec without sudo", err, paddock.Invalid)
}
