package policy

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// tiers as they are written.
var tiers = []string{"auto", string(paddock.Sim), string(paddock.Jail), string(paddock.GVisor), string(paddock.MicroVM)}

// controls that allow_missing may name.
var controls = []paddock.Control{
	paddock.ControlUserNS, paddock.ControlMountNS, paddock.ControlPIDNS, paddock.ControlNetNS, paddock.ControlIPCNS,
	paddock.ControlUTSNS, paddock.ControlCgroupNS, paddock.ControlTimeNS, paddock.ControlReadOnly, paddock.ControlLandlock,
	paddock.ControlSeccomp, paddock.ControlNoNewPrivs, paddock.ControlCapabilities, paddock.ControlKeyring,
	paddock.ControlEnvironment, paddock.ControlDescriptors, paddock.ControlIdentity, paddock.ControlProtected,
	paddock.ControlNetwork, paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlIO,
	paddock.ControlDisk, paddock.ControlFiles,
}

// namesOf gives names as text.
func namesOf[T ~string](names []T) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return list
}

const (
	pathPattern = `^(/|~$|~/)`
	sizePattern = `^[0-9]+(\.[0-9]{1,6})?([kKmMgGtT]([iI]?[bB])?|[bB])?$`
	timePattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	namePattern = `^[A-Za-z_][A-Za-z0-9_]*$`
	userPattern = `^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
)

// version1 is the shape of a policy file.
func version1() *shape {
	return &shape{kind: object, doc: "A policy of Paddock: what a sandbox is made of, may use and may touch.", need: []string{"version"}, fields: []field{
		{"version", &shape{kind: whole, doc: "The version of this format.", min: 1, max: 1, read: func(r *reader, _ *yaml.Node, _ string) { r.f.Version = 1 }}},
		{"tier", &shape{kind: text, doc: "The strength of isolation; auto is gvisor, or jail where gvisor cannot make the sandbox; never microvm or sim.", oneOf: tiers, read: readTier}},
		{"root", &shape{kind: text, doc: `Where the file tree comes from: "host" (this machine's system, read-only), "open" (the whole host, less isolation), "image:REFERENCE" (an OCI image) or a directory that holds one.`, pattern: `^(host|open|image:.+|/.*|~/.*)$`, read: readRoot}},
		{"user", &shape{kind: textOrWhole, doc: "Who commands run as: a name or a number.", pattern: userPattern, read: readUser}},
		{"workspace", &shape{kind: text, doc: `The directory to work in, writable but for protected names: a path, or "." for the caller's directory.`, pattern: `^(\.$|/|~$|~/)`, read: readWorkspace}},
		{"mounts", &shape{kind: list, doc: "Host directories and files that appear inside.", elem: mountShape()}},
		{"environment", environmentShape()},
		{"limits", limitsShape()},
		{"budget", budgetShape()},
		{"files", filesShape()},
		{"network", networkShape()},
		{"forward_agent", forwardShape()},
		{"audit", &shape{kind: list, doc: "Kinds of events that are recorded of every process in the sandbox.", elem: &shape{kind: text, oneOf: namesOf(paddock.AuditKinds()), read: readAudit}}},
		{"monitor", monitorShape()},
		{"allow_missing", &shape{kind: list, doc: "Controls whose absence or weakness is accepted: less isolation, by name.", elem: &shape{kind: text, oneOf: namesOf(controls), read: readMissing}}},
	}}
}

func readTier(r *reader, n *yaml.Node, _ string) {
	if n.Value != "auto" {
		r.f.Tier = paddock.Tier(n.Value)
	}
}

// maxReference is how long the reference of an image may be, in bytes.
const maxReference = 1024

func readRoot(r *reader, n *yaml.Node, key string) {
	switch n.Value {
	case "host":
	case "open":
		r.f.Root = paddock.Root{Kind: paddock.RootOpen}
	default:
		if reference, ok := strings.CutPrefix(n.Value, "image:"); ok && reference != "" && len(reference) <= maxReference && !strings.ContainsFunc(reference, unicode.IsControl) {
			r.f.Root = paddock.Root{Kind: paddock.RootImage, Image: reference}
			return
		}
		if strings.HasPrefix(n.Value, "/") || strings.HasPrefix(n.Value, "~") {
			if p, ok := r.path(n, key); ok {
				r.f.Root = paddock.Root{Kind: paddock.RootDir, Path: p}
			}
			return
		}
		hint := `allowed: "host", "open", "image:REFERENCE", or the absolute path of a directory`
		if near := Nearest(n.Value, []string{"host", "open"}); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		r.add(n, key, fmt.Sprintf("%q is no root", clip(n.Value)), hint)
	}
}

