package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

const explained = `version: 1
workspace: .
mounts:
  - read: ~/data
  - read: ~/data/deep
    at: /data
  - write: /srv/out
environment:
  set: {A: x}
  pass: [TERM, ABSENT]
files:
  deny_read: [~/data/secret, "/srv/out/*.pem"]
  deny_write: [/srv/out/keep]
  protect: [deploy/key]
network:
  mode: list
  rules:
    - allow: "*.example.org"
    - deny: bad.example.org
`

func TestAnswers(t *testing.T) {
	f, err := Read("p", []byte(explained))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		question string
		allowed  bool
		rule     string
		where    string
	}{
		{"read /home/u/data/x", true, "is mounted at /home/u/data", "p:4:5"},
		{"read /data/x", true, "/home/u/data/deep of the host is mounted at /data", "p:5:5"},
		{"read ~/data/secret/x", false, "files.deny_read denies /home/u/data/secret", "p:12:15"},
		{"write ~/data/secret/x", false, "files.deny_read denies", "p:12:15"},
		{"read /srv/out/a.pem", false, "files.deny_read denies /srv/out/a.pem", "p:12:30"},
		{"read /srv/out/later.pem", true, "/srv/out", "p:7:5"},
		{"read src/x.go", true, "/proj/p of the host is mounted", "p:2:1"},
		{"read /usr/bin/env", true, "system directory", ""},
		{"read /etc/shadow", false, "/etc/shadow may hold credentials", ""},
		{"read /etc/ssh/ssh_host_rsa_key", false, "/etc/ssh may hold credentials", ""},
		{"read /etc/sshd", true, "system directory", ""},
		{"read /sys/devices/system/cpu/online", true, "system directory", ""},
		{"read /dev/shm/x", true, "the sandbox's own", ""},
		{"read /home/other/x", false, "system directories only", ""},
		{"read /home/u/.ssh/id", true, "the sandbox's own", ""},
		{"write /home/u/x", true, "nothing reaches the host", ""},
		{"read /proc/self/status", true, "its processes", ""},
		{"write /dev/null", true, "its devices", ""},
		{"write /sys/power/state", false, "read-only", ""},
		{"write /tmp/x", true, "the sandbox's own", ""},
		{"write /usr/bin/env", false, "read-only", ""},
		{"write ~/data/x", false, "mounted read-only", "p:4:5"},
		{"write src/x.go", true, "mounted writable", "p:2:1"},
		{"write sub/.git/hooks/pre-commit", false, ".git/hooks is a protected name: git runs programs", ""},
		{"write .GIT/config", false, ".git/config is a protected name", ""},
		{"write .hg", false, ".hg can be used where it exists, and not be made", "p:2:1"},
		{"write .hg/dirstate", true, "is mounted writable", "p:2:1"},
		{"write .git", true, "mounted writable", "p:2:1"},
		{"write deploy/key", false, "deploy/key is a protected name", "p:14:13"},
		{"write /srv/out/keep/x", false, "files.deny_write denies /srv/out/keep", "p:13:16"},
		{"write /srv/outside", false, "read-only", ""},
		{"connect a.example.org:443", true, "allows *.example.org", "p:18:7"},
		{"connect http://a.example.org/x", true, "allows", "p:18:7"},
		{"connect a.example.org:22", false, "no rule allows a.example.org:22", "p:17:3"},
		{"connect BAD.example.org.:443", false, "denies bad.example.org", "p:19:7"},
		{"connect example.org", false, "no rule allows", "p:17:3"},
		{"env A", true, "is set", "p:9:9"},
		{"env TERM", true, "is set", "p:10:10"},
		{"env ABSENT", false, "the caller does not have it", "p:10:16"},
		{"env PATH", true, "the tier's own", ""},
		{"env AWS_SECRET_ACCESS_KEY", false, "nothing of the caller's environment", ""},
	} {
		q, err := ParseQuestion(strings.Fields(tc.question), caller)
		if err != nil {
			t.Errorf("%s: %v", tc.question, err)
			continue
		}
		a, err := Explain(spec, f, caller, q)
		if err != nil {
			t.Errorf("%s: %v", tc.question, err)
			continue
		}
		if a.Allowed != tc.allowed || !strings.Contains(a.Rule, tc.rule) || a.Where != tc.where {
			t.Errorf("%s: %+v; want %v, %q at %q", tc.question, a, tc.allowed, tc.rule, tc.where)
		}
		if !a.Allowed && a.Change == "" {
			t.Errorf("%s: it does not say how to change that", tc.question)
		}
	}
	etc, err := Explain(spec, f, caller, Question{Verb: "read", Object: "/etc"})
	if err != nil || len(etc.Notes) != 1 {
		t.Errorf("nothing is said about what /etc hides: %+v, %v", etc, err)
	}
	file, err := Explain(spec, f, caller, Question{Verb: "read", Object: "/opt/tool/.env"})
	if err != nil || len(file.Notes) != 1 || !strings.Contains(file.Notes[0], "--read /opt/tool/.env") {
		t.Errorf("nothing is said about a file that may be the caller's alone: %+v, %v", file, err)
	}
	hooks, err := Explain(spec, f, caller, Question{Verb: "write", Object: caller.Dir + "/.git/hooks/x"})
	if err != nil || !strings.HasPrefix(hooks.Change, "--unprotect .git/hooks, or ") {
		t.Errorf("the flag is not named: %+v, %v", hooks, err)
	}
	later, err := Explain(spec, f, caller, Question{Verb: "read", Object: "/srv/out/later.pem"})
	if err != nil || !slices.ContainsFunc(later.Notes, func(n string) bool { return strings.Contains(n, "p:12:30: the glob /srv/out/*.pem") }) {
		t.Errorf("nothing is said about the glob: %+v, %v", later, err)
	}
}

