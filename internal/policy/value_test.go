package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "512m": 512 << 20, "512M": 512 << 20, "2GiB": 2 << 30, "2gib": 2 << 30, "1.5g": 3 << 29,
		"1kB": 1000, "1k": 1024, "1KiB": 1024, "10MB": 10_000_000, "7b": 7, "1t": 1 << 40, "0.5k": 512, "8388607t": 8388607 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "m", "-1", "+1", "1 m", " 1", "1mm", "1e3", "0x10", "1_000", ".5g", "1.g", "1..5g", "1.1234567g", "0", "0.0001", "٣m", "8388608t", "9223372036854775808", "99999999999999999999", "1İB", "1m\x00"} {
		if got, err := ParseSize(text); err == nil || !errors.Is(err, paddock.Invalid) {
			t.Errorf("ParseSize(%q) = %d, %v", text, got, err)
		}
	}
}

func TestGlobs(t *testing.T) {
	files := fstest.MapFS{
		"w/a/.env": {}, "w/.env": {}, "w/a/b/.env": {}, "w/a/b/c.key": {}, "w/env": {}, "w/x1": {}, "w/x22": {}, "w/d/e/f": {}, "w/link": {Mode: fs.ModeSymlink, Data: []byte("/w/a")},
	}
	for _, tc := range []struct {
		glob string
		want []string
	}{
		{"/w/**/.env", []string{"/w/.env", "/w/a/.env", "/w/a/b/.env"}},
		{"/w/*/.env", []string{"/w/a/.env"}},
		{"/w/x?", []string{"/w/x1"}},
		{"/w/x*", []string{"/w/x1", "/w/x22"}},
		{"/w/x[2-9]*", []string{"/w/x22"}},
		{"/w/**", []string{"/w"}},
		{"/w/d/**/f", []string{"/w/d/e/f"}},
		{"/w/a/**/b", []string{"/w/a/b"}},
		{"/w/l*/.env", nil},
		{"/nothing/*", nil},
	} {
		got, err := expand(files, tc.glob)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s gives %v, %v; want %v", tc.glob, got, err, tc.want)
		}
		for _, name := range got {
			if !matchGlob(tc.glob, name+"/below") {
				t.Errorf("%s does not match below %s", tc.glob, name)
			}
		}
	}
	many := fstest.MapFS{}
	for i := range maxMatches + 1 {
		many[fmt.Sprintf("w/%d", i)] = &fstest.MapFile{}
	}
	if found, err := expand(many, "/w/*"); err == nil {
		t.Errorf("%d matches were given, and some left out", len(found))
	}
}

// A directory that cannot be listed may hold a match: a part of the matches
// must not pass for all of them.
func TestAGlobThatCannotLookEverywhereIsRefused(t *testing.T) {
	if _, err := expand(locked{fstest.MapFS{"w/secret/.env": {}}}, "/w/**/.env"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
}

type locked struct{ fstest.MapFS }

func (l locked) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "w/secret" {
		return nil, fs.ErrPermission
	}
	return l.MapFS.ReadDir(name)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte(requests))
	for _, tc := range bad {
		if len(tc.doc) < 5000 {
			f.Add([]byte(tc.doc))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read("p", data)
		if err != nil {
			checkError(t, err)
			return
		}
		var spec paddock.Spec
		err = file.Apply(&spec, caller)
		if err != nil {
			checkError(t, err)
			return
		}
		checkSpec(t, spec)
		// Format compares what it wrote with spec. Names that look like globs
		// are what it cannot say.
		if _, err := Format(spec); err != nil && !slices.ContainsFunc(slices.Concat(spec.Policy.Files.DenyRead, spec.Policy.Files.DenyWrite), isGlob) {
			t.Fatal(err)
		}
	})
}

