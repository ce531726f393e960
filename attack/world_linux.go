package attack

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// A world is the small host of one case: a home with secrets, a workspace in it, and a
// canary process. It lies below one directory that is not a temporary one, because those
// are private in a sandbox anyway.
type world struct {
	brief  protocol.Brief
	root   bool
	tokens map[string]string // what each token stands for
	outer  map[string]string // state of every file outside the workspace
	work   map[string]string // state of every file in the workspace
	knobs  map[string]string
	mounts string

	secret   string   // of the network policy, in network rows
	witness  *witness // of the traffic, in network rows
	services []string // the host's ports before the sandbox

	agents *keyAgents // in P37

	canary  *exec.Cmd
	ask     io.WriteCloser
	answer  *bufio.Reader
	leaked  []*os.File
	planted []string // files outside place
}

func random() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// newWorld makes the host of one case below place. The caller closes it.
func newWorld(place, name string, root bool) (*world, error) {
	w := &world{root: root, tokens: map[string]string{}}
	marker := filepath.Base(place) + "-" + strings.ToLower(name)
	dir := filepath.Join(place, strings.ToLower(name))
	home := filepath.Join(dir, "home")
	work := filepath.Join(home, "project")
	w.brief = protocol.Brief{
		Marker: marker, Place: place, Home: home, Work: work,
		Other: filepath.Join(place, "other", "secret.txt"), State: filepath.Join(dir, "state"), Self: filepath.Join(place, "bin", "attacker"),
		Secret:      home + "/.ssh/id_ed25519",
		DenyReadDir: work + "/private", DenyReadFile: work + "/token.txt", DenyReadLate: work + "/late.secret",
		DenyWriteDir: work + "/locked", DenyWrite: work + "/locked.txt", DenyDeep: work + "/tree/inner/locked",
	}
	if err := errors.Join(w.files(), w.repositories(), w.links()); err != nil {
		return w, err
	}
	for _, d := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if err := w.outside(filepath.Join(d, marker+"-canary"), w.token("canary in "+d)); err != nil {
			return w, err
		}
	}
	if err := os.MkdirAll(w.brief.State, 0o700); err != nil {
		return w, err
	}
	if err := w.leak(); err != nil {
		return w, err
	}
	return w, nil
}

// token makes a secret and records what it stands for.
func (w *world) token(what string) string {
	t := "canary" + random()
	w.tokens[t] = what
	return t
}

func (w *world) outside(name, content string) error {
	w.planted = append(w.planted, name)
	return os.WriteFile(name, []byte(content+"\n"), 0o644)
}

func writeFile(name, content string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(content), mode)
}

// files makes the files of the home and the workspace.
func (w *world) files() error {
	b := w.brief
	var errs []error
	for name, content := range map[string]string{
		b.Home + "/.bashrc":                     "# start\n",
		b.Home + "/.profile":                    "# start\n",
		b.Home + "/.gitconfig":                  "[user]\n\tname = Nobody\n\temail = " + w.token("the git configuration of the home") + "@x\n",
		b.Home + "/.config/autostart/x.desktop": "[Desktop Entry]\n",
		b.Secret:                                w.token("the key in the home") + "\n",
		b.Home + "/.ssh/authorized_keys":        "ssh-ed25519 nobody\n",
		b.Home + "/.aws/credentials":            w.token("the credentials in the home") + "\n",
		b.Home + "/outside.txt":                 "outside\n",
		b.Home + "/notes/diary.txt":             w.token("a file of another project") + "\n",
		b.Work + "/README.md":                   "hello\n",
		b.Work + "/main.py":                     "print('hello')\n",
		b.Work + "/package.json":                "{}\n",
		b.Work + "/Makefile":                    "all:\n",
		b.Work + "/scripts/build.sh":            "true\n",
		b.Work + "/mnt/.keep":                   "",
		b.DenyReadDir + "/secret.txt":           w.token("the denied directory") + "\n",
		b.DenyReadFile:                          w.token("the denied file") + "\n",
		b.DenyWriteDir + "/file.txt":            "locked\n",
		b.DenyWrite:                             "locked\n",
		b.DenyDeep + "/file.txt":                "locked\n",
	} {
		errs = append(errs, writeFile(name, content, 0o644))
	}
	for _, name := range []string{"/.local/bin/tool", "/project/venv/bin/python", "/project/node_modules/.bin/tool"} {
		errs = append(errs, writeFile(b.Home+name, "#!/bin/sh\ntrue\n", 0o755))
	}
	errs = append(errs, os.Chmod(b.Home+"/.ssh", 0o700), os.Chmod(b.Secret, 0o600))
	return errors.Join(errs...)
}

