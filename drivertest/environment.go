package drivertest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func environmentPromises() []group {
	return []group{{promises: []promise{
		{"the environment is the tier's short list, the spec's and the command's, and nothing else", onlyAllowed},
		{"the command's variables win over the spec's, and those over the tier's", precedence},
		{"no variable of the host's enters", hostVariables},
		{"a variable holds any bytes but NUL", oddVariables},
		{"a variable that cannot be is refused", badVariables},
		{"HOME and TMPDIR can be written", writableHomes},
		{"a program is looked up in the command's own PATH", ownPath},
		{"a command that names no directory runs in the sandbox's", defaultDir},
		{"the spec's directory is where commands run", specDir},
		{"a command's own directory wins", commandDir},
		{"a directory that does not exist is told as such", missingDir},
	}}, {can: []paddock.Capability{paddock.CanPrograms}, walls: []paddock.Control{paddock.ControlMountNS}, promises: []promise{
		{"programs that a command installs below the home are found by the next one", installedPrograms},
		{"a login shell finds the programs that other commands find", loginPath},
	}}}
}

// installedPrograms does what npm, uv, go and cargo do with the variables that they obey.
func installedPrograms(t *testing.T, s *suite) {
	b := s.own(t)
	if s.h.Base.Root.Kind == paddock.RootDir {
		return // the tree has its own places
	}
	for i, dir := range []string{`$NPM_CONFIG_PREFIX/bin`, `${UV_TOOL_BIN_DIR:-$HOME/.local/bin}`, `${GOBIN:-$HOME/go/bin}`, `${CARGO_INSTALL_ROOT:-$HOME/.cargo}/bin`} {
		name := fmt.Sprint("dt-installed-", i)
		b.must(t, `mkdir -p "`+dir+`" && printf '#!/bin/sh\necho found\n' >"`+dir+`/$1" && chmod +x "`+dir+`/$1"`, name)
		if r := b.run(t, paddock.Cmd{Args: []string{name}}); r.out != "found\n" {
			t.Errorf("%s: %+v", dir, r)
		}
	}
}

func loginPath(t *testing.T, s *suite) {
	b := s.own(t)
	if s.h.Base.Root.Kind == paddock.RootDir {
		return // the tree has its own profile
	}
	path := b.environ(t, nil)["PATH"]
	for _, shell := range []string{"sh", "bash"} {
		if b.sh(t, "command -v "+shell).exit.Code != 0 {
			continue
		}
		r := b.run(t, paddock.Cmd{Args: []string{shell, "-l", "-c", `printf %s "$PATH"`}})
		if r.out != path && !strings.HasPrefix(r.out, path+":") {
			t.Errorf("%s: %+v; other commands have the PATH %q", shell, r, path)
		}
	}
}

// tierVariables returns the list in the comment of Spec.Env.
func tierVariables() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR"}
}

// environ returns the variables of a command, before a shell adds to them.
func (b box) environ(t testing.TB, env map[string]string) map[string]string {
	t.Helper()
	r := b.run(t, paddock.Cmd{Args: []string{"env", "-0"}, Env: env})
	if r.exit.Code != 0 {
		t.Fatalf("env: %+v", r)
	}
	vars := make(map[string]string)
	for v := range strings.SplitSeq(strings.TrimSuffix(r.out, "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := vars[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		vars[name] = value
	}
	return vars
}

func onlyAllowed(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Env = map[string]string{"FROM_SPEC": "1"} })
	vars := b.environ(t, map[string]string{"FROM_CMD": "2"})
	if vars["FROM_SPEC"] != "1" || vars["FROM_CMD"] != "2" {
		t.Errorf("the asked ones are not there: %q", vars)
	}
	allowed := append(tierVariables(), "FROM_SPEC", "FROM_CMD")
	for _, name := range paddock.ToolchainVariables() {
		if vars[name] != "" && b.exists(t, vars[name]) {
			allowed = append(allowed, name)
		}
	}
	allowed = slices.Concat(allowed, paddock.CertificateVariables(), paddock.InstallVariables())
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s=%q is on no list", name, clip(vars[name]))
		}
	}
	for _, name := range []string{"PATH", "HOME", "USER"} {
		if vars[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

func precedence(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Env = map[string]string{"BOTH": "spec", "LANG": "spec", "TERM": "spec"}
	})
	vars := b.environ(t, map[string]string{"BOTH": "cmd", "TERM": "cmd"})
	if vars["BOTH"] != "cmd" || vars["LANG"] != "spec" || vars["TERM"] != "cmd" {
		t.Errorf("%q", vars)
	}
}

