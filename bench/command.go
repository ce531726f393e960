//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

const stranger = 61234 // a number that no user has

// compareCommands times `true` in each sandbox, as the caller and, where the
// caller is root, as an unprivileged user.
func compareCommands(ctx context.Context, o options) ([]row, error) {
	// A copy that every user can reach.
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	program := filepath.Join(top, "paddock")
	data, err := os.ReadFile(o.paddock)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(top, 0o755); err != nil {
		return nil, err
	}

	users := []struct {
		name string
		uid  int
	}{{"as a user", -1}}
	if os.Geteuid() == 0 {
		users[0].name = "as root"
		users = append(users, struct {
			name string
			uid  int
		}{"as a user", stranger})
	}
	var all []contender
	defer func() {
		for _, u := range users { // runsc leaves its network namespace mounted
			_ = syscall.Unmount(filepath.Join(top, fmt.Sprintf("home-%d", u.uid), "runsc", "null-netns"), syscall.MNT_DETACH)
		}
	}()
	for _, u := range users {
		home := filepath.Join(top, fmt.Sprintf("home-%d", u.uid))
		if err := os.Mkdir(home, 0o700); err != nil {
			return nil, err
		}
		if u.uid >= 0 {
			if err := os.Chown(home, u.uid, u.uid); err != nil {
				return nil, err
			}
		}
		peers, err := contenders(program, o.peers, home, u.uid)
		if err != nil {
			return nil, err
		}
		for _, c := range peers {
			c.name += " " + u.name
			c.uid, c.dir = u.uid, home
			if c.beside == "" {
				c.beside = paddock.Jail
			}
			c.env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LANG=C.UTF-8"}
			all = append(all, c)
		}
	}
	if last := len(all) - 1; last >= 0 {
		c, err := withPython(ctx, o, top, program, all[last])
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	took, failed, err := interleave(ctx, o.rounds, all)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, u := range users {
		for _, c := range all {
			if c.uid != u.uid {
				continue
			}
			s, own := took[c.name], took[ownRun(c.beside)+" "+u.name]
			r := row{what: "`" + c.name[:len(c.name)-len(u.name)-1] + "` " + u.name, p50: ms(s.p50()), p99: ms(s.p99()), runs: len(s)}
			if why := failed[c.name]; why != nil {
				r = row{what: r.what + ": fails here: " + strings.Join(strings.Fields(why.Error()), " ")}
			} else if len(own) > 0 {
				r.ratio = fmt.Sprintf("%.2f", float64(s.p50())/float64(own.p50()))
				if c.beside != paddock.Jail {
					r.ratio += " (" + string(c.beside) + ")"
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// ownRun is the command of ours that others are beside.
func ownRun(t paddock.Tier) string { return fmt.Sprintf("paddock run --tier %s -- true", t) }

// withPython sets Python up for the user of another contender.
func withPython(ctx context.Context, o options, top, program string, of contender) (contender, error) {
	data, err := os.ReadFile(o.python)
	if err != nil {
		return of, fmt.Errorf("make python fetches it: %w", err)
	}
	file := filepath.Join(top, "python.tgz")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return of, err
	}
	setup := of
	setup.name, setup.args = "paddock sim setup", []string{program, "sim", "setup", "--python", file}
	if _, err := setup.run(ctx); err != nil {
		return of, err
	}
	const name = "paddock run --tier sim -- python3 -c 'print(1+1)'"
	of.name = name + of.name[strings.LastIndex(of.name, " as "):]
	of.args, of.every = []string{program, "run", "--tier", "sim", "--", "python3 -c 'print(1+1)'"}, 5
	return of, nil
}

// contenders are the same work in each sandbox.
func contenders(program, peers, home string, uid int) ([]contender, error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, fmt.Errorf("peers.sh installs it: %w", err)
	}
	crun, err := crunRun(home, uid)
	if err != nil {
		return nil, err
	}
	return []contender{
		{name: "true", args: []string{"/bin/true"}, every: 1},
		{name: ownRun(paddock.Jail), args: []string{program, "run", "--tier", "jail", "--", "true"}, every: 1},
		{name: "bwrap … true", args: append(bubblewrap(bwrap), "true"), every: 1},
		crun,
		{name: ownRun(paddock.GVisor), args: []string{program, "run", "--tier", "gvisor", "--", "true"}, every: 2, beside: paddock.GVisor},
		runscDo(filepath.Join(peers, "runsc"), home, uid),
		{name: "srt true", args: []string{
			filepath.Join(peers, "node"), filepath.Join(peers, "srt.js"), "--settings", filepath.Join(peers, "srt.json"), "true",
		}, every: 5},
		{name: "paddock run --tier sim -- 'echo hi'", args: []string{program, "run", "--tier", "sim", "--", "echo hi"}, every: 1},
		{name: "bash -c 'echo hi'", args: []string{"/bin/bash", "-c", "echo hi"}, every: 1},
		{name: "just-bash -c 'echo hi'", args: []string{
			filepath.Join(peers, "node"), filepath.Join(peers, "node_modules", ".bin", "just-bash"), "-c", "echo hi",
		}, every: 5},
	}, nil
}

// bubblewrap gives the arguments that come closest to the jail: the same
// namespaces, the system read-only, private /tmp, /dev, /proc and home, no
// capabilities. It has no limits, no Landlock, no system-call filter, no agent
// inside, no protected names and no account of what happened.
func bubblewrap(program string) []string {
	args := []string{
		program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home", "--tmpfs", "/root", "--tmpfs", "/run",
		"--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/home", "--chdir", "/home",
		"--hostname", "paddock",
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32"} {
		target, err := os.Readlink(dir)
		if err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return append(args, "--")
}
