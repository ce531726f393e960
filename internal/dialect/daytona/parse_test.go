package daytona

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestStatusIsRead(t *testing.T) {
	s := parseStatus(strings.Join([]string{
		"# branch.oid abc", "# branch.head main", "# branch.upstream origin/main", "# branch.ab +2 -3",
		"1 .M N... 100644 100644 100644 a b x y", "2 R. N... 100644 100644 100644 a b R100 new name", "old name", "? other", "u UU N... 1 2 3 4 a b c both", "",
	}, "\x00"))
	if s.CurrentBranch != "main" || s.Upstream != "origin/main" || s.Ahead != 2 || s.Behind != 3 || !s.BranchPublished || s.Detached {
		t.Errorf("%+v", s)
	}
	want := []gitFile{{"x y", "", "Unmodified", "Modified"}, {"new name", "old name", "Renamed", "Unmodified"}, {"other", "", "Untracked", "Untracked"}, {"both", "", "Updated but unmerged", "Updated but unmerged"}}
	if len(s.FileStatus) != len(want) {
		t.Fatalf("%+v", s.FileStatus)
	}
	for i, w := range want {
		if s.FileStatus[i] != w {
			t.Errorf("%+v, not %+v", s.FileStatus[i], w)
		}
	}
}

// A git inside that writes entries without end makes no long list here.
func TestALongListOfGitsIsRefused(t *testing.T) {
	if err := few(strings.Repeat("?\x00", maxListed), "\x00"); err != nil {
		t.Error(err)
	}
	if err := few(strings.Repeat("?\x00", maxListed+1), "\x00"); paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("%v", err)
	}
}

// A login is for one host, by one protocol.
func TestALoginIsForTheHostOfItsRemote(t *testing.T) {
	for at, want := range map[string]string{
		"https://h.example:8443/a?b#c": "credential.https://h.example:8443.helper=" + helper, "http://u:p@[::1]/": "credential.http://[::1].helper=" + helper,
		"": "", "ssh://h.example/x": "", "git@h.example:x": "", "file:///x": "", "ext::sh": "", "https:///x": "", "https://h\nx/": "",
	} {
		got := login{"u", "p", at}.options()
		if len(got) > 0 != (want != "") || want != "" && (got[1] != "credential.helper=" || got[3] != want) {
			t.Errorf("%q: %q", at, got)
		}
	}
}

func FuzzStatus(f *testing.F) {
	f.Add("1 .M N... 1 2 3 a b x\x002 R. a\x00\x00# branch.ab x\x00? \x00u\x00")
	f.Fuzz(func(t *testing.T, text string) {
		if s := parseStatus(text); len(s.FileStatus) > strings.Count(text, "\x00")+1 {
			t.Error("more files than entries")
		}
	})
}

// Each code is found in what git says.
func TestFaultsOfGitHaveCodes(t *testing.T) {
	for said, want := range map[string]string{
		"fatal: Authentication failed for 'https://x/'":                                      codeGitAuth,
		"fatal: could not read Username for 'https://x': terminal prompts disabled":          codeGitAuth,
		"fatal: repository 'https://x/y.git/' not found":                                     codeGitNoRepo,
		"fatal: not a git repository (or any of the parent directories): .git":               codeGitNoRepo,
		"error: pathspec 'none' did not match any file(s) known to git":                      codeGitNoBranch,
		"fatal: Remote branch none not found in upstream origin":                             codeGitNoBranch,
		"fatal: a branch named 'x' already exists":                                           codeGitBranch,
		" ! [rejected]        main -> main (fetch first)":                                    codeGitRejected,
		" ! [remote rejected] main -> main (pre-receive hook declined)":                      codeGitRemote,
		"error: Your local changes to the following files would be overwritten by checkout:": codeGitDirty,
		"CONFLICT (content): Merge conflict in a":                                            codeGitConflict,
		"fatal: unable to access 'https://x/': Could not resolve host: x":                    codeGitTransport,
		"anything else": "",
	} {
		if got := faultOf(gitFault(said, 1)); got.Code != want {
			t.Errorf("%q: %q, not %q", said, got.Code, want)
		}
	}
}

func TestNetworksBecomeRules(t *testing.T) {
	for _, c := range []struct {
		n     network
		rules int
		bad   bool
	}{
		{network{}, 2, false}, {network{BlockAll: true}, 0, false}, {network{Ranges: "10.0.0.0/8, 192.0.2.0/24"}, 4, false},
		{network{Domains: "example.com,*.example.org"}, 4, false}, {network{Ranges: "10.0.0.1"}, 0, true}, {network{Domains: "a b"}, 0, true},
		{network{BlockAll: true, Domains: "a.example"}, 0, true}, {network{Ranges: strings.Repeat("10.0.0.0/8,", 11)}, 0, true},
	} {
		p, err := c.n.policy()
		if (err != nil) != c.bad || err == nil && len(p.Rules) != c.rules || err != nil && paddock.KindOf(err) != paddock.Invalid {
			t.Errorf("%+v: %+v, %v", c.n, p, err)
		}
	}
}

func TestPathsAreThoseOfTheSandbox(t *testing.T) {
	r := record{Dir: "/work", Home: "/home/daytona"}
	for name, want := range map[string]string{"": "/work", "a/../b": "/work/b", "/etc/x": "/etc/x", "~": "/home/daytona", "~/x": "/home/daytona/x"} {
		if got := r.absolute(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestTermsFollowIntervals(t *testing.T) {
	for _, c := range []struct {
		r             record
		pause, remove int
	}{
		{record{AutoStop: 15, AutoDelete: -1}, 15, 0}, {record{AutoStop: 15, AutoDelete: 0}, 0, 15}, {record{AutoStop: 15, AutoDelete: 5}, 15, 20},
		{record{AutoDelete: 5}, 0, 0}, {record{AutoStop: 15, AutoPause: 3, AutoDelete: -1}, 3, 0},
	} {
		if got := c.r.terms(); int(got.IdlePause.Minutes()) != c.pause || int(got.IdleRemove.Minutes()) != c.remove {
			t.Errorf("%+v: %+v", c.r, got)
		}
	}
}
