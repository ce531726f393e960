package drivertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func specPromises() []group {
	return []group{{promises: []promise{
		{"a spec that is wrong is refused, whichever field it is", refusesBadSpecs},
		{"the sandbox calls itself what the spec says", hostname},
	}}, {can: []paddock.Capability{paddock.CanRootDir}, promises: []promise{
		{"a directory as root is seen whole and never written", rootDir},
	}}}
}

// A badSpec is a spec that every driver must refuse.
type badSpec struct {
	what   string
	change func(*paddock.Spec)
	kinds  []paddock.Kind
}

func badSpecs(t testing.TB, s *suite) []badSpec {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	invalid := []paddock.Kind{paddock.Invalid}
	absent := []paddock.Kind{paddock.Invalid, paddock.NotFound}
	// A tier may refuse an unsupported field before it checks the value.
	either := []paddock.Kind{paddock.Invalid, paddock.NotFound, paddock.Unsupported}
	mount := func(m paddock.Mount) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { spec.Mounts = append(spec.Mounts, m) }
	}
	limit := func(change func(*paddock.Limits)) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { change(&spec.Limits) }
	}
	root := func(r paddock.Root) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { spec.Root = r }
	}
	files := func(p paddock.FilePolicy) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { spec.Policy.Files = p }
	}
	network := func(p paddock.NetworkPolicy) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { spec.Policy.Network = p }
	}
	list := func(rules ...paddock.NetworkRule) func(*paddock.Spec) {
		return network(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules})
	}
	agents := func(a ...paddock.KeyAgent) func(*paddock.Spec) {
		return func(spec *paddock.Spec) { spec.Policy.KeyAgents = a }
	}
	rows := []badSpec{
		{"an unknown tier", func(spec *paddock.Spec) { spec.Tier = "nonsense" }, either},
		{"another tier", func(spec *paddock.Spec) { spec.Tier = anotherTier(s.info.Tier) }, either},
		{"an unknown root", root(paddock.Root{Kind: "nonsense"}), either},
		{"a root without a path", root(paddock.Root{Kind: paddock.RootDir}), either},
		{"a relative root", root(paddock.Root{Kind: paddock.RootDir, Path: "relative"}), either},
		{"a missing root", root(paddock.Root{Kind: paddock.RootDir, Path: filepath.Join(dir, "missing")}), either},
		{"a file as root", root(paddock.Root{Kind: paddock.RootDir, Path: file}), either},
		{"NUL in the root", root(paddock.Root{Kind: paddock.RootDir, Path: dir + "\x00"}), either},
		{"a mount of nothing", mount(paddock.Mount{Target: "/mnt"}), either},
		{"a relative source", mount(paddock.Mount{Source: "relative", Target: "/mnt"}), either},
		{"a missing source", mount(paddock.Mount{Source: filepath.Join(dir, "missing"), Target: "/mnt"}), either},
		{"NUL in a source", mount(paddock.Mount{Source: dir + "\x00", Target: "/mnt"}), either},
		{"a relative target", mount(paddock.Mount{Source: dir, Target: "relative"}), either},
		{"NUL in a target", mount(paddock.Mount{Source: dir, Target: "/mnt\x00"}), either},
		{"a target that goes up", mount(paddock.Mount{Source: dir, Target: "/mnt/../../etc"}), either},
		{"the root as target", mount(paddock.Mount{Source: dir, Target: "/"}), either},
		{"a user with NUL", func(spec *paddock.Spec) { spec.User = "a\x00b" }, absent},
		{"an unknown user", func(spec *paddock.Spec) { spec.User = "nobody-of-that-name" }, absent},
		{"a variable without a name", func(spec *paddock.Spec) { spec.Env = map[string]string{"": "x"} }, invalid},
		{"= in a variable's name", func(spec *paddock.Spec) { spec.Env = map[string]string{"A=B": "x"} }, invalid},
		{"NUL in a variable", func(spec *paddock.Spec) { spec.Env = map[string]string{"A": "x\x00"} }, invalid},
		{"an environment of more than MaxEnv bytes", func(spec *paddock.Spec) {
			spec.Env = map[string]string{"A": strings.Repeat("x", 100<<10), "B": strings.Repeat("x", 100<<10), "C": strings.Repeat("x", 100<<10)}
		}, invalid},
		{"a relative directory", func(spec *paddock.Spec) { spec.Dir = "relative" }, invalid},
		{"NUL in the directory", func(spec *paddock.Spec) { spec.Dir = "/usr\x00" }, invalid},
		{"a missing directory", func(spec *paddock.Spec) { spec.Dir = "/no/such/directory" }, absent},
		{"a host name of 65 letters", func(spec *paddock.Spec) { spec.Hostname = strings.Repeat("h", 65) }, invalid},
		{"a host name with NUL", func(spec *paddock.Spec) { spec.Hostname = "a\x00b" }, invalid},
		{"a host name with a newline", func(spec *paddock.Spec) { spec.Hostname = "a\nb" }, invalid},
		{"negative memory", limit(func(l *paddock.Limits) { l.Memory = -1 }), either},
		{"negative processors", limit(func(l *paddock.Limits) { l.CPUs = -1 }), either},
		{"processors that are no number", limit(func(l *paddock.Limits) { l.CPUs = nan() }), either},
		{"negative processes", limit(func(l *paddock.Limits) { l.PIDs = -1 }), either},
		{"negative disk", limit(func(l *paddock.Limits) { l.Disk = -1 }), either},
		{"negative files", limit(func(l *paddock.Limits) { l.Files = -1 }), either},
		{"negative IO", limit(func(l *paddock.Limits) { l.IO = -1 }), either},
		{"a negative lifetime", limit(func(l *paddock.Limits) { l.Lifetime = -1 }), either},
		{"a relative path that may not be read", files(paddock.FilePolicy{DenyRead: []string{"relative"}}), either},
		{"a relative path that may not be written", files(paddock.FilePolicy{DenyWrite: []string{"relative"}}), either},
		{"NUL in a policy", files(paddock.FilePolicy{DenyRead: []string{"/a\x00b"}}), either},
		{"an empty protected name", files(paddock.FilePolicy{Protect: []string{""}}), either},
		{"a protected name taken away that is none", files(paddock.FilePolicy{Unprotect: []string{"no-such-name"}}), either},
		{"an unknown network", network(paddock.NetworkPolicy{Mode: "nonsense"}), either},
		{"rules without a list", network(paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "example.com"}}}), either},
		{"a rule without a host", list(paddock.NetworkRule{}), either},
		{"an unknown key agent", agents(paddock.KeyAgent{Kind: "nonsense", Socket: file}), either},
		{"a key agent without a socket", agents(paddock.KeyAgent{Kind: paddock.KeyAgentSSH}), either},
		{"a key agent whose socket is missing", agents(paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Socket: filepath.Join(dir, "missing")}), either},
		{"a key agent whose socket is a file", agents(paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Socket: file}), either},
		{"a key agent with a key that has no name", agents(paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Socket: file, Keys: []string{""}}), either},
		{"a rule for a host with NUL", list(paddock.NetworkRule{Host: "evil\x00.example.com"}), either},
		{"a rule for port 0 and another", list(paddock.NetworkRule{Host: "example.com", Ports: []uint16{443, 0}}), either},
		{"an unknown kind of event", func(spec *paddock.Spec) {
			spec.Policy.Audit = []paddock.AuditKind{paddock.AuditExec, "nonsense"}
		}, invalid},
		{"a control that is none", func(spec *paddock.Spec) {
			spec.AllowMissing = append(spec.AllowMissing, "nonsense")
		}, invalid},
	}
	long := strings.Repeat("\x7f", 64<<10)
	rows = append(rows,
		badSpec{"a long ID", func(spec *paddock.Spec) { spec.ID = paddock.ID(long) }, invalid},
		badSpec{"a long tier", func(spec *paddock.Spec) { spec.Tier = paddock.Tier(long) }, either},
		badSpec{"a long host name", func(spec *paddock.Spec) { spec.Hostname = long }, invalid},
		badSpec{"a long kind of root", root(paddock.Root{Kind: paddock.RootKind(long)}), either},
		badSpec{"a long kind of network", network(paddock.NetworkPolicy{Mode: paddock.NetworkMode(long)}), either},
	)
	for _, id := range badIDs() {
		rows = append(rows, badSpec{"the ID " + string(id), func(spec *paddock.Spec) { spec.ID = id }, invalid})
	}
	return rows
}

