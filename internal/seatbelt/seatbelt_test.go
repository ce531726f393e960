package seatbelt

import (
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

const project = "/Users/me/src/project"

func projectPlan() Plan {
	return Plan{
		Home: "/Users/me",
		Temp: "/private/var/folders/ab/cd/T/paddock-1",
		Spec: paddock.Spec{
			Mounts: []paddock.Mount{
				{Source: project, Write: true},
				{Source: project + "/vendor/lib"},
				{Source: "/Users/me/.local/share/agent"},
			},
			Policy: paddock.Policy{Files: paddock.FilePolicy{
				DenyRead:  []string{project + "/.env", project + "/schlüssel"},
				DenyWrite: []string{project + "/docs/licence"},
			}},
		},
		Proxy: 49152,
	}
}

func compiled(t testing.TB, p Plan) *judge {
	t.Helper()
	text, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return newJudge(t, text)
}

func TestAProfileAllowsWhatThePlanShowsAndNothingElse(t *testing.T) {
	j := compiled(t, projectPlan())
	for _, row := range []struct {
		allowed bool
		act
	}{
		// the project
		{true, act{op: "file-read-data", path: project + "/main.go"}},
		{true, act{op: "file-write-data", path: project + "/main.go", kind: "REGULAR-FILE"}},
		{true, act{op: "file-write-create", path: project + "/a/new.go", kind: "REGULAR-FILE"}},
		{true, act{op: "file-write-unlink", path: project + "/a", kind: "DIRECTORY"}},
		{true, act{op: "file-write-create", path: project + "/link", kind: "SYMLINK"}},
		{true, act{op: "process-exec", path: project + "/build/run"}},
		{true, act{op: "file-write-data", path: project + "/straße/日本語.txt"}},
		{false, act{op: "file-write-setugid", path: project + "/main"}},
		// it stays where it is
		{false, act{op: "file-write-unlink", path: project, kind: "DIRECTORY"}},
		{false, act{op: "file-write-create", path: project, kind: "SYMLINK"}},
		{false, act{op: "file-write-data", path: project + "-other/main.go"}},
		{false, act{op: "file-read-data", path: project + "-other/main.go"}},
		// the home
		{false, act{op: "file-read-data", path: "/Users/me"}},
		{false, act{op: "file-read-data", path: "/Users/me/.ssh/id_ed25519"}},
		{false, act{op: "file-write-create", path: "/Users/me/.zshrc"}},
		{false, act{op: "file-read-data", path: "/Users/me/Library/Keychains/login.keychain-db"}},
		{false, act{op: "file-read-metadata", path: "/Users/me/.ssh"}},
		{true, act{op: "file-read-metadata", path: "/Users/me/src"}},
		{false, act{op: "file-read-data", path: "/Users/me/src"}},
		// the system
		{true, act{op: "file-read-data", path: "/usr/lib/dyld"}},
		{true, act{op: "process-exec", path: "/opt/homebrew/bin/node"}},
		{false, act{op: "file-write-create", path: "/opt/homebrew/bin/git"}},
		{false, act{op: "file-read-data", path: "/opt/homebrew/var/postgres/base"}},
		{false, act{op: "file-read-data", path: "/private/etc/krb5.keytab"}},
		{false, act{op: "file-read-data", path: "/Library/Keychains/System.keychain"}},
		{true, act{op: "file-write-data", path: "/dev/null"}},
		{false, act{op: "file-write-data", path: "/dev/ttys003"}},
		{false, act{op: "file-read-data", path: "/dev/disk0"}},
		{false, act{op: "process-exec", path: "/private/tmp/planted"}},
		// read-only directories
		{true, act{op: "file-read-data", path: "/Users/me/.local/share/agent/cli.js"}},
		{false, act{op: "file-write-data", path: "/Users/me/.local/share/agent/cli.js"}},
		{true, act{op: "file-read-data", path: project + "/vendor/lib/a.c"}},
		{false, act{op: "file-write-data", path: project + "/vendor/lib/a.c"}},
		{false, act{op: "file-write-data", path: project + "/Vendor/LIB/a.c"}},
		{false, act{op: "file-write-unlink", path: project + "/vendor", kind: "DIRECTORY"}},
		// denied paths
		{false, act{op: "file-read-data", path: project + "/.env"}},
		{false, act{op: "file-read-data", path: project + "/.ENV"}},
		{false, act{op: "file-read-data", path: project + "/Schlüssel"}},
		{false, act{op: "file-read-data", path: project + "/schlu\u0308ssel/a"}},
		{true, act{op: "file-read-data", path: project + "/schluessel"}},
		{true, act{op: "file-read-data", path: project + "/.environment"}},
		{true, act{op: "file-read-data", path: project + "/docs/licence/MIT"}},
		{false, act{op: "file-write-data", path: project + "/docs/licence/MIT"}},
		{false, act{op: "file-write-unlink", path: project + "/docs", kind: "DIRECTORY"}},
		{true, act{op: "file-write-create", path: project + "/docs/other", kind: "REGULAR-FILE"}},
		// temporary files
		{true, act{op: "file-write-create", path: "/private/var/folders/ab/cd/T/paddock-1/x"}},
		{false, act{op: "file-write-create", path: "/private/var/folders/ab/cd/T/x"}},
		{false, act{op: "file-write-unlink", path: "/private/var/folders/ab/cd/T/paddock-1"}},
		// the network, and what else leads out
		{true, act{op: "network-outbound", to: "localhost:49152"}},
		{false, act{op: "network-outbound", to: "localhost:49153"}},
		{false, act{op: "network-outbound", path: "/private/var/run/mDNSResponder"}},
		{false, act{op: "network-outbound", path: project + "/docker.sock"}},
		{false, act{op: "network-bind", to: "localhost:49152"}},
		{false, act{op: "file-link", path: project + "/x"}},
		{false, act{op: "appleevent-send"}},
		{false, act{op: "mach-lookup"}},
		{false, act{op: "mach-register"}},
		{false, act{op: "ipc-posix-shm-read-data"}},
	} {
		if j.allows(row.act) != row.allowed {
			t.Errorf("%s %s%s %s: allowed is %t", row.op, row.path, row.to, row.kind, !row.allowed)
		}
	}
}

func TestProtectedNamesCannotBeChangedInAnyCase(t *testing.T) {
	p := projectPlan()
	p.Spec.Policy.Files = paddock.FilePolicy{}
	j := compiled(t, p)
	_, roots := protect.Split()
	for _, n := range protect.Names() {
		name := strings.ReplaceAll(n.Text, "*", "Any one")
		for _, at := range []string{name, "deep/er/" + strings.NewReplacer("ss", "ß", "fi", "\ufb01", "ff", "\ufb00", "s", "ſ", "k", "\u212a", "i", "I\u200c").Replace(name)} {
			full := project + "/" + at
			for _, a := range []act{{op: "file-write-create", path: full, kind: "DIRECTORY"}, {op: "file-write-unlink", path: full, kind: "DIRECTORY"}} {
				if j.allows(a) {
					t.Errorf("%s of %s is allowed", a.op, at)
				}
			}
			if a := (act{op: "file-write-data", path: full + "/below", kind: "REGULAR-FILE"}); !slices.Contains(roots, n.Text) && j.allows(a) {
				t.Errorf("%s below %s is allowed", a.op, at)
			}
			for dir := path.Dir(at); dir != "." && !strings.HasSuffix(dir, "er"); dir = path.Dir(dir) {
				for _, a := range []act{{op: "file-write-unlink", kind: "DIRECTORY"}, {op: "file-write-create", kind: "SYMLINK"}, {op: "file-write-data", kind: "REGULAR-FILE"}} {
					if a.path = project + "/" + dir; j.allows(a) {
						t.Errorf("%s %s of %s is allowed, above %s", a.op, a.kind, dir, n.Text)
					}
				}
			}
		}
	}
	for _, name := range []string{".g\u200cit/hooks/x", ".git\ufeff/config", "a/.git/objects/ab/link"} {
		if j.allows(act{op: "file-write-create", path: project + "/" + name, kind: "SYMLINK"}) {
			t.Errorf("%q is allowed", name)
		}
	}
	for _, name := range []string{".git/index", ".git/objects/ab/cdef", ".git/refs/heads/main", ".git/COMMIT_EDITMSG", "src/hooks/use.ts"} {
		if !j.allows(act{op: "file-write-create", path: project + "/" + name, kind: "REGULAR-FILE"}) {
			t.Errorf("%s is refused", name)
		}
	}
}

func TestARepositoryBesideALinkedWorkingTreeIsProtected(t *testing.T) {
	p := Plan{Home: "/Users/me", Spec: paddock.Spec{Mounts: []paddock.Mount{{Source: "/Users/me/tree", Write: true}, {Source: "/Users/me/main/.git", Write: true}}}}
	j := compiled(t, p)
	for name, allowed := range map[string]bool{"hooks/pre-commit": false, "config": false, "worktrees/tree/gitdir": false, "objects/ab/cd": true, "worktrees/tree/index": true} {
		if a := (act{op: "file-write-create", path: "/Users/me/main/.git/" + name, kind: "REGULAR-FILE"}); j.allows(a) != allowed {
			t.Errorf("%s: allowed is %t", name, !allowed)
		}
	}
}

func TestANameThatIsUnprotectedCanBeChanged(t *testing.T) {
	p := projectPlan()
	p.Spec.Policy.Files.Unprotect = []string{".git/hooks"}
	p.Spec.Policy.Files.Protect = []string{"release.key"}
	j := compiled(t, p)
	if !j.allows(act{op: "file-write-create", path: project + "/.git/hooks/pre-commit", kind: "REGULAR-FILE"}) {
		t.Error("what is unprotected cannot be changed")
	}
	if j.allows(act{op: "file-write-data", path: project + "/a/Release.Key", kind: "REGULAR-FILE"}) {
		t.Error("a name of the policy can be changed")
	}
}

func TestWithoutAProxyThereIsNoNetwork(t *testing.T) {
	p := projectPlan()
	p.Proxy = 0
	if compiled(t, p).allows(act{op: "network-outbound", to: "localhost:0"}) {
		t.Error("a connection is allowed")
	}
}

func TestWhatAProfileCannotDoIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"another file tree":     func(p *Plan) { p.Spec.Root.Kind = paddock.RootDir },
		"user":                  func(p *Plan) { p.Spec.User = "other" },
		"sudo":                  func(p *Plan) { p.Spec.Sudo = true },
		"host name":             func(p *Plan) { p.Spec.Hostname = "x" },
		"limits":                func(p *Plan) { p.Spec.Limits.Memory = 1 << 30 },
		"undo":                  func(p *Plan) { p.Spec.Undo = paddock.UndoOn },
		"audit":                 func(p *Plan) { p.Spec.Policy.Audit = []paddock.AuditKind{paddock.AuditExec} },
		"key agent":             func(p *Plan) { p.Spec.Policy.KeyAgents = []paddock.KeyAgent{{}} },
		"secrets":               func(p *Plan) { p.Proxy, p.Spec.Policy.Network.Secrets = 0, []paddock.Secret{{}} },
		"rules about hosts":     func(p *Plan) { p.Proxy, p.Spec.Policy.Network.Rules = 0, []paddock.NetworkRule{{}} },
		"network without":       func(p *Plan) { p.Spec.Policy.Network.Mode = paddock.NetworkHost },
		"at another path":       func(p *Plan) { p.Spec.Mounts[0].Target = "/work" },
		"a private layer over ": func(p *Plan) { p.Spec.Mounts[1].Overlay = true },
	} {
		p := projectPlan()
		change(&p)
		text, err := Compile(p)
		if !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), name) || text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPathsThatOpenTooMuchAreRefused(t *testing.T) {
	for _, name := range []string{
		"", ".", "a", "/", "/Users", "/users/ME", "/Users/me", "/private", "/private/var", "/private/tmp", "/Volumes", "/opt", "/Users/me/a/../..", "/Users/me/", "/Users/me//x",
		"/usr/local/bin", "/System/x", "/opt/homebrew", "/dev/fd", "/private/etc", "/Users/me/a\nb", "/Users/me/a\x00", "/Users/me/\xff", "/Users/me/a\x7f", "/Users/me/" + strings.Repeat("x", 1100),
		"/private/var/folders/ab/cd/T", "/private/var/folders/ab/cd/T/paddock-1/x",
	} {
		p := projectPlan()
		p.Spec.Mounts = []paddock.Mount{{Source: name, Write: true}}
		if text, err := Compile(p); !errors.Is(err, paddock.Invalid) || text != "" {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Compile(Plan{}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("without a home: %v", err)
	}
	for _, name := range []string{"/", "/Users/me", "/private/var/folders", "x"} {
		p := Plan{Home: "/Users/me", Temp: name}
		if _, err := Compile(p); !errors.Is(err, paddock.Invalid) {
			t.Errorf("temporary files in %q: %v", name, err)
		}
	}
}

// allBut lists the built-in protected names but a few.
func allBut(few ...string) []string {
	var list []string
	for _, n := range protect.Names() {
		if !slices.Contains(few, n.Text) {
			list = append(list, n.Text)
		}
	}
	return list
}

// The profile of a project, with few protected names so that the file changes only with the compiler.
// PADDOCK_UPDATE=1 writes it.
func TestTheProfileOfAProject(t *testing.T) {
	const golden = "testdata/project.sb"
	p := projectPlan()
	p.Spec.Policy.Files.Unprotect = allBut(".git/hooks", ".git/worktrees/*/config", ".hg", ".envrc")
	text, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the profile is not that of %s; look at the difference, and write it anew with PADDOCK_UPDATE=1:\n%s", golden, text)
	}
}

// Whatever a path is called, it changes strings of the profile and nothing else, and is denied where it is denied.
func FuzzNamesCannotChangeAProfile(f *testing.F) {
	for _, name := range []string{"x", `x")) (allow default) (allow file-write* (subpath "/`, `\`, `\"`, `a\`, "(.*)", "[^/]*|.*$", "; x", "#\"", "été", "e\u0301", "Straße", "SS", "k", "a*?{3}", "$^", "日本", "%s%n", "(param \"HOME\")"} {
		f.Add(name)
	}
	// No name of this test, which have 100 bytes at most, is one of these.
	ro, dir, free := strings.Repeat("r", 101), strings.Repeat("w", 101), strings.Repeat("z", 101)
	few := allBut(".git/hooks")
	plan := func(name string) Plan {
		return Plan{Home: "/Users/me", Proxy: 1, Temp: "/private/var/folders/z/" + name, Spec: paddock.Spec{
			Mounts: []paddock.Mount{{Source: "/Users/me/" + name, Write: true}, {Source: "/Users/me/" + name + "/" + ro}},
			Policy: paddock.Policy{Files: paddock.FilePolicy{Unprotect: few, DenyRead: []string{"/Users/me/" + name + "/" + name}, DenyWrite: []string{"/Users/me/" + name + "/" + dir + "/" + name}}},
		}}
	}
	plain, err := Compile(plan("plain"))
	if err != nil {
		f.Fatal(err)
	}
	want := shape(newJudge(f, plain).rules)
	f.Fuzz(func(t *testing.T, name string) {
		if strings.Contains(name, "/") || len(name) > 100 {
			return // no name of one file
		}
		text, err := Compile(plan(name))
		if err != nil {
			if !errors.Is(err, paddock.Invalid) || text != "" {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		j := newJudge(t, text)
		if got := shape(j.rules); got != want {
			t.Fatalf("%q changes the profile:\n%s", name, text)
		}
		at := "/Users/me/" + name
		// A denial takes these characters for any text.
		if !strings.ContainsAny(name, asASCII) && !j.allows(act{op: "file-read-data", path: at + "/" + free}) || j.allows(act{op: "file-read-data", path: "/Users/me/" + free}) {
			t.Fatalf("%q: what is read is not what is shown", name)
		}
		for _, a := range []act{{op: "file-read-data", path: at + "/" + name}, {op: "file-write-data", path: at + "/" + dir + "/" + name}, {op: "file-write-unlink", path: at + "/" + dir}, {op: "file-write-create", path: at + "/" + ro + "/x"}, {op: "file-write-unlink", path: at}, {op: "file-write-data", path: at + "/.git/hooks/x"}} {
			if j.allows(a) {
				t.Fatalf("%q: %s of %q is allowed", name, a.op, a.path)
			}
		}
	})
}