func readUser(r *reader, n *yaml.Node, key string) {
	hint := `a name such as "user", or a number such as 1000`
	if n.Tag == "!!int" {
		if id, err := strconv.ParseUint(n.Value, 10, 32); err != nil || !decimal(n.Value) || id > 1<<31 {
			r.add(n, key, clip(n.Value)+" is no user", hint)
			return
		}
	} else if !isUser(n.Value) {
		r.add(n, key, fmt.Sprintf("%q is no user", clip(n.Value)), hint)
		return
	}
	r.f.User = n.Value
}

func isUser(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter && (i == 0 || (c != '.' && c != '-')) {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 256
}

func readWorkspace(r *reader, n *yaml.Node, key string) {
	if n.Value == "." {
		r.f.Workspace = "."
		return
	}
	if p, ok := r.path(n, key); ok {
		r.f.Workspace = p
	}
}

// path gives a path of the document, clean.
func (r *reader) path(n *yaml.Node, key string) (string, bool) {
	if err := checkPath(n.Value); err != nil {
		hint := pathHint
		if len(n.Value) > MaxPath {
			hint = ""
		}
		r.add(n, key, err.Error(), hint)
		return "", false
	}
	return path.Clean(n.Value), true
}

func mountShape() *shape {
	p := func(doc string) *shape {
		return &shape{kind: text, doc: doc, pattern: pathPattern, read: func(r *reader, n *yaml.Node, key string) { r.path(n, key) }}
	}
	return &shape{kind: object, doc: "One directory or file.", one: []string{"read", "write"}, fields: []field{
		{"read", p("The path on the host, read-only inside.")},
		{"write", p("The path on the host, writable inside but for protected names.")},
		{"at", p("The path inside; without it, the same as on the host.")},
	}, read: readMount}
}

func readMount(r *reader, n *yaml.Node, _ string) {
	var m paddock.Mount
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := path.Clean(n.Content[i+1].Value)
		switch n.Content[i].Value {
		case "read":
			m.Source = p
		case "write":
			m.Source, m.Write = p, true
		case "at":
			m.Target = p
		}
	}
	r.f.Mounts = append(r.f.Mounts, m)
}

func environmentShape() *shape {
	return &shape{kind: object, doc: "Variables that commands see besides those of the tier. Nothing else of the caller's environment enters.", fields: []field{
		{"set", &shape{kind: mapping, doc: "Names and values.", keys: namePattern, elem: &shape{kind: text, read: readVariable}}},
		{"pass", &shape{kind: list, doc: "Names whose values are the caller's; one that the caller does not have stays unset.", elem: &shape{kind: text, pattern: namePattern, read: readPass}}},
	}}
}

func checkName(name string) error {
	switch {
	case name == "" || len(name) > 256:
		return errors.New("not the name of a variable: its length is not 1 to 256")
	case name[0] >= '0' && name[0] <= '9':
		return errors.New("not the name of a variable: it begins with a digit")
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return errors.New("not the name of a variable: letters, digits and _ are allowed")
		}
	}
	return nil
}

func readVariable(r *reader, n *yaml.Node, key string) {
	name := strings.TrimPrefix(key, "environment.set.")
	if err := checkName(name); err != nil {
		r.add(n, "environment.set", fmt.Sprintf("%q: %v", clip(name), err), "")
		return
	}
	if strings.IndexByte(n.Value, 0) >= 0 {
		r.add(n, key, "value with a NUL byte", "")
		return
	}
	if r.f.Set == nil {
		r.f.Set = map[string]string{}
	}
	r.f.Set[name] = n.Value
}

func readPass(r *reader, n *yaml.Node, key string) {
	if err := checkName(n.Value); err != nil {
		r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), "variables are passed one by one, by name")
		return
	}
	r.f.Pass = append(r.f.Pass, n.Value)
}

