package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

func (a *App) commandJudge(s *policy.Monitor, p *plan) (monitor.Judge, error) {
	args := slices.Clone(s.Command)
	if rest, ok := strings.CutPrefix(args[0], "~/"); ok {
		args[0] = filepath.Join(p.host.Home, rest)
	}
	if strings.Contains(args[0], "/") {
		args[0] = Absolute(args[0], p.host.Dir)
	}
	name, err := exec.LookPath(args[0])
	if err != nil {
		return nil, WithHint(fmt.Errorf("command: %w: %w", err, paddock.NotFound), "name a program of this machine; --monitor rules needs none")
	}
	args[0] = name
	for _, arg := range args {
		if err := argumentOutOfReach(arg, p); err != nil {
			return nil, fmt.Errorf("command: %w", err)
		}
	}
	env, left := cleanEnvironment(monitor.Environment(a.Lookup, s.Env), p.spec.Mounts)
	if err := interpreterOutOfReach(name, env, p); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	if len(left) > 0 {
		fmt.Fprintf(a.Stderr, "paddock: note: the monitor runs without what the sandbox could rewrite: %s\n", OneLineOf(Join(left), Paragraph))
	}
	return &monitor.Command{Args: args, Env: env, Dir: "/"}, nil
}

// noHome is the home of a judge whose user's is in reach of the sandbox. A variable that is not there would not do: programs look
// the home up by the user then. Nothing can be below it.
const noHome = "/dev/null"

// cleanEnvironment leaves out of an environment what lies where the sandbox can write, so that nothing of the sandbox's is
// executed by name or read as a configuration. It lists what it left out.
func cleanEnvironment(env []string, mounts []paddock.Mount) (clean, left []string) {
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		var keep []string
		for _, entry := range filepath.SplitList(value) {
			if name == "PATH" && !filepath.IsAbs(entry) { // of a directory that is another one for the monitor
				continue
			}
			if filepath.IsAbs(entry) {
				if _, inside := inReach(entry, mounts, true); inside {
					left = append(left, name+"="+entry)
					continue
				}
			}
			keep = append(keep, entry)
		}
		switch {
		case len(keep) == len(filepath.SplitList(value)):
			clean = append(clean, v)
		case len(keep) > 0:
			clean = append(clean, name+"="+strings.Join(keep, string(filepath.ListSeparator)))
		case name == "HOME":
			clean = append(clean, "HOME="+noHome)
		}
	}
	return clean, left
}

// argumentOutOfReach refuses an argument that is a file which the sandbox could rewrite, or could make: also as the value of
// an option.
func argumentOutOfReach(arg string, p *plan) error {
	if err := outOfReach(Absolute(arg, p.host.Dir), p); err != nil {
		return err
	}
	names := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok && filepath.IsAbs(value) {
		names = append(names, value)
		if err := outOfReach(value, p); err != nil {
			return err
		}
	}
	for _, name := range names {
		if _, err := os.Stat(name); !filepath.IsAbs(name) || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if m, inside := inReach(name, p.spec.Mounts, false); inside {
			return reachable(name, m)
		}
	}
	return nil
}

// interpreterOutOfReach looks at the programs that the first line of a script names, as env finds them.
func interpreterOutOfReach(name string, env []string, p *plan) error {
	if in, err := os.Stat(name); err != nil || !in.Mode().IsRegular() {
		return nil // what is none fails when it runs
	}
	f, err := os.Open(name)
	if err != nil {
		return nil // a program that may only be executed, and no script
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, firstLine)).ReadString('\n')
	text, script := strings.CutPrefix(line, "#!")
	if err != nil && !errors.Is(err, io.EOF) || !script {
		return nil // what cannot be read fails when it runs
	}
	for _, word := range strings.Fields(text) {
		if !filepath.IsAbs(word) {
			word = lookIn(env, word)
		}
		if word == "" {
			continue
		}
		if err := outOfReach(word, p); err != nil {
			return err
		}
	}
	return nil
}

// firstLine bounds what is read of a script: the kernel reads less.
const firstLine = 4096

// lookIn returns the program with a name in the PATH of an environment, or nothing.
func lookIn(env []string, name string) string {
	if strings.ContainsRune(name, filepath.Separator) {
		return ""
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if in, err := os.Stat(filepath.Join(dir, name)); err == nil && in.Mode().IsRegular() && in.Mode()&0o111 != 0 {
				return filepath.Join(dir, name)
			}
		}
	}
	return ""
}

// outOfReach refuses a file that the sandbox could rewrite: then it would judge itself. What is no file is out of reach.
func outOfReach(path string, p *plan) error {
	in, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // an argument that names no file
	}
	if m, inside := inReach(path, p.spec.Mounts, in.Mode().IsRegular()); inside {
		return reachable(path, m)
	}
	return nil
}

func reachable(path string, m paddock.Mount) error {
	return WithHint(fmt.Errorf("%s is in %s, where the sandbox could rewrite it: %w", path, m.Source, paddock.Denied), "keep the monitor outside of what the sandbox may write")
}

// inReach reports whether a path, or a link on the way to it, is below a writable mount, so that the sandbox could say what is
// there. With itself, a path that is the mount counts too.
func inReach(path string, mounts []paddock.Mount, itself bool) (paddock.Mount, bool) {
	names := hops(path)
	for i, name := range names {
		if m, inside := writable(filepath.Dir(name), mounts); inside {
			return m, true
		}
		if i == len(names)-1 && itself {
			return writable(name, mounts)
		}
	}
	return paddock.Mount{}, false
}

// maxLinks bounds the links that are followed, as the kernel does.
const maxLinks = 40

// hops returns the name of everything that the way to a path leads over: each directory, each link, and what is at its end. None
// of them is reached over a link, so the directory of each is where it actually lies.
func hops(path string) (names []string) {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest, links := root, strings.Split(filepath.ToSlash(path[len(filepath.VolumeName(path)):]), "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		name := filepath.Join(at, part)
		names = append(names, name)
		to, err := os.Readlink(name)
		if err != nil {
			at = name
			continue
		}
		if links++; links > maxLinks {
			return names
		}
		if filepath.IsAbs(to) {
			at, to = filepath.VolumeName(to)+string(filepath.Separator), to[len(filepath.VolumeName(to)):]
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	if len(names) == 0 {
		names = append(names, root)
	}
	return names
}

// notFromInside refuses a policy file that lies where the sandbox may write and names a program of this machine, or keys of
// the user: it may have come with somebody else's repository.
func notFromInside(p *plan) error {
	m := p.file.Monitor
	if len(m.Command) == 0 && len(m.Env) == 0 && m.Key == "" && m.Model == nil {
		return nil
	}
	name := Absolute(p.file.Name, p.host.Dir)
	actual, err := filepath.EvalSymlinks(name)
	if err != nil {
		actual = name
	}
	for _, name := range []string{name, actual} {
		mount, inside := writable(filepath.Dir(name), p.spec.Mounts)
		if !inside {
			continue
		}
		return WithHint(fmt.Errorf("%s: monitor: it is in %s, and a file there starts no program of this machine and gets no key: %w", p.file.Where("monitor"), mount.Source, paddock.Denied),
			"keep the policy outside of what the sandbox may write, or name the monitor with --monitor")
	}
	return nil
}
