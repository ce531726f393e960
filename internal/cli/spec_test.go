package cli

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
)

// planOf reads flags as run does.
func planOf(t *testing.T, dir string, env map[string]string, args ...string) (paddock.Spec, error) {
	t.Helper()
	f := &specFlags{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(args); err != nil {
		return paddock.Spec{}, err
	}
	p, err := f.plan(invoke(dir, env, nil).App, fs.Changed)
	if err != nil {
		return paddock.Spec{}, err
	}
	return p.spec, nil
}

func TestNoFlagsAreTheZeroSpec(t *testing.T) {
	spec, err := planOf(t, "/", nil)
	if err != nil || !reflect.DeepEqual(spec, paddock.Spec{}) {
		t.Errorf("%+v, %v", spec, err)
	}
}

func TestFlagsBecomeASpec(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"project", "data", "root/usr"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := planOf(t, dir, map[string]string{"TOKEN": "t"},
		"--tier", "jail", "--root", "dir:root", "--workspace", "project", "--read", "data:/data", "--read", "/etc/hosts",
		"--env", "A=b=c", "--env", "TOKEN", "--env", "EMPTY=", "--memory", "512M", "--cpus", "1.5", "--pids", "99", "--disk", "1G",
		"--files", "77", "--io", "5M", "--timeout", "90s", "--user", "joe", "--hostname", "box", "--deny-read", "project/secret",
		"--deny-write", "/data/fixed", "--unprotect", ".git/hooks", "--allow-missing", "landlock")
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(dir, "project")
	want := paddock.Spec{
		Tier: paddock.Jail,
		Root: paddock.Root{Kind: paddock.RootDir, Path: filepath.Join(dir, "root")},
		Mounts: []paddock.Mount{
			{Source: project, Write: true}, {Source: filepath.Join(dir, "data"), Target: "/data"}, {Source: "/etc/hosts"},
		},
		Dir: project, User: "joe", Hostname: "box",
		Env: map[string]string{"A": "b=c", "TOKEN": "t", "EMPTY": ""},
		Limits: paddock.Limits{
			Memory: 512 << 20, CPUs: 1.5, PIDs: 99, Disk: 1 << 30, Files: 77, IO: 5 << 20, Lifetime: 90 * time.Second,
		},
		Policy: paddock.Policy{Files: paddock.FilePolicy{
			DenyRead: []string{filepath.Join(project, "secret")}, DenyWrite: []string{"/data/fixed"}, Unprotect: []string{".git/hooks"},
		}},
		AllowMissing: []paddock.Control{paddock.ControlLandlock},
	}
	if !reflect.DeepEqual(spec, want) {
		t.Errorf("got  %+v\nwant %+v", spec, want)
	}
}

func TestFlagsOfTheNetworkBecomeRules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"key": "the-key\n", "policy.yaml": `version: 1
network:
  mode: list
  rules: [{allow: file.example}]
  groups: {mine: [g.example]}
  secrets: {B: {from: "env:TOKEN", hosts: [file.example]}, C: {from: "env:TOKEN", hosts: [file.example]}}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"TOKEN": "the-token"}
	for _, row := range []struct {
		args []string
		want paddock.NetworkPolicy
	}{
		{
			[]string{"--allow", "A.example, *.b.example:8443", "--allow", "[::1]:80", "--deny", "x.b.example", "--secret", "T=env:TOKEN@a.example,*.b.example:8443", "--secret", "K=file:key@a.example"},
			paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "a.example"}, {Host: "*.b.example", Ports: []uint16{8443}}, {Host: "::1", Ports: []uint16{80}}, {Deny: true, Host: "x.b.example"}}, Secrets: []paddock.Secret{
				{Name: "T", Value: "the-token", Hosts: []string{"a.example", "*.b.example:8443"}}, {Name: "K", Value: "the-key", Hosts: []string{"a.example"}},
			}},
		},
		{[]string{"--mode", "read-only", "--workspace", dir, "--allow", "a.example"}, paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "a.example"}}}},
		{[]string{"--deny", "a.example"}, paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Deny: true, Host: "a.example"}}}},
		{
			[]string{"--policy", filepath.Join(dir, "policy.yaml"), "--allow", "group:mine", "--secret", "C=file:" + filepath.Join(dir, "key") + "@g.example"},
			paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "file.example"}, {Host: "g.example"}}, Secrets: []paddock.Secret{
				{Name: "B", Value: "the-token", Hosts: []string{"file.example"}}, {Name: "C", Value: "the-key", Hosts: []string{"g.example"}},
			}},
		},
	} {
		spec, err := planOf(t, dir, env, row.args...)
		if err != nil {
			t.Errorf("%q: %v", row.args, err)
			continue
		}
		row.want.Mode = paddock.NetworkList
		if got := spec.Policy.Network; !reflect.DeepEqual(got, row.want) {
			t.Errorf("%q: %+v", row.args, got)
		}
	}
	spec, err := planOf(t, dir, env, "--allow", "group:model-providers,group:code-hosts")
	if err != nil || len(spec.Policy.Network.Rules) < 10 {
		t.Errorf("%+v, %v", spec.Policy.Network, err)
	}
}

func TestASecretIsReadFromAPlainFileAlone(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("value"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "plain", "dir": "."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := readSecret(plain, 5); err != nil || string(data) != "value" {
		t.Errorf("%q, %v", data, err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "link"):         "a symbolic link leads there; name the real place, " + plain,
		filepath.Join(dir, "dir", "plain"): "a symbolic link leads there; name the real place, " + plain,
		dir:                                "it is no plain file",
		"/dev/null":                        "it is no plain file",
		filepath.Join(dir, "absent"):       "there is no such file",
	} {
		if _, err := readSecret(name, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readSecret(plain, 4); err == nil || !strings.Contains(err.Error(), "larger than any secret") {
		t.Errorf("%v", err)
	}
}

func TestFlagsWinOverThePolicyFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
limits:
  memory: 1G
  pids: 10
environment:
  set: {A: file, B: file}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	spec, err := planOf(t, dir, nil, "--policy", file, "--memory", "2G", "--env", "A=flag")
	if err != nil {
		t.Fatal(err)
	}
	if spec.Limits.Memory != 2<<30 || spec.Limits.PIDs != 10 || !maps.Equal(spec.Env, map[string]string{"A": "flag", "B": "file"}) {
		t.Errorf("%+v", spec)
	}
}

func TestWrongFlagsAreRefusedWithAHint(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"missing workspace", []string{"--workspace", "nowhere"}, "workspace " + filepath.Join(dir, "nowhere") + ": there is no such directory"},
		{"workspace is a file", []string{"--workspace", plain}, "is not a directory"},
		{"workspace is home", []string{"--workspace", home}, "holds your whole home directory"},
		{"workspace is a link to home", []string{"--workspace", "link"}, "holds your whole home directory"},
		{"workspace is above home", []string{"--workspace", dir}, "holds your whole home directory"},
		{"workspace is everything", []string{"--workspace", "/"}, "workspace / is the whole machine"},
		{"a mode about what is above home", []string{"--mode", "workspace-write"}, "the working directory " + dir + " holds your whole home directory"},
		{"a mode that only shows it", []string{"--mode", "read-only"}, "the working directory " + dir + " holds your whole home directory"},
		{"empty workspace", []string{"--workspace", ""}, "--workspace is empty"},
		{"missing mount", []string{"--read", "nowhere"}, "--read nowhere: there is no such file or directory"},
		{"relative target", []string{"--read", plain + ":x"}, `the target "x" is not absolute`},
		{"empty source", []string{"--write", ":/x"}, "the path is empty"},
		{"one target twice", []string{"--read", plain, "--write", plain}, "two flags put different things at " + plain},
		{"variable that is not set", []string{"--env", "NOPE"}, "--env NOPE: it is not set in your environment"},
		{"variable without a name", []string{"--env", "=x"}, "the name is empty"},
		{"unknown control", []string{"--allow-missing", "seccom"}, "--allow-missing seccom: there is no such control"},
		{"image root", []string{"--root", "image:"}, "there is no such kind of root"},
		{"missing root", []string{"--root", "/no/such/root"}, "--root /no/such/root: there is no such directory"},
		{"workspace that the shell did not expand", []string{"--workspace", "~/proj"}, "there is no such directory"},
		{"empty root", []string{"--root", empty}, "the directory is empty"},
		{"unknown protected name", []string{"--unprotect", "foo"}, "--unprotect foo: there is no such protected name"},
		{"memory without a unit", []string{"--memory", "512"}, "--memory is 512 bytes, in which nothing runs"},
		{"disk without a unit", []string{"--disk", "10"}, "--disk is 10 bytes, in which nothing runs"},
		{"two policies", []string{"--policy", "a", "--mode", "full"}, "--mode and --policy: each is a whole policy"},
		{"missing policy", []string{"--policy", "nowhere.yaml"}, "policy file nowhere.yaml: there is no such file"},
		{"unknown mode", []string{"--mode", "yolo"}, "--mode yolo"},
		{"allow beside a mode that allows all", []string{"--mode", "full", "--workspace", empty, "--allow", "a.example"}, "--allow beside --mode full, which is the whole network"},
		{"deny beside a mode that allows all", []string{"--mode", "full", "--workspace", empty, "--deny", "a.example"}, "--deny beside --mode full"},
		{"secret beside a mode that allows all", []string{"--mode", "full", "--workspace", empty, "--secret", "A=env:HOME@a.example"}, "--secret beside --mode full"},
		{"allow of a URL", []string{"--allow", "https://a.example/"}, "--allow https://a.example/: a host, not a URL"},
		{"allow of nothing", []string{"--allow", "a.example,"}, "--allow a.example,: "},
		{"allow of an unknown group", []string{"--allow", "group:code-host"}, `did you mean "code-hosts"?`},
		{"deny of no port", []string{"--deny", "a.example:0"}, "a port is 1 to 65535"},
		{"secret without a source", []string{"--secret", "hunter2"}, `--secret: there is no "=" in it`},
		{"secret with its value", []string{"--secret", "A=hunter2@a.example"}, "--secret A: a value cannot be given here: everybody on this machine can read command lines"},
		{"secret without a host", []string{"--secret", "A=env:HOME"}, "--secret A: it says no host"},
		{"secret of a variable that is not set", []string{"--secret", "A=env:NOPE@a.example"}, "--secret A: the variable NOPE is not set"},
		{"secret of a file that is not there", []string{"--secret", "A=file:nope@a.example"}, "--secret A: the file " + filepath.Join(dir, "nope") + ": there is no such file"},
		{"secret that is given twice", []string{"--secret", "A=env:HOME@a.example", "--secret", "A=env:HOME@b.example"}, "--secret A is given twice"},
		{"secret for everybody", []string{"--secret", "A=env:HOME@*"}, "a secret is bound to names"},
		{"secret without a name", []string{"--secret", "=env:HOME@a.example"}, "is no name of an environment variable"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := planOf(t, dir, map[string]string{"HOME": home}, row.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			message, hint := words(err)
			if strings.Contains(message+hint, "hunter2") {
				t.Errorf("it repeats what may be the value: %q, %q", message, hint)
			}
			if !strings.Contains(message, row.want) {
				t.Errorf("said %q, want %q", message, row.want)
			}
			if hint == "" {
				t.Errorf("no hint beside %q", message)
			}
		})
	}
}

func TestWrongNumbersAreRefusedInWords(t *testing.T) {
	const number, count, span = "not a number above 0", "not a whole number above 0", "a time is a number and a unit, such as 30s or 5m"
	for _, row := range []struct{ flag, value, want string }{
		{"--cpus", "0", number}, {"--cpus", "NaN", number}, {"--cpus", "inf", number}, {"--cpus", "-1", number}, {"--cpus", "two", number},
		{"--pids", "-1", count}, {"--pids", "1.5", count}, {"--files", "0", count},
		{"--timeout", "0s", span}, {"--timeout", "10", span}, {"--timeout", "-5m", span},
		{"--memory", "0", "a size is a number and a unit"},
	} {
		_, err := planOf(t, "/", nil, row.flag+"="+row.value)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %s: said %v, want %q", row.flag, row.value, err, row.want)
		}
	}
}

func TestAWorkingDirectoryIsNeededOnlyForWhatIsRelativeToIt(t *testing.T) {
	for _, row := range []struct {
		args   []string
		needed bool
	}{
		{nil, false},
		{[]string{"--read", "/etc/hosts", "--root", "host", "--workspace", "/usr/share", "--dir", "/", "--mode", "read-only"}, false},
		{[]string{"--read", "x"}, true},
		{[]string{"--workspace", "."}, true},
		{[]string{"--deny-write", "x"}, true},
		{[]string{"--secret", "A=file:x@a.example"}, true},
		{[]string{"--dir", "x"}, true},
		{[]string{"--root", "dir:x"}, true},
		{[]string{"--mode", "read-only"}, true},
		{[]string{"--srt-settings", "/etc/hosts"}, true},
	} {
		f := &specFlags{}
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse(row.args); err != nil {
			t.Fatal(err)
		}
		a := invoke("/", nil, nil).App
		a.Dir = func() (string, error) { return "", os.ErrNotExist }
		_, err := f.plan(a, fs.Changed)
		if needed := err != nil && strings.Contains(err.Error(), "working directory"); needed != row.needed || !needed && err != nil {
			t.Errorf("%q: %v", row.args, err)
		}
	}
}

func TestAPathWithNULIsInvalid(t *testing.T) {
	_, err := parseMount("/etc\x00/passwd", "/")
	if paddock.KindOf(err) != paddock.Invalid || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("%v", err)
	}
}
