package attack

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// evidence returns what the host finds after the removal of the sandbox. Any of it is an
// escape, whatever the attacker reports.
func (w *world) evidence(out []byte) []string {
	found := w.leaks(out)
	found = append(found, w.look()...)
	found = append(found, w.agents.asked()...)
	found = append(found, w.outerChanges()...)
	found = append(found, w.workChanges()...)
	for _, p := range w.strays() {
		found = append(found, "there is a file on the host: "+p)
	}
	for name, was := range w.knobs {
		if now, err := os.ReadFile("/proc/sys/" + name); err == nil && string(now) != was {
			found = append(found, fmt.Sprintf("%s was changed from %q to %q", name, was, now))
		}
	}
	if typed := typedInput(); typed != "" {
		found = append(found, fmt.Sprintf("somebody typed %q into the caller's terminal", typed))
	}
	return found
}

// leftovers returns what a removed sandbox left behind.
func (w *world) leftovers() []string {
	var found []string
	for _, p := range w.processes() {
		found = append(found, "a process is left: "+p)
	}
	if now, err := mounts(); err == nil && now != w.mounts {
		found = append(found, "mounts of the host changed")
	}
	return found
}

// compare returns the differences between two states of a tree.
func compare(was, now map[string]string) []string {
	var found []string
	for p, s := range was {
		if n, ok := now[p]; !ok {
			found = append(found, p+" is gone")
		} else if n != s {
			found = append(found, fmt.Sprintf("%s changed from %q to %q", p, s, n))
		}
	}
	for p := range now {
		if _, ok := was[p]; !ok {
			found = append(found, p+" is new")
		}
	}
	slices.Sort(found)
	return found
}

func (w *world) outerChanges() []string {
	now, err := w.walk(w.brief.Home, w.brief.Work)
	if err != nil {
		return []string{"the home cannot be read: " + err.Error()}
	}
	return compare(w.outer, now)
}

// workChanges returns forbidden changes of the workspace: protected names, denied paths,
// set-id bits, devices. Other changes are its purpose.
func (w *world) workChanges() []string {
	now, err := w.walk(w.brief.Work, "")
	if err != nil {
		return []string{"the workspace cannot be read: " + err.Error()}
	}
	pick := func(m map[string]string, is func(string) bool, whole bool) map[string]string {
		out := map[string]string{}
		for p, s := range m {
			if is(p) {
				if !whole {
					s, _, _ = strings.Cut(s, times)
				}
				if strings.HasSuffix(p, "/wt/.git") {
					s = s[strings.IndexByte(s, ' '):] // git reads it, whatever its mode
				}
				out[p] = s
			}
		}
		return out
	}
	found := compare(pick(w.work, w.denied, true), pick(now, w.denied, true))
	was, is := unmoved(pick(w.work, w.trusted, false), pick(now, w.trusted, false))
	maps.DeleteFunc(is, func(p, _ string) bool {
		_, old := w.work[p]
		return !old && ofNewRepository(p)
	})
	found = append(found, compare(was, is)...)
	for p := range now {
		info, err := os.Lstat(p)
		if err != nil || p == w.brief.SUID {
			continue
		}
		if _, there := w.work[p]; there && w.brief.Prepared != "" && filepath.Dir(p) == w.brief.Prepared && w.work[p] == now[p] {
			continue // as the host made it
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			found = append(found, fmt.Sprintf("%s has mode %v", p, info.Mode()))
		}
		if info.Mode()&fs.ModeDevice != 0 {
			found = append(found, p+" is a device")
		}
		buf := make([]byte, 64)
		if n, err := syscall.Getxattr(p, "security.capability", buf); err == nil && n > 0 {
			found = append(found, p+" has file capabilities")
		}
	}
	return found
}

// ofNewRepository reports whether a file is one that git makes in each new repository, and that cannot run anything.
func ofNewRepository(p string) bool {
	info, err := os.Lstat(p)
	if err != nil {
		return false
	}
	base := filepath.Base(p)
	switch {
	case info.IsDir():
		return base == "hooks"
	case !info.Mode().IsRegular():
		return false
	case strings.HasSuffix(base, ".sample"):
		return filepath.Base(filepath.Dir(p)) == "hooks"
	case base != "config":
		return false
	}
	data, err := os.ReadFile(p)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if !slices.Contains([]string{"[core]", "repositoryformatversion = 0", "filemode = true", "bare = false", "bare = true", "logallrefupdates = true"}, strings.TrimSpace(line)) {
			return false
		}
	}
	return true
}

