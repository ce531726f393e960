package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// A Question asks Explain about one action.
type Question struct {
	Verb   string // "read", "write", "connect" or "env"
	Object string // a path inside, "host:port" or a URL, or a variable's name
	Method string // of a request to a URL; empty is GET
}

// verbs that ParseQuestion knows.
var verbs = []string{"read", "write", "connect", "env"}

// ParseQuestion parses a question as a person types it: "read PATH", "write PATH", "connect HOST[:PORT]|URL", "env
// NAME", or a URL alone. It resolves relative paths and "~" with o. All else is Invalid.
func ParseQuestion(args []string, o Host) (Question, error) {
	if len(args) == 1 && strings.Contains(args[0], "://") {
		args = []string{"connect", args[0]}
	}
	if len(args) != 2 {
		return Question{}, fmt.Errorf("a question is two words: read PATH, write PATH, connect HOST:PORT or env NAME; or a URL: %w", paddock.Invalid)
	}
	q := Question{Verb: args[0], Object: args[1]}
	switch q.Verb {
	case "read", "write":
		p := q.Object
		if p != "~" && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "~/") {
			if !path.IsAbs(o.Dir) || p == "" {
				return Question{}, fmt.Errorf("path %q: relative path, and the caller's directory is not known: %w", clip(p), paddock.Invalid)
			}
			p = path.Join(o.Dir, p)
		}
		abs, err := resolve(p, o.Home)
		if err == nil {
			err = checkPath(abs)
		}
		if err != nil {
			return Question{}, fmt.Errorf("path %q: %w: %w", clip(q.Object), err, paddock.Invalid)
		}
		q.Object = abs
	case "connect":
		if _, _, err := decide.ParseDestination(q.Object); err != nil {
			return Question{}, err
		}
	case "env":
		if err := checkName(q.Object); err != nil {
			return Question{}, fmt.Errorf("%q: %w: %w", clip(q.Object), err, paddock.Invalid)
		}
	default:
		return Question{}, fmt.Errorf("question %q is not known (%s): %w", clip(q.Verb), hintFor(q.Verb, verbs), paddock.Invalid)
	}
	return q, nil
}

// An Answer says whether an action is allowed, and why.
type Answer struct {
	Allowed bool     `json:"allowed"`
	Rule    string   `json:"rule"`             // what decided, in words
	Where   string   `json:"where,omitempty"`  // "file:line:column" of the rule where it was written
	Change  string   `json:"change,omitempty"` // how to change it
	Notes   []string `json:"notes,omitempty"`  // limits of the answer

	Inspected bool     `json:"inspected,omitempty"` // whether the gateway inspects TLS to this destination
	Secrets   []string `json:"secrets,omitempty"`   // names of the secrets that requests to this destination can use
}

// Explain answers q for spec, which is complete after mode, file and flags. f is the file that was applied, for
// positions, and may be nil. Explain opens no file: the path may not exist, and a link may lead elsewhere.
func Explain(spec paddock.Spec, f *File, o Host, q Question) (Answer, error) {
	e := explainer{spec: spec, host: o}
	if f != nil {
		// Problems were told by Apply; here the file only gives places.
		e.file, _ = f.resolved(o)
	}
	switch q.Verb {
	case "read":
		return e.read(q.Object), nil
	case "write":
		return e.write(q.Object)
	case "connect":
		return e.connect(q)
	case "env":
		return e.env(q.Object), nil
	}
	return Answer{}, fmt.Errorf("question %q is not known (%s): %w", clip(q.Verb), hintFor(q.Verb, verbs), paddock.Invalid)
}

type explainer struct {
	spec paddock.Spec
	host Host
	file *File // resolved, or nil
}

// where gives the place of the key whose list has p, or a glob that matches p.
func (e *explainer) where(key string, list func(*File) []string, p string) string {
	if e.file == nil {
		return ""
	}
	for i, entry := range list(e.file) {
		k := index(key, i)
		if entry == p || (e.file.glob(entry) && matchGlob(entry, p)) {
			return e.file.Where(k)
		}
	}
	return ""
}

// whereIs gives the place of a key if the file has it.
func (e *explainer) whereIs(key string) string {
	if e.file == nil || !e.file.says(key) {
		return ""
	}
	return e.file.Where(key)
}