// repositories makes one at the top, one below, one far below, a submodule and a worktree.
func (w *world) repositories() error {
	var errs []error
	put := func(name, content string) {
		errs = append(errs, writeFile(filepath.Join(w.brief.Work, name), content, 0o644))
	}
	for _, repo := range []string{".git", "nested/.git", "a/b/c/d/.git", ".git/modules/sub"} {
		put(repo+"/HEAD", "ref: refs/heads/main\n")
		put(repo+"/config", "[core]\n\trepositoryformatversion = 0\n\tattributesFile = /dev/null\n[extensions]\n\tworktreeConfig = true\n")
		put(repo+"/hooks/post-checkout", "#!/bin/sh\ntrue\n")
		put(repo+"/info/exclude", "")
		put(repo+"/info/attributes", "")
		for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
			errs = append(errs, os.MkdirAll(filepath.Join(w.brief.Work, repo, d), 0o755))
		}
	}
	put(".git/worktrees/wt/HEAD", "ref: refs/heads/main\n")
	put(".git/worktrees/wt/commondir", "../..\n")
	put(".git/worktrees/wt/gitdir", w.brief.Work+"/wt/.git\n")
	put("wt/.git", "gitdir: "+w.brief.Work+"/.git/worktrees/wt\n")
	for _, name := range []string{".git/hooks/post-checkout", ".git/config", "wt/.git", "locked.txt", "locked/file.txt"} {
		errs = append(errs, syscall.Setxattr(filepath.Join(w.brief.Work, name), protocol.Kept, []byte("x"), 0))
	}
	return errors.Join(errs...)
}

func (w *world) links() error {
	var errs []error
	for name, to := range map[string]string{
		"link-bashrc": w.brief.Home + "/.bashrc", "link-up": "../.profile", "link-home": w.brief.Home,
		"link-etc": "/etc", "link-root": "/", "link-dangling": w.brief.Home + "/" + w.brief.Marker + "-dangling",
	} {
		errs = append(errs, os.Symlink(to, filepath.Join(w.brief.Work, name)))
	}
	return errors.Join(errs...)
}

// leak leaves descriptors open without close-on-exec, as a careless caller might.
func (w *world) leak() error {
	for _, name := range []string{w.brief.Secret, w.brief.Home + "/notes", w.brief.Home + "/.aws/credentials"} {
		fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
		if err != nil {
			return err
		}
		w.leaked = append(w.leaked, os.NewFile(uintptr(fd), name))
		// A high number, so that no descriptor of a program replaces it, and one that no
		// other world of this process has.
		high, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD, 300)
		if errno != 0 {
			return errno
		}
		w.leaked = append(w.leaked, os.NewFile(high, name))
		w.brief.FDs = append(w.brief.FDs, int(high))
	}
	return nil
}

// start starts the canary process and takes stock.
func (w *world) start() error {
	token := w.token("the canary process")
	w.canary = exec.Command(w.brief.Self, "canary", w.brief.Marker)
	w.canary.Env = append(os.Environ(), "PADDOCK_CANARY_TOKEN="+token)
	w.canary.Stderr = os.Stderr
	in, err := w.canary.StdinPipe()
	if err != nil {
		return err
	}
	out, err := w.canary.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.canary.Start(); err != nil {
		return fmt.Errorf("start canary: %w", err)
	}
	w.ask, w.answer = in, bufio.NewReader(out)
	order := map[string]string{
		"Marker": w.brief.Marker, "Token": token, "Secret": w.brief.Secret,
		"Stream": w.brief.Home + "/run.sock", "Datagram": w.brief.Home + "/log.sock", "InWork": w.brief.Canary.InWork,
	}
	if err := json.NewEncoder(w.ask).Encode(order); err != nil {
		return err
	}
	line, err := w.answer.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	if err := json.Unmarshal(line, &w.brief.Canary); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	w.brief.Handle, w.brief.HType = w.brief.Canary.Handle, w.brief.Canary.HType
	return w.stock()
}

