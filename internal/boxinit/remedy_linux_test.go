package boxinit

import (
	"strings"
	"testing"
)

// Only a built-in name can be unprotected, so the remedy for a name of the policy itself is another.
func TestTheRemedyForAProtectedNameCanBeFollowed(t *testing.T) {
	b, err := newBroker(&Config{Protect: []string{"deploy/key"}, Trees: []Tree{{Path: "/w", Source: "/w", Protected: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/w/.git/hooks/x": `--unprotect ".git/hooks"`,
		"/w/deploy/key":   `take "deploy/key" from files.protect`,
	} {
		rule, _ := b.judge(b.treeOf(path), path, nowhere)
		b.refuse("write", path, rule)
		if got := b.refused["write\x00"+path].Remedy; !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestEachReasonWhyAMountIsNotWatchedIsSaidWithWhatHelps(t *testing.T) {
	b, err := newBroker(new(Config))
	if err != nil {
		t.Fatal(err)
	}
	rules := []string{watchesFull, watchesDenied, watchesEnded, watchesFailed + "permission denied"}
	for range 2 {
		for _, rule := range rules {
			b.refuse("watch", "/work", rule)
		}
	}
	list := b.Refusals()
	if len(list) != len(rules) {
		t.Fatalf("%d reasons are said", len(list))
	}
	for i, r := range list {
		if r.Rule != rules[i] || r.Count != 2 || !strings.Contains(r.Remedy, "have the tool poll") {
			t.Errorf("%+v", r)
		}
	}
}
