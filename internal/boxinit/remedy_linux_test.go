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