func FuzzReadSRT(f *testing.F) {
	f.Add([]byte(`{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"denyRead":["~/.ssh",{"path":"/a*","literal":true}],"allowRead":["."],"allowWrite":["."],"denyWrite":[".env"]}}`))
	for _, row := range srtRows {
		f.Add([]byte(row.doc()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ReadSRT("s", data, caller)
		if err != nil {
			checkError(t, err)
			return
		}
		var spec paddock.Spec
		if err := file.Apply(&spec, caller); err != nil {
			checkError(t, err)
			return
		}
		checkSpec(t, spec)
	})
}

func TestASpecIsWrittenAndReadBack(t *testing.T) {
	f, err := Read("p", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	spec.Policy.Network.Rules = append(spec.Policy.Network.Rules, paddock.NetworkRule{Host: "2001:db8::1", Ports: []uint16{22}})
	data, err := Format(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "version: 1\ntier: jail\n") || !strings.Contains(string(data), "workspace: /proj/p\n") {
		t.Errorf("%s", data)
	}
	for _, spec := range []paddock.Spec{
		{Dir: "/elsewhere"},
		{Policy: paddock.Policy{Files: paddock.FilePolicy{DenyRead: []string{"/a/*"}}}},
		{Policy: paddock.Policy{Network: paddock.NetworkPolicy{Rules: []paddock.NetworkRule{{Host: "a.example"}}}}},
		{Limits: paddock.Limits{Memory: 7}}, {Env: map[string]string{"A=B": "x"}}, {Env: map[string]string{"A": "a\x00b"}}, {Root: paddock.Root{Kind: "other"}}, {Mounts: []paddock.Mount{{Source: "relative"}}},
	} {
		if data, err := Format(spec); !errors.Is(err, paddock.Unsupported) {
			t.Errorf("%+v: %v\n%s", spec, err, data)
		}
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) == 0 || len(e.Problems) > MaxProblems {
		t.Fatalf("%T: %v", err, err)
	}
	for _, p := range e.Problems {
		if p.Text == "" {
			t.Fatalf("a problem without a text: %v", err)
		}
	}
}

// checkSpec holds whatever was accepted to what drivers rely on.
func checkSpec(t *testing.T, spec paddock.Spec) {
	t.Helper()
	var paths []string
	for _, m := range spec.Mounts {
		paths = append(paths, m.Source, target(m))
	}
	for _, k := range spec.Policy.Audit {
		if !slices.Contains(paddock.AuditKinds(), k) {
			t.Fatalf("the kind of event %q", k)
		}
	}
	paths = append(append(paths, spec.Policy.Files.DenyRead...), spec.Policy.Files.DenyWrite...)
	for _, p := range paths {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsAny(p, "\x00\n") || len(p) > MaxPath {
			t.Fatalf("the path %q", p)
		}
	}
	for name, value := range spec.Env {
		if checkName(name) != nil || strings.IndexByte(value, 0) >= 0 {
			t.Fatalf("the variable %q=%q", name, value)
		}
	}
	l := spec.Limits
	if l.Memory < 0 || l.CPUs < 0 || l.PIDs < 0 || l.Disk < 0 || l.Files < 0 || l.IO < 0 || l.Lifetime < 0 {
		t.Fatalf("limits %+v", l)
	}
	if spec.Policy.Network.Mode != paddock.NetworkHost {
		if _, err := decide.Compile(unknown(spec.Policy.Network)); err != nil {
			t.Fatalf("the network: %v", err)
		}
	}
	for _, r := range spec.Policy.Network.Rules {
		if p, err := decide.ParsePattern(r.Host); err != nil || p.String() != r.Host {
			t.Fatalf("the rule %q: %v", r.Host, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"512m", "2GiB", "1.5g", "", "-1", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); (err == nil) != (n > 0) {
			t.Fatalf("ParseSize(%q) = %d, %v", s, n, err)
		}
	})
}

func FuzzGlob(f *testing.F) {
	f.Add("/w/**/.env", "/w/a/.env")
	f.Add("/w/[a-z]?*", "/w/bcd")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !isGlob(pattern) || checkPath(pattern) != nil || checkPath(name) != nil || checkGlob(pattern) != nil {
			return
		}
		if matchGlob(pattern, name) && !matchGlob(pattern, name+"/below") {
			t.Fatalf("%q matches %q, and not what is below it", pattern, name)
		}
	})
}

func TestModes(t *testing.T) {
	old := paddock.Spec{Hostname: "h", Mounts: []paddock.Mount{{Source: "/d"}}}
	for name, want := range map[string]paddock.Spec{
		"read-only":       {Hostname: "h", Dir: "/proj/p", Mounts: []paddock.Mount{{Source: "/proj/p"}, {Source: "/d"}}},
		"workspace-write": {Hostname: "h", Dir: "/proj/p", Mounts: []paddock.Mount{{Source: "/proj/p", Write: true}, {Source: "/d"}}},
		"full": {Hostname: "h", Dir: "/proj/p", Root: paddock.Root{Kind: paddock.RootOpen}, Mounts: []paddock.Mount{{Source: "/proj/p", Write: true}, {Source: "/", Write: true}, {Source: "/d"}},
			Policy: paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkHost}}},
	} {
		got := old
		if err := Mode(&got, name, caller); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		twice := got
		if err := Mode(&twice, name, caller); err != nil || !reflect.DeepEqual(got, twice) {
			t.Errorf("%s twice: %+v, %v", name, twice, err)
		}
	}
	for _, tc := range []struct {
		name string
		host Host
		want string
	}{{"readonly", caller, `did you mean "read-only"?`}, {"read-only", Host{}, "not known"}, {"workspace-write", Host{Dir: "/"}, `"/"`}} {
		spec := old
		if err := Mode(&spec, tc.name, tc.host); err == nil || !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !reflect.DeepEqual(spec, old) {
			t.Errorf("%s changed the spec", tc.name)
		}
	}
}