func (e *explainer) whereMount(m paddock.Mount) string {
	if e.file == nil {
		return ""
	}
	if i := slices.IndexFunc(e.file.Mounts, func(n paddock.Mount) bool { return target(n) == target(m) }); i >= 0 {
		return e.file.Where(index("mounts", i))
	}
	if e.file.Workspace == target(m) {
		return e.file.Where("workspace")
	}
	return ""
}

func denyRead(f *File) []string  { return f.Files.DenyRead }
func denyWrite(f *File) []string { return f.Files.DenyWrite }

// denied tells whether a path is denied for reading.
func (e *explainer) denied(name string) (Answer, bool) {
	for _, p := range e.spec.Policy.Files.DenyRead {
		if within(name, p) {
			return Answer{
				Rule:   fmt.Sprintf("files.deny_read denies %s", p),
				Where:  e.where("files.deny_read", denyRead, p),
				Change: e.dropping("files.deny_read", "--deny-read", denyRead, p),
			}, true
		}
	}
	return Answer{}, false
}

// dropping says how to give a path up that is denied: in the file, or by the flag.
func (e *explainer) dropping(key, flag string, list func(*File) []string, p string) string {
	if e.file == nil {
		return fmt.Sprintf("leave %s %s out", flag, p)
	}
	for _, entry := range list(e.file) {
		switch {
		case entry == p:
			return fmt.Sprintf("take %s from %s", p, key)
		case e.file.glob(entry) && matchGlob(entry, p):
			return fmt.Sprintf("take the glob %s from %s", entry, key)
		}
	}
	return fmt.Sprintf("leave %s %s out", flag, p)
}

// late notes globs that match name and did not when they were expanded.
func (e *explainer) late(name, key string, list func(*File) []string) []string {
	if e.file == nil {
		return nil
	}
	var notes []string
	for i, entry := range list(e.file) {
		if e.file.glob(entry) && matchGlob(entry, name) {
			notes = append(notes, fmt.Sprintf("%s: the glob %s stands for what it matched when it was expanded, and this path was not there", e.file.Where(index(key, i)), entry))
		}
	}
	return notes
}

// mount gives the mount that decides about name: the deepest one.
func (e *explainer) mount(name string) (paddock.Mount, bool) {
	var best paddock.Mount
	found := false
	for _, m := range e.spec.Mounts {
		if t := target(m); within(name, t) && (!found || len(t) > len(target(best))) {
			best, found = m, true
		}
	}
	return best, found
}

func (e *explainer) read(name string) Answer {
	if a, ok := e.denied(name); ok {
		return a
	}
	a := e.readable(name)
	a.Notes = append(a.Notes, e.late(name, "files.deny_read", denyRead)...)
	return a
}

func (e *explainer) readable(name string) Answer {
	if m, ok := e.mount(name); ok {
		return Answer{Allowed: true, Rule: fmt.Sprintf("%s of the host is mounted at %s", m.Source, target(m)), Where: e.whereMount(m),
			Change: fmt.Sprintf("add %s to files.deny_read", name)}
	}
	where := e.whereIs("root")
	if within(name, "/proc") || within(name, "/dev") {
		return Answer{Allowed: true, Rule: "it is the sandbox's own: its processes and its devices"}
	}
	switch e.spec.Root.Kind {
	case paddock.RootImage:
		if e.private(name) {
			return Answer{Allowed: true, Rule: "it is the sandbox's own: nothing of the host is in it"}
		}
		return Answer{Allowed: true, Rule: fmt.Sprintf("if it is there, it comes from the image %s", e.spec.Root.Image), Where: where}
	case paddock.RootDir:
		return Answer{Allowed: true, Rule: fmt.Sprintf("it comes from the root directory %s", e.spec.Root.Path), Where: where}
	case paddock.RootOpen:
		return Answer{Allowed: true, Rule: "the root is open: all that the caller can read", Where: where, Change: fmt.Sprintf("add %s to files.deny_read, or ask for the root host", name)}
	}
	if i := slices.IndexFunc(hostroot.Credentials(), func(c string) bool { return within(name, c) }); i >= 0 {
		hidden := hostroot.Credentials()[i]
		return Answer{Rule: hidden + " may hold credentials of the host, and the root host hides it", Where: where,
			Change: fmt.Sprintf("mount it: --read %s, or in the policy file: mounts: [{read: %s}]", hidden, hidden)}
	}
	switch {
	case system(name):
		a := Answer{Allowed: true, Rule: "it is in a system directory, which the root host shows", Where: where}
		if slices.ContainsFunc(hostroot.Credentials(), func(c string) bool { return within(c, name) }) {
			a.Notes = []string{"but for files in it that hold credentials of the host, which are hidden"}
		}
		for dir := range hostroot.Closed() {
			if name != dir && within(name, dir) {
				a.Notes = append(a.Notes, "unless the calling user, who is not root, may read it and others may not: then it is hidden; to show it: --read "+name)
			}
		}
		return a
	case e.private(name):
		return Answer{Allowed: true, Rule: "it is the sandbox's own: nothing of the host is in it", Where: where,
			Notes: []string{"but for tool chains below the home that PATH reaches, which are shown read-only"}}
	}
	return Answer{Rule: "the root host shows system directories only", Where: where,
		Change: fmt.Sprintf("mount it: --read %s, or in the policy file: mounts: [{read: %s}]", name, name)}
}