// stock records the present state.
func (w *world) stock() error {
	var err error
	// What a mount of the home could not hide otherwise, Paddock makes by itself: the stores of agents, images and volumes.
	for _, name := range []string{"paddock/agents", "paddock-images", "paddock-volumes"} {
		if err := os.MkdirAll(filepath.Join(w.brief.Home, ".local", "share", name), 0o700); err != nil {
			return err
		}
	}
	if w.outer, err = w.walk(w.brief.Home, w.brief.Work); err != nil {
		return err
	}
	if w.work, err = w.walk(w.brief.Work, ""); err != nil {
		return err
	}
	w.knobs = knobs()
	w.mounts, err = mounts()
	return err
}

func mounts() (string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	return string(data), err
}

// knobs reads kernel settings that nothing may change.
func knobs() map[string]string {
	out := map[string]string{}
	for _, n := range []string{"kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/domainname", "kernel/sysrq", "kernel/panic", "kernel/randomize_va_space", "fs/suid_dumpable", "fs/protected_symlinks", "net/ipv4/ip_forward", "user/max_user_namespaces", "vm/overcommit_memory"} {
		data, err := os.ReadFile("/proc/sys/" + n)
		if err == nil {
			out[n] = string(data)
		}
	}
	return out
}

// walk returns the state of every file below dir, but not below except.
func (w *world) walk(dir, except string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == except && except != "" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[p] = fileState(p, info)
		return nil
	})
	return out, err
}

// times precedes a file's times in its state.
const times = " of "

// fileState describes what must not change of a file.
func fileState(p string, info fs.FileInfo) string {
	st, _ := info.Sys().(*syscall.Stat_t)
	s := fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
	switch {
	case info.Mode().IsRegular():
		data, err := os.ReadFile(p)
		if err != nil {
			return s + " unreadable"
		}
		sum := sha256.Sum256(data)
		return s + " " + hex.EncodeToString(sum[:8]) + attributes(p) + times + info.ModTime().String()
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(p)
		return s + " -> " + to
	}
	return s
}

// attributes names the extended attributes of a file.
func attributes(p string) string {
	buf := make([]byte, 4096)
	n, err := syscall.Listxattr(p, buf)
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf(" %q", buf[:n])
}

// look asks the canary what happened to it.
func (w *world) look() []string {
	if _, err := io.WriteString(w.ask, "\n"); err != nil {
		return []string{"the canary process is gone: " + err.Error()}
	}
	line, err := w.answer.ReadBytes('\n')
	if err != nil {
		return []string{"the canary process is gone: " + err.Error()}
	}
	var seen []string
	if err := json.Unmarshal(line, &seen); err != nil {
		return []string{"the canary process does not answer: " + err.Error()}
	}
	return seen
}

// leaks finds tokens in the output of the sandbox.
func (w *world) leaks(out []byte) []string {
	var found []string
	for token, what := range w.tokens {
		if bytes.Contains(out, []byte(token)) {
			found = append(found, "the output holds "+what)
		}
	}
	return found
}

// close ends the canary and removes files outside place.
func (w *world) close() error {
	var errs []error
	if w.witness != nil {
		errs = append(errs, w.witness.conn.Close())
	}
	if w.canary != nil && w.canary.Process != nil {
		if w.ask != nil {
			errs = append(errs, w.ask.Close())
		}
		errs = append(errs, w.canary.Wait())
	}
	errs = append(errs, w.agents.close())
	for _, f := range w.leaked {
		errs = append(errs, f.Close())
	}
	for _, p := range w.planted {
		errs = append(errs, os.RemoveAll(p))
	}
	for _, p := range w.strays() {
		errs = append(errs, os.RemoveAll(p))
	}
	return errors.Join(errs...)
}