func TestAnswersOfOtherRoots(t *testing.T) {
	open := paddock.Spec{Root: paddock.Root{Kind: paddock.RootOpen}, Policy: paddock.Policy{Files: paddock.FilePolicy{DenyRead: []string{"/home/u/.ssh"}}, Network: paddock.NetworkPolicy{Mode: paddock.NetworkHost}}}
	dir := paddock.Spec{Root: paddock.Root{Kind: paddock.RootDir, Path: "/srv/fs"}}
	image := paddock.Spec{Root: paddock.Root{Kind: paddock.RootImage, Image: "python:3.13"}}
	for _, tc := range []struct {
		spec paddock.Spec
		q    Question
		want bool
	}{
		{open, Question{Verb: "read", Object: "/home/other/x"}, true}, {open, Question{Verb: "read", Object: "/home/u/.ssh/id"}, false}, {open, Question{Verb: "read", Object: "/home/u/.sshd"}, true},
		{open, Question{Verb: "write", Object: "/tmp/x"}, false}, {open, Question{Verb: "connect", Object: "10.0.0.1:22"}, true},
		{dir, Question{Verb: "read", Object: "/x"}, true}, {dir, Question{Verb: "write", Object: "/etc/x"}, true}, {dir, Question{Verb: "connect", Object: "a.example"}, false}, {dir, Question{Verb: "connect", Object: "localhost:80"}, false},
		{image, Question{Verb: "read", Object: "/etc/shadow"}, true}, {image, Question{Verb: "write", Object: "/usr/bin/x"}, true}, {image, Question{Verb: "write", Object: "/tmp/x"}, true},
		{paddock.Spec{Mounts: []paddock.Mount{{Source: "/", Write: true}}, Root: open.Root}, Question{Verb: "write", Object: "/proj/.git/hooks/x"}, false},
		{paddock.Spec{Mounts: []paddock.Mount{{Source: "/", Write: true}}, Root: open.Root}, Question{Verb: "write", Object: "/proj/x"}, true},
	} {
		a, err := Explain(tc.spec, nil, caller, tc.q)
		if err != nil || a.Allowed != tc.want || a.Where != "" || a.Rule == "" {
			t.Errorf("%v: %+v, %v", tc.q, a, err)
		}
	}
}

func TestQuestionsThatAreNone(t *testing.T) {
	for _, args := range [][]string{nil, {"read"}, {"read", "a", "b"}, {"raed", "/x"}, {"read", ""}, {"read", "a\x00b"}, {"write", "~other/x\n"}, {"connect", "127.1:80"}, {"connect", "https://u:p@h/"}, {"env", "A-B"}, {"env", ""}} {
		if q, err := ParseQuestion(args, caller); err == nil || !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %+v, %v", args, q, err)
		}
	}
	if _, err := ParseQuestion([]string{"raed", "/x"}, caller); !strings.Contains(err.Error(), `did you mean "read"?`) {
		t.Error(err)
	}
	if _, err := Explain(paddock.Spec{}, nil, caller, Question{Verb: "zap", Object: "x"}); !errors.Is(err, paddock.Invalid) {
		t.Error(err)
	}
}
