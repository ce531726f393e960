// Package seatbelt turns a [paddock.Spec] into a profile for sandbox-exec of macOS, in the language of Seatbelt. It is
// pure: it starts nothing, reads no file and builds everywhere.
//
// We have never run a profile: this project has no Mac. Tests on Linux compare profiles with what is expected, and judge
// them with an interpreter of their own, which shows what we believe that Seatbelt does.
//
// A profile denies by default. Where several rules match, the last one decides, so what is denied inside of something
// allowed stands below it. What a profile cannot enforce is refused by [Compile], and what a tier would do without being
// asked for it is in [Notes].
//
// # Paths
//
// Seatbelt compares the real path of a file, as it is stored on the disk. So all paths that Compile gets are real paths,
// without links. A path is in a profile only as a string, or escaped as a regular expression. Paths with control
// characters, and paths that are not UTF-8, are refused. No text of a caller is in a comment.
//
// An allowed path that is written otherwise than it is stored allows nothing. A denied one would deny nothing, so
// denials match all that APFS and HFS+ may take for the same name: see expression.
package seatbelt

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// Untried is what is said wherever a profile is shown.
const Untried = "never run by us: Paddock's makers have no Mac, and nobody has tried this profile"

// A Plan is what a profile is made of.
type Plan struct {
	Spec paddock.Spec // its paths are real paths
	Home string       // real path of the caller's home, which is hidden
	Temp string       // real path of a directory that the sandbox has for itself; empty is none

	// Proxy is a port of loopback that the sandbox may connect to. A profile knows no other hosts, so the rules of the
	// network are the proxy's. Zero is none.
	Proxy uint16
}

// Notes lists, in words, what a profile lacks of what every other tier has.
func Notes() []string {
	return []string{
		"no limit of memory, processors, processes, files or time",
		"no undo, no review, no audit",
		"no kernel and no numbers of processes of its own",
		"git init, clone, config and worktree add are refused in the workspace, because protected names are not judged by content",
		"a directory with HEAD, objects and refs is a repository to git outside, and its config is not protected",
		"no terminal of its own: programs cannot open /dev/tty, or make a terminal",
		"no Unix sockets, no keychain, no hard links, no servers that listen",
	}
}

// Compile returns the profile. It is about files, programs and the network: variables and the working directory are for
// whoever starts the program. The error names everything that a profile cannot do, and is [paddock.Unsupported], or
// [paddock.Invalid] where the plan makes no sense.
func Compile(p Plan) (string, error) {
	if err := refuse(&p); err != nil {
		return "", err
	}
	if err := check(&p); err != nil {
		return "", err
	}
	names, err := protect.New(p.Spec.Policy.Files.Protect, p.Spec.Policy.Files.Unprotect)
	if err != nil {
		return "", fmt.Errorf("protected names: %w: %w", err, paddock.Invalid)
	}
	w := &writer{fixed: map[string]bool{}}
	w.base()
	w.system()
	w.mounts(&p)
	w.protected(&p, names)
	w.denied(&p)
	w.network(&p)
	w.text("; a program that runs as somebody else than its caller\n(deny file-write-setugid)")
	return w.b.String(), nil
}

// refuse lists what the plan asks for and no profile can do.
func refuse(p *Plan) error {
	var wrong []error
	s := &p.Spec
	for _, c := range []struct {
		asked bool
		what  string
	}{
		{s.Root.Kind != paddock.RootHost, "another file tree than this machine's"},
		{s.User != "", "another user"},
		{s.Sudo, "sudo"},
		{s.Hostname != "", "a host name of its own"},
		{s.Limits != paddock.Limits{}, "limits"},
		{s.Undo != paddock.UndoOff, "undo"},
		{s.Monitor != nil, "a monitor"},
		{len(s.Policy.Audit) > 0, "audit"},
		{len(s.Policy.KeyAgents) > 0, "a key agent"},
		{len(s.Policy.Network.Secrets) > 0 && p.Proxy == 0, "secrets without a proxy"},
		{len(s.Policy.Network.Rules) > 0 && p.Proxy == 0, "rules about hosts without a proxy"},
		{s.Policy.Network.Mode == paddock.NetworkHost, "the network without a proxy"},
	} {
		if c.asked {
			wrong = append(wrong, fmt.Errorf("a Seatbelt profile cannot have %s: %w", c.what, paddock.Unsupported))
		}
	}
	for _, m := range s.Mounts {
		switch {
		case m.Target != "" && m.Target != m.Source:
			wrong = append(wrong, fmt.Errorf("a Seatbelt profile cannot show %q at another path: %w", m.Source, paddock.Unsupported))
		case m.Overlay:
			wrong = append(wrong, fmt.Errorf("a Seatbelt profile cannot have a private layer over %q: %w", m.Source, paddock.Unsupported))
		}
	}
	return errors.Join(wrong...)
}