func nan() float64 {
	var zero float64
	return zero / zero
}

func anotherTier(t paddock.Tier) paddock.Tier {
	if t == paddock.Sim {
		return paddock.Jail
	}
	return paddock.Sim
}

func refusesBadSpecs(t *testing.T, s *suite) {
	for _, row := range badSpecs(t, s) {
		sb, err := s.driver.Create(bounded(t), s.spec(row.change))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, row.what, err, row.kinds...)
		if err != nil && len(err.Error()) > longError {
			t.Errorf("%s: the error has %d bytes", row.what, len(err.Error()))
		}
	}
}

// longError is the maximum of an error's text, in bytes. Servers and logs keep errors for a while, so
// they may not quote a field of any length.
const longError = 8 << 10

func hostname(t *testing.T, s *suite) {
	if s.absent(paddock.ControlUTSNS) {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) { spec.Hostname = "farm" }))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, "a host name that cannot be given", err, paddock.Unsupported)
		return
	}
	for asked, want := range map[string]string{"": "paddock", "farm": "farm"} {
		b := s.own(t, func(spec *paddock.Spec) { spec.Hostname = asked })
		if got := b.must(t, "uname -n"); got != want+"\n" {
			t.Errorf("asked %q, it calls itself %q", asked, got)
		}
	}
}

// rootDir copies the probe and the files that define a user into a directory. It needs no
// file of the host.
func rootDir(t *testing.T, s *suite) {
	built, err := s.probe()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"bin", "etc", "proc", "dev", "tmp", "home", "sys", "run"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"bin/probe":  string(data),
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nfarmer:x:1234:1234::/home/farmer:/bin/sh\n",
		"etc/group":  "root:x:0:\nfarmer:x:1234:\n",
		"etc/marker": "marker",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
		spec.Root = paddock.Root{Kind: paddock.RootDir, Path: dir}
		spec.User = "farmer"
	}))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.removeAfter(t, sb)
	b := box{Sandbox: sb, s: s}
	if got := string(b.get(t, "/etc/marker")); got != "marker" {
		t.Errorf("%q", got)
	}
	if r := b.run(t, paddock.Cmd{Args: []string{"/bin/probe", "hello"}}); r.out != "hello\n" {
		t.Errorf("%+v", r)
	}
	st, err := b.Status(bounded(t))
	if err != nil || st.User != "farmer" {
		t.Errorf("%+v, %v", st, err)
	}
	b.put(t, "/home/farmer/new", []byte("x"), 0)
	b.put(t, "/tmp/new", []byte("x"), 0)
	_ = b.write(bounded(t), "/etc/marker", strings.NewReader("changed"), paddock.CreateOptions{})
	wantTree(t, dir, before)
}