func (e *explainer) write(name string) (Answer, error) {
	if a, ok := e.denied(name); ok {
		return a, nil
	}
	for _, p := range e.spec.Policy.Files.DenyWrite {
		if within(name, p) {
			return Answer{Rule: fmt.Sprintf("files.deny_write denies %s", p), Where: e.where("files.deny_write", denyWrite, p),
				Change: e.dropping("files.deny_write", "--deny-write", denyWrite, p)}, nil
		}
	}
	a, err := e.writable(name)
	a.Notes = append(a.Notes, e.late(name, "files.deny_write", denyWrite)...)
	return a, err
}

func (e *explainer) writable(name string) (Answer, error) {
	if m, ok := e.mount(name); ok {
		if m.Overlay {
			return Answer{Allowed: true, Rule: fmt.Sprintf("%s of the host is below a private layer at %s; changes stay inside", m.Source, target(m)), Where: e.whereMount(m)}, nil
		}
		if !m.Write {
			return Answer{Rule: fmt.Sprintf("%s is mounted read-only", target(m)), Where: e.whereMount(m), Change: "mount it writable: " + mounting(m)}, nil
		}
		return e.protected(name, m)
	}
	where := e.whereIs("root")
	if within(name, "/proc") || within(name, "/dev") {
		return Answer{Allowed: true, Rule: "it is the sandbox's own: its processes and its devices", Notes: []string{"what commands the machine is read-only there"}}, nil
	}
	switch {
	case e.spec.Root.Kind == paddock.RootOpen:
		return Answer{Rule: "nothing of the open root can be written but for mounts", Where: where, Change: fmt.Sprintf("mount it: --write %s", name)}, nil
	case e.spec.Root.Kind == paddock.RootImage && !e.private(name):
		return Answer{Allowed: true, Rule: "the sandbox has a private layer above the image; nothing reaches the host", Where: where,
			Notes: []string{"on the tiers gvisor and microvm; in a jail the image is read-only"}}, nil
	case e.spec.Root.Kind == paddock.RootDir:
		return Answer{Allowed: true, Rule: "the sandbox has a private layer above the root directory; nothing reaches the host", Where: where}, nil
	case e.private(name):
		return Answer{Allowed: true, Rule: "it is the sandbox's own; nothing reaches the host, and it is gone with the sandbox", Where: where}, nil
	}
	return Answer{Rule: "the root host is read-only", Where: where, Change: fmt.Sprintf("mount it: --write %s, or in the policy file: mounts: [{write: %s}]", name, name)}, nil
}

