package seatbelt

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// A writer puts rules of a profile together.
type writer struct {
	b     strings.Builder
	fixed map[string]bool // paths that stay where they are
}

func (w *writer) text(lines string) { w.b.WriteString(lines + "\n") }

// rule writes one rule about filters, any of which may match. Without filters there is no rule: to Seatbelt, that would
// be one about everything.
func (w *writer) rule(head string, filters ...string) {
	if len(filters) == 0 {
		return
	}
	w.text("(" + head + "\n  " + strings.Join(filters, "\n  ") + ")")
}

// within writes a rule about paths below a directory that match one of the filters, and all of the conditions.
func (w *writer) within(head, dir string, filters []string, conditions ...string) {
	if len(filters) == 0 {
		return
	}
	all := append([]string{subpath(dir)}, conditions...)
	all = append(all, "(require-any\n      "+strings.Join(filters, "\n      ")+")")
	w.rule(head, "(require-all\n    "+strings.Join(all, "\n    ")+")")
}

func subpath(name string) string { return "(subpath " + quote(name) + ")" }
func literal(name string) string { return "(literal " + quote(name) + ")" }
func regex(expr string) string   { return "(regex " + quote(expr) + ")" }

func each(filter func(string) string, names []string) []string {
	list := make([]string, 0, len(names))
	for _, n := range names {
		list = append(list, filter(n))
	}
	return list
}

// base is what each program needs that has nothing to do with files.
func (w *writer) base() {
	w.text("(version 1)\n; Paddock, " + Untried)
	w.text(`(deny default)

; processes of this sandbox, and nothing about others
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))

; facts about the machine
(allow sysctl-read
  (sysctl-name "hw.activecpu")
  (sysctl-name "hw.byteorder")
  (sysctl-name "hw.cachelinesize_compat")
  (sysctl-name "hw.cpufamily")
  (sysctl-name "hw.cputype")
  (sysctl-name "hw.logicalcpu")
  (sysctl-name "hw.logicalcpu_max")
  (sysctl-name "hw.machine")
  (sysctl-name "hw.memsize")
  (sysctl-name "hw.model")
  (sysctl-name "hw.ncpu")
  (sysctl-name "hw.nperflevels")
  (sysctl-name "hw.pagesize")
  (sysctl-name "hw.pagesize_compat")
  (sysctl-name "hw.physicalcpu")
  (sysctl-name "hw.physicalcpu_max")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "machdep.cpu.brand_string")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg")
  (sysctl-name-prefix "hw.optional.arm")
  (sysctl-name-prefix "hw.perflevel"))

; names of users; not the keychain, and nothing that starts programs outside
(allow mach-lookup
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow ipc-posix-sem)
`)
}

// system shows the system's programs.
func (w *writer) system() {
	w.text("; the system")
	w.rule("allow file-read*", slices.Concat(each(subpath, systemDirs()), each(literal, systemFiles()), each(literal, []string{"/", "/etc", "/tmp", "/var"}))...)
	w.rule("allow file-read-metadata", each(literal, []string{"/Applications", "/Library", "/Library/Developer", "/opt", "/private", "/private/etc", "/private/var", "/private/var/db"})...)
	w.rule("deny file-read*", each(subpath, hiddenDirs())...)
	w.rule("allow file-read* file-write-data", each(literal, []string{"/dev/null", "/dev/zero"})...)
	w.rule("allow file-read*", slices.Concat(each(literal, []string{"/dev", "/dev/random", "/dev/urandom"}), each(subpath, []string{"/dev/fd"}))...)
	w.rule("allow process-exec*", each(subpath, programDirs())...)
}

// programDirs lists the directories of the system whose programs can be executed.
func programDirs() []string {
	return slices.DeleteFunc(systemDirs(), func(dir string) bool { return strings.HasPrefix(dir, "/private/") })
}

// mounts shows the directories of the plan, outer ones before those in them. Whatever a mount is, it stays where it is.
func (w *writer) mounts(p *Plan) {
	list := slices.Clone(p.Spec.Mounts)
	if p.Temp != "" {
		list = append(list, paddock.Mount{Source: p.Temp, Write: true})
	}
	slices.SortStableFunc(list, func(a, b paddock.Mount) int {
		return cmp.Or(strings.Count(a.Source, "/")-strings.Count(b.Source, "/"), strings.Compare(a.Source, b.Source))
	})
	if len(list) > 0 {
		w.text("\n; what is shown")
	}
	for _, m := range list {
		w.rule("allow file-read-metadata", each(literal, above(m.Source))...)
		w.rule("allow file-read* process-exec*", subpath(m.Source))
		if m.Write {
			w.rule("allow file-write*", subpath(m.Source))
			continue
		}
		if slices.ContainsFunc(list, func(o paddock.Mount) bool { return o.Write && meets(m.Source, o.Source) }) {
			w.deny(list, "deny file-write*", m.Source, true)
		}
	}
	for _, m := range list {
		w.fix(list, m.Source)
	}
}