// check looks for paths that would open more than the plan says.
func check(p *Plan) error {
	var wrong []error
	bad := func(name, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%q %s: %w", name, fmt.Sprintf(format, args...), paddock.Invalid))
	}
	files := p.Spec.Policy.Files
	all := slices.Concat(files.DenyRead, files.DenyWrite)
	for _, m := range p.Spec.Mounts {
		all = append(all, m.Source)
	}
	all = append(all, p.Home)
	if p.Temp != "" {
		all = append(all, p.Temp)
	}
	for _, name := range all {
		if why := fault(name); why != "" {
			bad(name, "%s", why)
		}
	}
	for _, m := range p.Spec.Mounts {
		switch {
		case meets(p.Home, m.Source):
			bad(m.Source, "has all of the home")
		case slices.ContainsFunc(broad(), func(dir string) bool { return meets(dir, m.Source) }):
			bad(m.Source, "has more than a project")
		case m.Write && slices.ContainsFunc(append(systemDirs(), "/dev", "/private/etc", "/private/var/run"), func(dir string) bool { return meets(m.Source, dir) || meets(dir, m.Source) }):
			bad(m.Source, "is of the system")
		case p.Temp != "" && (meets(p.Temp, m.Source) || meets(m.Source, p.Temp)):
			bad(p.Temp, "and %q lie in each other", m.Source)
		}
	}
	if p.Temp != "" && (meets(p.Home, p.Temp) || slices.ContainsFunc(broad(), func(dir string) bool { return meets(dir, p.Temp) })) {
		bad(p.Temp, "is more than a directory for temporary files")
	}
	return errors.Join(wrong...)
}

// fault says what keeps a path out of a profile.
func fault(name string) string {
	switch {
	case !path.IsAbs(name) || path.Clean(name) != name:
		return "is no absolute path in its shortest form"
	case len(name) > 1024:
		return "is longer than 1024 bytes"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "has control characters"
	}
	return ""
}

// meets reports whether a path is a directory or below it, in the eyes of a file system that takes letters of either
// case for the same.
func meets(name, dir string) bool {
	a, b := strings.ToLower(name), strings.ToLower(dir)
	return a == b || b == "/" || strings.HasPrefix(a, b+"/")
}

// broad lists directories that no mount may be, or be above of.
func broad() []string {
	return []string{"/Users", "/Users/Shared", "/Volumes", "/Library", "/opt", "/private/tmp", "/private/var/tmp", "/private/var/folders", "/private/var/root", "/private/var/db", "/Applications", "/Network", "/cores"}
}

// systemDirs lists directories of programs, which can be read.
func systemDirs() []string {
	return []string{
		"/System", "/usr", "/bin", "/sbin", "/Library/Apple", "/Library/Developer/CommandLineTools", "/Library/Frameworks", "/Library/Java",
		"/Applications/Xcode.app/Contents/Developer", "/opt/homebrew", "/opt/local", "/nix/store",
		"/private/etc/ssl", "/private/etc/paths.d", "/private/var/db/timezone", "/private/var/select", "/private/var/db/xcode_select_link",
	}
}

// systemFiles lists files of the system that programs read at their start.
func systemFiles() []string {
	return []string{
		"/private/etc/bashrc", "/private/etc/gitconfig", "/private/etc/group", "/private/etc/hosts", "/private/etc/localtime", "/private/etc/passwd", "/private/etc/paths",
		"/private/etc/profile", "/private/etc/protocols", "/private/etc/resolv.conf", "/private/etc/services", "/private/etc/shells", "/private/etc/zprofile", "/private/etc/zshrc",
	}
}

// hiddenDirs lists directories below the system's that hold data and settings of services.
func hiddenDirs() []string {
	return []string{"/opt/homebrew/etc", "/opt/homebrew/var", "/opt/local/etc", "/opt/local/var", "/usr/local/etc", "/usr/local/var"}
}