func hostVariables(t *testing.T, s *suite) {
	b := s.box(t)
	if got := b.must(t, "env"); strings.Contains(got, secret) {
		t.Errorf("the host's %s is visible: %q", secret, got)
	}
}

func oddVariables(t *testing.T, s *suite) {
	want := map[string]string{
		"EMPTY":     "",
		"NEWLINE":   "a\nb\n",
		"EQUALS":    "a=b=c",
		"UNICODE":   "héllo → 🐎",
		"BYTES":     "\xff\xfe\x01",
		"LONG":      strings.Repeat("x", 100_000),
		"lower.dot": "odd name",
	}
	got := s.box(t).environ(t, want)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, clip(got[name]), clip(value))
		}
	}
}

func badVariables(t *testing.T, s *suite) {
	b := s.box(t)
	for what, env := range map[string]map[string]string{
		"an empty name":   {"": "x"},
		"= in a name":     {"A=B": "x"},
		"NUL in a name":   {"A\x00B": "x"},
		"NUL in a value":  {"A": "x\x00y"},
		"only an equals ": {"=": "x"},
	} {
		_, err := b.try(bounded(t), paddock.Cmd{Args: []string{"env"}, Env: env})
		wantKind(t, what, err, paddock.Invalid)
	}
}

func writableHomes(t *testing.T, s *suite) {
	s.box(t).must(t, `set -e
for d in "$HOME" "${TMPDIR:-/tmp}"; do
	echo x > "$d/dt-$$"; rm "$d/dt-$$"
done`)
}

func ownPath(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir bin")
	b.put(t, b.in("bin/greet"), []byte("#!"+s.h.Shell+"\necho mine\n"), 0o755)
	r := b.run(t, paddock.Cmd{Args: []string{"greet"}, Env: map[string]string{"PATH": b.in("bin")}})
	if r.out != "mine\n" {
		t.Errorf("%+v", r)
	}
}

func defaultDir(t *testing.T, s *suite) {
	b := s.box(t)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	r := b.run(t, paddock.Cmd{Args: []string{s.h.Shell, "-c", `pwd; cd "$HOME"; pwd`}})
	pwd, home, _ := strings.Cut(strings.TrimSuffix(r.out, "\n"), "\n")
	if pwd != st.Dir {
		t.Errorf("pwd is %q, Status says %q", pwd, st.Dir)
	}
	if len(s.h.Base.Mounts) == 0 && s.h.Base.Dir == "" && pwd != home {
		t.Errorf("without a mount it is %q, not the home %q", pwd, home)
	}
}

func specDir(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Dir = "/usr" })
	if r := b.run(t, paddock.Cmd{Args: []string{"pwd"}}); r.out != "/usr\n" {
		t.Errorf("%+v", r)
	}
}

func commandDir(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir 'a dir'")
	r := b.run(t, paddock.Cmd{Args: []string{"pwd"}, Dir: b.in("a dir")})
	if r.out != path.Join(b.dir, "a dir")+"\n" {
		t.Errorf("%+v", r)
	}
}

func missingDir(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), nil, 0)
	for what, row := range map[string]struct {
		dir   string
		kinds []paddock.Kind
	}{
		"missing":   {b.in("missing"), []paddock.Kind{paddock.NotFound}},
		"a file":    {b.in("file"), []paddock.Kind{paddock.NotFound, paddock.Invalid}},
		"relative":  {"relative", []paddock.Kind{paddock.Invalid}},
		"with NUL":  {b.dir + "\x00", []paddock.Kind{paddock.Invalid}},
		"very long": {"/" + strings.Repeat("x/", 3000), []paddock.Kind{paddock.Invalid, paddock.NotFound}},
	} {
		_, err := b.try(bounded(t), paddock.Cmd{Args: []string{"pwd"}, Dir: row.dir})
		wantKind(t, what, err, row.kinds...)
	}
}