// above lists the directories above a path, without the topmost.
func above(name string) []string {
	var list []string
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		list = append(list, dir)
	}
	return list
}

// deny writes a rule about a path, and what is below it if whole, as any file system of macOS may have stored it. What is
// above of the path in a mount is known by its exact name, because nothing else is allowed.
func (w *writer) deny(mounts []paddock.Mount, head, name string, whole bool) {
	end := "$"
	if whole {
		end = "(/.*)?$"
	}
	inside := false
	for _, m := range mounts {
		if meets(name, m.Source) {
			inside = true
			depth := strings.Count(m.Source, "/")
			rest := strings.Split(name, "/")[depth+1:]
			w.within(head, m.Source, []string{regex("^" + strings.Repeat("/[^/]*", depth) + expression(strings.Join(append([]string{""}, rest...), "/")) + end)})
		}
	}
	if !inside {
		w.rule(head, regex("^"+expression(strings.TrimSuffix(name, "/"))+end))
	}
}

// fix keeps a path where it is, and the directories above it that could be written: who moves one of them away could put
// another in its place.
func (w *writer) fix(mounts []paddock.Mount, name string) {
	for _, at := range append([]string{name}, above(name)...) {
		if !w.fixed[at] && slices.ContainsFunc(mounts, func(m paddock.Mount) bool { return m.Write && meets(at, m.Source) }) {
			w.fixed[at] = true
			w.deny(mounts, "deny file-write-create file-write-unlink", at, false)
		}
	}
}

// protected keeps the protected names of each directory that can be written.
func (w *writer) protected(p *Plan, names *protect.Set) {
	prefixes := map[string]bool{}
	for _, text := range names.Rules() {
		for dir := path.Dir(text); dir != "."; dir = path.Dir(dir) {
			prefixes[dir] = true
		}
	}
	_, roots := protect.Split()
	for _, text := range roots {
		if !slices.Contains(p.Spec.Policy.Files.Unprotect, text) {
			prefixes[text] = true
		}
	}
	var above []string
	for text := range prefixes {
		above = append(above, text)
	}
	slices.Sort(above)
	for _, m := range p.Spec.Mounts {
		if !m.Write {
			continue
		}
		depth := anchor(m.Source)
		expr := func(text, end string) string { return regex(below(depth) + pattern(text) + end) }
		w.text("\n; names that programs outside obey, in a directory that can be written")
		w.within("deny file-write*", m.Source, each(func(t string) string { return expr(t, "(/.*)?$") }, names.Rules()))
		w.text("; what they lie in stays where it is, and is no link and no file")
		w.within("deny file-write-create file-write-unlink", m.Source, each(func(t string) string { return expr(t, "$") }, above))
		w.within("deny file-write*", m.Source, each(func(t string) string { return expr(t, "$") }, above), "(require-not (vnode-type DIRECTORY))")
		w.text("; no links in repositories")
		w.within("deny file-write-create", m.Source, []string{expr(".git", "/.*$")}, "(vnode-type SYMLINK)")
	}
}

// anchor is the depth at which names in a mount begin. In a mount of a repository's own directory, as of a working tree
// that is linked, it is that of the directory around it.
func anchor(mount string) int {
	parts := strings.Split(mount, "/")
	if i := slices.IndexFunc(parts, func(part string) bool { return protect.Same(part, ".git") }); i > 0 {
		return i - 1
	}
	return len(parts) - 1
}

// below is the beginning of an expression for what lies in a directory of a depth, at any depth of its own. It has no
// name of the caller's in it.
func below(depth int) string { return "^" + strings.Repeat("/[^/]*", depth) + "/(.*/)?" }

// denied closes the paths that the plan denies.
func (w *writer) denied(p *Plan) {
	files := p.Spec.Policy.Files
	if len(files.DenyRead)+len(files.DenyWrite) > 0 {
		w.text("\n; what is denied")
	}
	for _, list := range []struct {
		head  string
		names []string
	}{{"deny file-read* file-write* process-exec*", files.DenyRead}, {"deny file-write*", files.DenyWrite}} {
		for _, name := range list.names {
			w.deny(p.Spec.Mounts, list.head, name, true)
			w.fix(p.Spec.Mounts, name)
		}
	}
}

// network opens the port of the proxy, and nothing else.
func (w *writer) network(p *Plan) {
	w.text("\n; the network")
	if p.Proxy == 0 {
		w.text("(deny network*)")
		return
	}
	w.rule("allow network-outbound", fmt.Sprintf("(remote tcp \"localhost:%d\")", p.Proxy))
}