// protected answers for a path in a writable mount.
func (e *explainer) protected(name string, m paddock.Mount) (Answer, error) {
	files := e.spec.Policy.Files
	set, err := protect.New(files.Protect, files.Unprotect)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	rule, hit := set.Match(strings.TrimPrefix(name, strings.TrimSuffix(target(m), "/")))
	switch hit {
	case protect.Protected:
		var notes []string
		if set.Content(rule) != protect.None {
			notes = []string{"git's own way of making it is let through, if its content can run nothing; docs/reference/protected.md lists the keys"}
		}
		return Answer{Rule: fmt.Sprintf("%s is a protected name: %s", rule, set.Reason(rule)), Change: unprotecting(rule, files.Protect), Notes: notes,
			Where: e.where("files.protect", func(f *File) []string { return f.Files.Protect }, rule)}, nil
	case protect.Root:
		return Answer{Rule: fmt.Sprintf("%s can be used where it exists, and not be made: %s", rule, set.Reason(rule)), Where: e.whereMount(m),
			Change: unprotecting(rule, files.Protect)}, nil
	case protect.Prefix:
		return Answer{Allowed: true, Rule: fmt.Sprintf("%s of the host is mounted writable at %s", m.Source, target(m)), Where: e.whereMount(m),
			Notes: []string{fmt.Sprintf("only as a directory, which cannot be renamed, or removed unless it is empty, because %s is protected", rule)}}, nil
	}
	return Answer{Allowed: true, Rule: fmt.Sprintf("%s of the host is mounted writable at %s", m.Source, target(m)), Where: e.whereMount(m),
		Change: fmt.Sprintf("add %s to files.deny_write", name)}, nil
}

// mounting says how to make a mount writable where it is.
func mounting(m paddock.Mount) string {
	if to := target(m); to != m.Source {
		return fmt.Sprintf("--write %s:%s, or in the policy file: mounts: [{write: %s, at: %s}]", m.Source, to, m.Source, to)
	}
	return fmt.Sprintf("--write %s, or in the policy file: mounts: [{write: %s}]", m.Source, m.Source)
}

// unprotecting says how to give a protected name up. Those of the policy itself are no
// built-in names, which alone can be unprotected; a name may be both.
func unprotecting(rule string, own []string) string {
	var changes []string
	if slices.ContainsFunc(own, func(p string) bool { return strings.TrimRight(p, "/") == rule }) {
		changes = append(changes, fmt.Sprintf("take %q from files.protect", rule))
	}
	if protect.Builtin(rule) {
		changes = append(changes, fmt.Sprintf("--unprotect %s, or in the policy file: files: {unprotect: [%q]}", rule, rule))
	}
	return strings.Join(changes, "; and ")
}

// system tells whether the root host shows name.
func system(name string) bool {
	return slices.ContainsFunc(append(hostroot.SystemDirs(), "/sys/devices/system/cpu"), func(dir string) bool { return within(name, dir) })
}

// private tells whether the root host has a private directory there.
func (e *explainer) private(name string) bool {
	dirs := hostroot.PrivateDirs()
	switch home := path.Clean(e.host.Home); {
	case home == "/root" || e.spec.User != "":
		// Commands of a root caller, and those of another user, are at home
		// below /home.
		dirs = append(dirs, "/home")
	case path.IsAbs(home):
		dirs = append(dirs, home)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(name, dir) })
}

func (e *explainer) env(name string) Answer {
	if _, ok := e.spec.Env[name]; ok {
		a := Answer{Allowed: true, Rule: name + " is set for every command", Where: e.whereIs("environment.set." + name)}
		if a.Where == "" {
			a.Where = e.where("environment.pass", func(f *File) []string { return f.Pass }, name)
		}
		return a
	}
	for _, s := range e.spec.Policy.Network.Secrets {
		if s.Name == name {
			return Answer{Allowed: true, Rule: fmt.Sprintf("%s is a secret: commands see a placeholder, and requests to %s get the value", name, strings.Join(s.Hosts, ", ")),
				Where: e.whereIs("network.secrets." + name)}
		}
	}
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR":
		return Answer{Allowed: true, Rule: name + " is the tier's own; its value is not the caller's", Change: fmt.Sprintf("environment: {set: {%s: \"…\"}}", name)}
	}
	a := Answer{Rule: "nothing of the caller's environment enters but what is named", Change: fmt.Sprintf("--env %s, or in the policy file: environment: {pass: [%s]}", name, name)}
	if e.host.Env != nil {
		if _, ok := e.host.Env(name); !ok {
			a.Change = fmt.Sprintf("--env %s=VALUE, or in the policy file: environment: {set: {%s: VALUE}}; it is not set here", name, name)
		}
	}
	if e.file != nil && slices.Contains(e.file.Pass, name) {
		a.Rule = "it is named in environment.pass, and the caller does not have it"
		a.Where = e.where("environment.pass", func(f *File) []string { return f.Pass }, name)
		a.Change = "set it before the call, or use environment.set"
	}
	return a
}
