package box

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// aliases denies the real paths of protected names at the top of a writable mount, if one
// of them is a link or a git file that names the repository. The broker judges by where a
// file really is.
func (l *Layout) aliases() error {
	set, err := protect.New(l.Config.Protect, l.Config.Unprotect)
	if err != nil {
		return fmt.Errorf("protected names: %w: %w", err, paddock.Invalid)
	}
	for _, m := range l.Config.Mounts {
		if m.Kind != boxinit.MountBind || !m.Writable() || m.Device || m.Layer || m.IsFile {
			continue
		}
		missing := map[string]bool{}
		for _, rule := range set.Rules() {
			// The first component of most rules does not exist, and many rules share one.
			first, _, _ := strings.Cut(rule, "/")
			if _, known := missing[first]; !known {
				_, err := os.Lstat(filepath.Join(m.Source, first))
				missing[first] = err != nil
			}
			if missing[first] {
				continue
			}
			real, ok := alias(m.Source, rule)
			if !ok || !hostroot.Within(real, m.Source) || real == m.Source {
				continue
			}
			inside := m.Target + strings.TrimPrefix(real, m.Source)
			if !slices.Contains(l.Config.Deny, inside) {
				l.Config.Deny = append(l.Config.Deny, inside)
			}
		}
	}
	return nil
}

// alias follows a protected name from the top of a host directory. If a link is on the way,
// it returns where the name leads.
func alias(dir, rule string) (string, bool) {
	at, linked := dir, false
	parts := strings.Split(rule, "/")
	for i, part := range parts {
		if strings.Contains(part, "*") {
			return "", false
		}
		next := filepath.Join(at, part)
		st, err := os.Lstat(next)
		switch {
		case err != nil:
			// A missing file would be made there.
			return filepath.Join(append([]string{at}, parts[i:]...)...), linked
		case st.Mode()&os.ModeSymlink != 0:
			real, err := filepath.EvalSymlinks(next)
			if err != nil { // the link's target is missing, and could be made
				to, err := os.Readlink(next)
				if err != nil {
					return "", false
				}
				if !filepath.IsAbs(to) {
					to = filepath.Join(at, to)
				}
				real = filepath.Clean(to)
			}
			next, linked = real, true
		case part == ".git" && st.Mode().IsRegular() && i < len(parts)-1:
			real, ok := gitDir(next)
			if !ok {
				return "", false
			}
			next, linked = real, true
		}
		at = next
	}
	return at, linked
}

// gitDir parses a git file: "gitdir: PATH".
func gitDir(file string) (string, bool) {
	const longest = 4096 + 16 // a path and its prefix
	// Users of the directory may swap the file at any time. So opening must not block, and
	// reading must be bounded.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err != nil || len(data) > longest {
		return "", false
	}
	path, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte("gitdir: "))
	if !ok {
		return "", false
	}
	to := string(path)
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	real, err := filepath.EvalSymlinks(to)
	return real, err == nil
}