func limitsShape() *shape {
	size := func(doc string, set func(*paddock.Limits, int64)) *shape {
		return &shape{kind: textOrWhole, doc: doc, pattern: sizePattern, min: 1, read: func(r *reader, n *yaml.Node, key string) {
			v, err := parseSize(n.Value)
			if err != nil {
				r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), sizeHint)
				return
			}
			if key == "limits.memory" && v < 1<<20 {
				r.add(n, key, fmt.Sprintf("%d bytes is less than any program needs", v), fmt.Sprintf(`did you mean "%sm"?`, clip(n.Value)))
				return
			}
			set(&r.f.Limits, v)
		}}
	}
	count := func(doc string, set func(*paddock.Limits, int)) *shape {
		return &shape{kind: whole, doc: doc, min: 1, max: 1 << 30, read: func(r *reader, n *yaml.Node, key string) {
			if v, err := strconv.Atoi(n.Value); err == nil {
				set(&r.f.Limits, v)
			} else {
				r.add(n, key, clip(n.Value)+" is not allowed", "")
			}
		}}
	}
	return &shape{kind: object, doc: "Bounds on the sandbox as a whole. What is left out has the tier's default, which is never \"no limit\" (but for io and timeout).", fields: []field{
		{"memory", size("RAM, including files in memory.", func(l *paddock.Limits, v int64) { l.Memory = v })},
		{"cpus", &shape{kind: number, doc: "Processors' worth of time.", min: 0.01, max: 4096, read: func(r *reader, n *yaml.Node, key string) {
			if v, err := strconv.ParseFloat(n.Value, 64); err == nil {
				r.f.Limits.CPUs = v
			} else {
				r.add(n, key, clip(n.Value)+" is not allowed", "")
			}
		}}},
		{"pids", count("Processes and threads.", func(l *paddock.Limits, v int) { l.PIDs = v })},
		{"disk", size("Bytes of the private writable layer.", func(l *paddock.Limits, v int64) { l.Disk = v })},
		{"files", count("Open files of one process.", func(l *paddock.Limits, v int) { l.Files = v })},
		{"io", size("Bytes per second, read and written, each.", func(l *paddock.Limits, v int64) { l.IO = v })},
		{"timeout", &shape{kind: text, doc: "How long any command may run: \"90s\", \"10m\", \"1h30m\".", pattern: timePattern, read: readTimeout}},
	}}
}

func readTimeout(r *reader, n *yaml.Node, key string) {
	d, err := parseTimeout(n.Value)
	if err != nil {
		r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), `a duration is numbers with units: "90s", "10m", "1h30m"`)
		return
	}
	r.f.Limits.Lifetime = d
}

func filesShape() *shape {
	paths := func(doc string, to func(*File) *[]string) *shape {
		return &shape{kind: list, doc: doc, elem: &shape{kind: text, pattern: pathPattern, read: func(r *reader, n *yaml.Node, key string) {
			p, ok := r.path(n, key)
			if !ok {
				return
			}
			if isGlob(p) {
				if err := checkGlob(p); err != nil {
					r.add(n, key, err.Error(), "")
					return
				}
			}
			*to(r.f) = append(*to(r.f), p)
		}}}
	}
	names := func(doc string, read func(*reader, *yaml.Node, string)) *shape {
		return &shape{kind: list, doc: doc, elem: &shape{kind: text, read: read}}
	}
	return &shape{kind: object, doc: "What is taken away from mounts and root. Denials win over mounts.", fields: []field{
		{"deny_read", paths("Paths and globs that can be neither read nor written. A glob stands for what it matches when the sandbox starts.", func(f *File) *[]string { return &f.Files.DenyRead })},
		{"deny_write", paths("Paths and globs that cannot be written, made, renamed or removed. A glob stands for what it matches when the sandbox starts.", func(f *File) *[]string { return &f.Files.DenyWrite })},
		{"protect", names("Names that are protected in every writable mount, at any depth, existing or not: \".envrc\", \"deploy/key\".", readProtect)},
		{"unprotect", names("Built-in protected names that are not to be.", readUnprotect)},
	}}
}

func readProtect(r *reader, n *yaml.Node, key string) {
	if err := protect.Check(n.Value); err != nil {
		r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), `names and their ends of paths: ".envrc", ".git/hooks"; "*" is any one component`)
		return
	}
	r.f.Files.Protect = append(r.f.Files.Protect, strings.TrimRight(n.Value, "/"))
}

func readUnprotect(r *reader, n *yaml.Node, key string) {
	texts := make([]string, 0, 128)
	for _, name := range protect.Names() {
		if name.Text == n.Value {
			r.f.Files.Unprotect = append(r.f.Files.Unprotect, n.Value)
			return
		}
		texts = append(texts, name.Text)
	}
	hint := "docs/reference/policy.md lists them"
	if near := Nearest(n.Value, texts); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.add(n, key, fmt.Sprintf("%q is not a built-in protected name", clip(n.Value)), hint)
}

func readAudit(r *reader, n *yaml.Node, _ string) {
	r.f.Audit = append(r.f.Audit, paddock.AuditKind(n.Value))
}

func readMissing(r *reader, n *yaml.Node, _ string) {
	r.f.AllowMissing = append(r.f.AllowMissing, paddock.Control(n.Value))
}
