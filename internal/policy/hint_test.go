package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// follow does what the hint of an answer says, and nothing else.
func follow(t *testing.T, spec paddock.Spec, hint string) paddock.Spec {
	t.Helper()
	files := &spec.Policy.Files
	drop := func(list *[]string, match func(string) bool) {
		*list = slices.DeleteFunc(slices.Clone(*list), match)
	}
	lists := map[string]*[]string{"files.deny_read": &files.DenyRead, "files.deny_write": &files.DenyWrite, "files.protect": &files.Protect}
	flags := map[string]*[]string{"--deny-read": &files.DenyRead, "--deny-write": &files.DenyWrite}
	taking := regexp.MustCompile(`^take (the glob )?"?([^"]*)"? from (\S+)$`)
	leaving := regexp.MustCompile(`^leave (--\S+) (\S+) out$`)
	for part := range strings.SplitSeq(hint, "; and ") {
		if _, snippet, ok := strings.Cut(part, "in the policy file: "); ok {
			snippet, _, _ = strings.Cut(snippet, "; ")
			f, err := Read("hint", []byte("version: 1\n"+snippet+"\n"))
			if err != nil {
				t.Fatalf("%s: %v", hint, err)
			}
			more := paddock.Spec{}
			if err := f.Apply(&more, caller); err != nil {
				t.Fatalf("%s: %v", hint, err)
			}
			for _, m := range more.Mounts {
				spec.Mounts = append(slices.DeleteFunc(slices.Clone(spec.Mounts), func(n paddock.Mount) bool { return target(n) == target(m) }), m)
			}
			files.Unprotect = append(slices.Clip(files.Unprotect), more.Policy.Files.Unprotect...)
			spec.Policy.Network.Rules = append(slices.Clip(spec.Policy.Network.Rules), more.Policy.Network.Rules...)
			if more.Policy.Network.Mode != "" {
				spec.Policy.Network.Mode = more.Policy.Network.Mode
			}
			env := map[string]string{}
			for _, from := range []map[string]string{spec.Env, more.Env} {
				for name, value := range from {
					env[name] = value
				}
			}
			spec.Env = env
			continue
		}
		if m := taking.FindStringSubmatch(part); m != nil && lists[m[3]] != nil {
			drop(lists[m[3]], func(p string) bool {
				return m[1] == "" && strings.TrimRight(p, "/") == m[2] || m[1] != "" && matchGlob(m[2], p)
			})
			continue
		}
		if m := leaving.FindStringSubmatch(part); m != nil && flags[m[1]] != nil {
			drop(flags[m[1]], func(p string) bool { return p == m[2] })
			continue
		}
		t.Fatalf("nobody can follow %q", part)
	}
	return spec
}

const hinted = `version: 1
workspace: .
mounts:
  - read: ~/data
  - read: ~/data/deep
    at: /data
  - write: /srv/out
environment:
  pass: [TERM]
files:
  deny_read: [~/data/secret, "/srv/out/*.pem"]
  deny_write: [/srv/out/keep]
  protect: [deploy/key, vault/, .git/hooks]
network:
  mode: list
  rules:
    - allow: api.example.org
      methods: [GET]
      paths: ["/v1/**"]
    - allow: plain.example.org
`

// Each question is refused, and allowed when its hint was followed. The others, which the hint need not
// allow, stay refused.
func TestEachHintIsTheLeastChangeThatHelps(t *testing.T) {
	f, err := Read("p", []byte(hinted))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	spec.Policy.Files.DenyWrite = append(spec.Policy.Files.DenyWrite, "/srv/out/flag") // as --deny-write does
	ask := func(spec paddock.Spec, text string) Answer {
		t.Helper()
		method, text, ok := strings.Cut(text, " ")
		if !strings.Contains(text, "://") || !ok {
			method, text = "", method+" "+text
		}
		q, err := ParseQuestion(strings.Fields(text), caller)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		q.Method = method
		a, err := Explain(spec, f, caller, q)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return a
	}
	questions := []string{
		"read ~/data/secret/x", "write /srv/out/keep/x", "write /srv/out/flag/x", "read /home/other/x",
		"write ~/data/x", "write /data/x", "write /usr/lib/x",
		"write .git/hooks/pre-commit", "write deploy/key", "write vault/x", "write .hg", "write .bashrc",
		"env NOT_SET_HERE", "connect other.example.org:443", "connect other.example.org:22", "connect api.example.org:22", "connect udp://api.example.org:443",
		"DELETE https://api.example.org/v1/jobs", "GET https://api.example.org/v2/jobs", "POST https://api.example.org/v1/jobs/7", "GET https://api.example.org/v1/%00", "GET https://api.example.org/a*b",
		"PUT https://api.example.org/x?y=1", "DELETE http://api.example.org/v1/jobs", "GET https://api.example.org/" + strings.Repeat("long/", 60),
	}
	for _, q := range questions {
		a := ask(spec, q)
		if a.Allowed {
			t.Errorf("%s is allowed before: %+v", q, a)
			continue
		}
		after := follow(t, spec, a.Change)
		if now := ask(after, q); !now.Allowed {
			t.Errorf("%s: %q did not help: %+v", q, a.Change, now)
		}
		for _, other := range questions {
			if other == q || !ask(after, other).Allowed {
				continue
			}
			// No pattern names such a path, so the hint allows the method for every path.
			if nameless := strings.Contains(q, "%00") || strings.Contains(q, "a*b") || strings.Contains(q, "long/long/"); !nameless {
				t.Errorf("%s: %q allows %s too", q, a.Change, other)
			}
		}
	}
}

func TestASecretIsSeenAndNotAdvisedAgainst(t *testing.T) {
	spec := paddock.Spec{Policy: paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Secrets: []paddock.Secret{{Name: "TOK", Value: "x", Hosts: []string{"a.example"}}}}}}
	a, err := Explain(spec, nil, caller, Question{Verb: "env", Object: "TOK"})
	if err != nil || !a.Allowed || !strings.Contains(a.Rule, "placeholder") || !strings.Contains(a.Rule, "a.example") || strings.Contains(a.Change, "--env") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAnOverlayCanBeWritten(t *testing.T) {
	spec := paddock.Spec{Mounts: []paddock.Mount{{Source: "/proj", Overlay: true}}}
	a, err := Explain(spec, nil, caller, Question{Verb: "write", Object: "/proj/x"})
	if err != nil || !a.Allowed || !strings.Contains(a.Rule, "stay inside") {
		t.Errorf("%+v, %v", a, err)
	}
}