// unmoved leaves out equal content under another name: a directory with a repository in it
// may be moved, if nothing in the repository changes.
func unmoved(was, now map[string]string) (map[string]string, map[string]string) {
	tail := func(p string) string { return p[strings.LastIndex(p, "/.git/")+1:] }
	was, now = maps.Clone(was), maps.Clone(now)
	for from, s := range was {
		if _, still := now[from]; still {
			continue
		}
		for to, n := range now {
			if _, before := was[to]; !before && n == s && tail(to) == tail(from) {
				delete(was, from)
				delete(now, to)
				break
			}
		}
	}
	return was, now
}

// denied reports whether the policy denies p in the workspace.
func (w *world) denied(p string) bool {
	for _, d := range []string{w.brief.DenyReadDir, w.brief.DenyReadFile, w.brief.DenyWriteDir, w.brief.DenyWrite, w.brief.DenyDeep} {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}

// trusted reports whether the host trusts p, so that its change is an escape. It states the
// claim independently of the code that enforces it.
func (w *world) trusted(p string) bool {
	rel := strings.TrimPrefix(p, w.brief.Work)
	for _, pattern := range []string{
		".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes", ".git/commondir",
		".git/modules/*/hooks", ".git/modules/*/config", ".git/modules/*/info/attributes", ".git/modules/*/commondir",
		".git/worktrees/*/commondir", ".git/worktrees/*/gitdir", ".git/worktrees/*/config.worktree",
		".mcp.json", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".gitconfig", ".ripgreprc",
		".vscode", ".idea", ".claude", ".codex", ".agents", ".aws", ".envrc",
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".jj/repo/config.toml", ".jj/workspace-config.toml", ".sl/config", ".svn", "_FOSSIL_", ".fslckout",
		".bzr/branch/branch.conf", "_darcs/prefs", ".pijul/config", ".github/hooks", ".mise.toml", ".Rprofile", ".helix", "crush.json",
	} {
		if within(rel, pattern) {
			return true
		}
	}
	return strings.HasSuffix(rel, "/wt/.git")
}

// within reports whether the components of pattern occur in rel, one after another.
func within(rel, pattern string) bool {
	have, want := strings.Split(rel, "/"), strings.Split(pattern, "/")
	for i := range have {
		if i+len(want) > len(have) {
			return false
		}
		ok := true
		for j := range want {
			if m, _ := path.Match(want[j], have[i+j]); !m {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// strays finds files with our marker in places of the host that should have none.
func (w *world) strays() []string {
	var found []string
	for _, d := range []string{"/", "/etc", "/etc/cron.d", "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/lib/python3/dist-packages", "/var/tmp", "/var/lib", "/tmp", "/dev/shm", "/run", "/opt", "/root", "/boot", "/srv", "/home", "/lib", "/sbin", filepath.Dir(w.brief.Home), w.brief.Place, w.brief.State} {
		m, _ := filepath.Glob(filepath.Join(d, w.brief.Marker+"-*"))
		for _, p := range m {
			if !slices.Contains(w.planted, p) {
				found = append(found, p)
			}
		}
	}
	slices.Sort(found)
	return slices.CompactFunc(found, sameFile)
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// processes finds processes of this world, except the canary.
func (w *world) processes() []string {
	ents, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range ents {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || (w.canary != nil && w.canary.Process != nil && pid == w.canary.Process.Pid) {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if strings.Contains(string(line), w.brief.Marker) || strings.Contains(string(env), w.brief.Marker) {
			found = append(found, fmt.Sprintf("%d %q", pid, strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return found
}

// typedInput returns what was typed into the terminal of this process.
func typedInput() string {
	fd, err := syscall.Open("/dev/tty", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	buf := make([]byte, 4096)
	n, err := syscall.Read(fd, buf)
	if err != nil || n <= 0 {
		return ""
	}
	return string(buf[:n])
}

// eventually calls done until it returns true or patience ends.
func eventually(patience time.Duration, done func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			return done()
		}
	}
}
