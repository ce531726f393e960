package cgroup

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// A mount is a control-group file system in this mount namespace.
type mount struct {
	v2      bool
	root    string   // which group is visible at point
	point   string   // where it is mounted
	options []string // of the super block: for v1 they name the controllers
	locked  bool     // mounted read-only
}

// parseMounts gives the control-group mounts in the text of
// /proc/PID/mountinfo, in its order. Lines that make no sense are skipped: a
// mount that is not understood is one that cannot be used.
func parseMounts(text string) []mount {
	var found []mount
	for line := range strings.Lines(text) {
		// Most lines are other file systems; this is on the way of every start.
		if !strings.Contains(line, " - cgroup") {
			continue
		}
		head, tail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !ok {
			continue
		}
		fields, about := strings.Fields(head), strings.Fields(tail)
		if len(fields) < 6 || len(about) < 3 || (about[0] != "cgroup" && about[0] != "cgroup2") {
			continue
		}
		super := strings.Split(about[2], ",")
		found = append(found, mount{
			v2:      about[0] == "cgroup2",
			root:    unescape(fields[3]),
			point:   unescape(fields[4]),
			options: super,
			locked:  slices.Contains(strings.Split(fields[5], ","), "ro") || slices.Contains(super, "ro"),
		})
	}
	return found
}

// unescape undoes the kernel's octal escapes for space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

var errOutside = errors.New("our own group is outside of what is mounted")

// dir gives the directory of the group at p, as /proc/self/cgroup names it. In
// a container without a cgroup namespace only a part of the tree is mounted,
// and p counts from the top.
func (m mount) dir(p string) (string, error) {
	if !strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") {
		return "", errOutside
	}
	if m.root == "/" {
		return path.Join(m.point, p), nil
	}
	if p == m.root {
		return m.point, nil
	}
	rest, ok := strings.CutPrefix(p, m.root+"/")
	if !ok {
		return "", errOutside
	}
	return path.Join(m.point, rest), nil
}
