package gitconfigcheck

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const ofTheHost = `[core]
	repositoryformatversion = 0
	filemode = true
	hooksPath = /home/me/hooks
[remote "origin"]
	url = git@example.com:me/x.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[filter "lfs"]
	clean = git-lfs clean -- %f
	required
[user]
	name = "A # b" ; a comment
`

func TestKeysThatRunNothingAreLetThrough(t *testing.T) {
	sub := Place{Dir: "/w/.git/modules/lib", Top: "/w"}
	for _, tc := range []struct {
		name, old, add string
		place          Place
	}{
		{"a new repository", "", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[init]\n\tdefaultBranch = main\n", Place{}},
		{"a clone", "", "[remote \"origin\"]\n\turl = https://user:token@example.com:8443/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", Place{New: true}},
		{"a clone of a directory", "", "[remote \"origin\"]\n\turl = /srv/git/x\n", Place{}},
		{"an identity", ofTheHost, "[user]\n\tname = José O'Neil \\\"x\\\"\n\temail = a+b@c.d\n", Place{}},
		{"a branch that follows one", ofTheHost, "[branch \"feature/x\"]\n\tremote = origin\n\tmerge = refs/heads/feature/x\n[branch \"y\"]\n\tremote = .\n\tmerge = refs/heads/main\n", Place{}},
		{"a remote", ofTheHost, "[remote \"fork\"]\n\turl = ssh://git@[fe80:1]/x\n\tfetch = +refs/heads/*:refs/remotes/fork/*\n", Place{}},
		{"another place for a remote that was made here", "[remote \"x\"]\n\turl = https://a.b/c\n[core]\n", "", Place{New: true}},
		{"a submodule", ofTheHost, "[submodule \"libs/lib\"]\n\tactive = true\n\turl = https://example.com/lib.git\n\tupdate = rebase\n[submodule]\n\tactive = .\n", Place{}},
		{"a submodule's own", "", "[core]\n\trepositoryformatversion = 0\n\tworktree = ../../../src/lib\n", sub},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := tc.old + tc.add
			if tc.add == "" {
				now = strings.Replace(tc.old, "https://a.b/c", "https://d.e/f", 1)
			}
			if err := Judge([]byte(tc.old), []byte(now), tc.place); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEverythingElseIsRefusedByName(t *testing.T) {
	sub := Place{Dir: "/w/.git/modules/lib", Top: "/w"}
	for _, tc := range []struct {
		add, key string
		place    Place
	}{
		{"[core]\n\tfsmonitor = touch x\n", "core.fsmonitor", Place{}},
		{"[CORE]\n\tFsMonitor = true\n", "core.fsmonitor", Place{}},
		{"[core]\n\tfsmonitor\n", "core.fsmonitor", Place{}},
		{"[core]\n\thooksPath = x\n", "core.hookspath", Place{}},
		{"[core]\n\tworktree = ../..\n", "core.worktree", Place{}},
		{"[core]\n\tworktree = ../../../..\n", "core.worktree", sub},
		{"[core]\n\tworktree = ../../../../home\n", "core.worktree", sub},
		{"[core]\n\tworktree = ../../../a/../../b\n", "core.worktree", sub},
		{"[core]\n\tworktree = ../../../.git/x\n", "core.worktree", sub},
		{"[core]\n\tworktree = /w/lib\n", "core.worktree", sub},
		{"[core]\n\tpager = less\n", "core.pager", Place{}},
		{"[core]\n\tgitProxy = x\n", "core.gitproxy", Place{}},
		{"[core]\n\talternateRefsCommand = x\n", "core.alternaterefscommand", Place{}},
		{"[core]\n\tattributesFile = x\n", "core.attributesfile", Place{}},
		{"[include]\n\tpath = x\n", "include.path", Place{}},
		{"[includeIf \"gitdir:/\"]\n\tpath = x\n", "includeif.gitdir:/.path", Place{}},
		{"[alias]\n\tst = !x\n", "alias.st", Place{}},
		{"[filter \"x\"]\n\tclean = x\n", "filter.x.clean", Place{}},
		{"[diff \"x\"]\n\ttextconv = x\n", "diff.x.textconv", Place{}},
		{"[diff]\n\texternal = x\n", "diff.external", Place{}},
		{"[merge \"x\"]\n\tdriver = x\n", "merge.x.driver", Place{}},
		{"[credential]\n\thelper = x\n", "credential.helper", Place{}},
		{"[credential \"https://x\"]\n\thelper = x\n", "credential.https://x.helper", Place{}},
		{"[url \"ext::x\"]\n\tinsteadOf = https://\n", "url.ext::x.insteadof", Place{}},
		{"[http]\n\tproxy = x\n", "http.proxy", Place{}},
		{"[http]\n\tsslVerify = false\n", "http.sslverify", Place{}},
		{"[protocol \"ext\"]\n\tallow = always\n", "protocol.ext.allow", Place{}},
		{"[gpg]\n\tprogram = x\n", "gpg.program", Place{}},
		{"[pager]\n\tlog = x\n", "pager.log", Place{}},
		{"[sequence]\n\teditor = x\n", "sequence.editor", Place{}},
		{"[trailer \"x\"]\n\tcommand = x\n", "trailer.x.command", Place{}},
		{"[gc]\n\trecentObjectsHook = x\n", "gc.recentobjectshook", Place{}},
		{"[uploadpack]\n\tpackObjectsHook = x\n", "uploadpack.packobjectshook", Place{}},
		{"[receive]\n\tdenyCurrentBranch = updateInstead\n", "receive.denycurrentbranch", Place{}},
		{"[safe]\n\tdirectory = *\n", "safe.directory", Place{}},
		{"[submodule \"x\"]\n\tupdate = !x\n", "submodule.x.update", Place{}},
		{"[submodule \"../x\"]\n\turl = https://a.b/c\n", "submodule.../x.url", Place{}},
		{"[submodule \"x\"]\n\turl = -x\n", "submodule.x.url", Place{}},
		{"[remote \"x\"]\n\turl = ext::sh -c x\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = foo::x\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = foo://x\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = ssh://-oProxyCommand=x/y\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = -oProxyCommand=x:y\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = u@-oProxyCommand=x:y\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\tuploadpack = x\n", "remote.x.uploadpack", Place{}},
		{"[remote \"origin\"]\n\tpromisor = true\n", "remote.origin.promisor", Place{New: true}},
		{"[remote \"origin\"]\n\tpartialCloneFilter = blob:none\n", "remote.origin.partialclonefilter", Place{New: true}},
		{"[extensions]\n\tpartialClone = origin\n", "extensions.partialclone", Place{New: true}},
		{"[fetch]\n\trecurseSubmodules = true\n", "fetch.recursesubmodules", Place{New: true}},
		{"[submodule]\n\trecurse\n", "submodule.recurse", Place{New: true}},
		{"[push]\n\tautoSetupRemote = true\n", "push.autosetupremote", Place{New: true}},
		{"[remote \"origin\"]\n\tgh-resolved = base\n", "remote.origin.gh-resolved", Place{New: true}},
		{"[remote \"x\"]\n\turl = https://a.b/c\n[branch \"main\"]\n\tremote = x\n", "branch.main.remote", Place{}},
		{"[remote \"x\"]\n\turl = https://a.b/c\n[branch \"main\"]\n\tremote = origin\n", "branch.main.remote", Place{Hosts: map[string]string{}}},
		{"[remote \"x\"]\n\turl = ssh://%2doProxyCommand%3dx@h/c\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = ssh://%60id%60@h/c\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\turl = https://a%0ahost=b@h/c\n", "remote.x.url", Place{}},
		{"[remote \"x\"]\n\ttagOpt = --upload-pack=x\n", "remote.x.tagopt", Place{}},
		{"[push]\n\tdefault = current\n", "push.default", Place{}},
		{"[push]\n\tdefault = matching\n", "push.default", Place{New: true}},
		{"[pack]\n\tthreads = 100000\n", "pack.threads", Place{New: true}},
		{"[index]\n\tthreads = -1\n", "index.threads", Place{New: true}},
		{"[maintenance]\n\tstrategy = incremental\n", "maintenance.strategy", Place{New: true}},
		{"[submodule \"x\"]\n\tgitdir = ../x\n", "submodule.x.gitdir", Place{New: true}},
		{"[extensions]\n\trefStorage = files:///x\n", "extensions.refstorage", Place{New: true}},
		{"[extensions]\n\tsubmodulePathConfig = true\n", "extensions.submodulepathconfig", Place{New: true}},
		{"[remote \"x\"]\n\turl = https://a.b/c\n", "remote.x.url", Place{Worktree: true}},
		{"[user]\n\temail = a@b.c\n", "user.email", Place{Worktree: true}},
		{"[remote \"x\"]\n\treceivepack = x\n", "remote.x.receivepack", Place{}},
		{"[remote \"x\"]\n\tvcs = x\n", "remote.x.vcs", Place{}},
		{"[remote \"origin\"]\n\tpushurl = https://a.b/c\n", "remote.origin.pushurl", Place{}},
		{"[remote \"origin\"]\n\turl = https://a.b/c\n", "remote.origin.url", Place{}},
		{"[remote \"origin\"]\n\tmirror = true\n", "remote.origin.mirror", Place{}},
		{"[remote]\n\tpushDefault = x\n", "remote.pushdefault", Place{}},
		{"[branch \"main\"]\n\tremote = https://a.b/c\n", "branch.main.remote", Place{}},
		{"[branch \"main\"]\n\tpushRemote = origin\n", "branch.main.pushremote", Place{}},
		{"[branch \"main\"]\n\tmergeOptions = -s x\n", "branch.main.mergeoptions", Place{}},
		{"[user]\n\tname = \"a\\tb\"\n", "user.name", Place{}},
		{"[core]\n\tbare = maybe\n", "core.bare", Place{}},
		{"[lfs]\n\turl = x\n", "lfs.url", Place{}},
		{"[lfs \"customtransfer.x\"]\n\tpath = x\n", "lfs.customtransfer.x.path", Place{}},
	} {
		host := ofTheHost
		if tc.place.Worktree {
			host = ""
		}
		err := Judge([]byte(host), []byte(host+tc.add), tc.place)
		var r *Refused
		if !errors.As(err, &r) || r.Key != tc.key {
			t.Errorf("%q: %v", tc.add, err)
		}
	}
}

func TestWhatTheHostSetStays(t *testing.T) {
	for from, key := range map[string]string{
		"\thooksPath = /home/me/hooks\n":              "core.hookspath",
		"\trequired\n":                                "filter.lfs.required",
		"[filter \"lfs\"]\n":                          "core.clean", // then they are in another section
		"\turl = git@example.com:me/x.git\n":          "remote.origin.url",
		"\tclean = git-lfs clean -- %f\n\trequired\n": "filter.lfs.clean",
	} {
		err := Judge([]byte(ofTheHost), []byte(strings.Replace(ofTheHost, from, "", 1)), Place{})
		var r *Refused
		if !errors.As(err, &r) || r.Key == "" {
			t.Errorf("without %q (%s): %v", from, key, err)
		}
	}
	if err := Judge([]byte(ofTheHost), nil, Place{}); err == nil {
		t.Error("a configuration of the host can be removed")
	}
	if err := Judge([]byte("[core]\n\tbare = false\n"), nil, Place{}); err != nil {
		t.Errorf("what may be written may not be removed: %v", err)
	}
	module := "[submodule \"x\"]\n\turl = https://a.b/c\n"
	for _, now := range []string{"", strings.Replace(module, "a.b", "d.e", 1), module + "\turl = https://d.e/f\n"} {
		if err := Judge([]byte(module), []byte(now), Place{}); err == nil {
			t.Errorf("a submodule of the host leads elsewhere: %q", now)
		}
	}
	dangling := "[branch \"main\"]\n\tremote = gone\n"
	for _, add := range []string{"[remote \"gone\"]\n\turl = https://a.b/c\n", "[remote \"gone\"]\n\tpushurl = https://a.b/c\n\turl = /x\n"} {
		if err := Judge([]byte(dangling), []byte(dangling+add), Place{}); err == nil {
			t.Errorf("a branch of the host gets the remote that it lacks: %q", add)
		}
	}
	for _, says := range []string{"[branch \"main\"]\n\tpushRemote = gone\n", "[remote]\n\tpushDefault = gone\n"} {
		if err := Judge([]byte(says), []byte(says+"[remote \"gone\"]\n\turl = https://a.b/c\n"), Place{}); err == nil {
			t.Errorf("%q gets the remote that it lacks", says)
		}
	}
	const two = "[remote \"a\"]\n\turl = /a\n[remote \"b\"]\n\turl = /b\n"
	for now, fine := range map[string]bool{"[branch \"main\"]\n\tremote = b\n": false, "[branch \"main\"]\n\tremote = a\n[branch \"main\"]\n\tremote = b\n": false, "[branch \"main\"]\n\tremote = .\n": true, "": true, "[branch \"main\"]\n\tremote = a\n[branch \"new\"]\n\tremote = b\n": true} {
		hosts := Destinations([]byte(two + "[branch \"main\"]\n\tremote = a\n"))
		for _, was := range []string{two + "[branch \"main\"]\n\tremote = a\n", two} {
			if err := Judge([]byte(was), []byte(two+now), Place{Hosts: hosts}); (err == nil) != fine {
				t.Errorf("a branch of the host that followed a, and %q: %v", now, err)
			}
		}
	}
	other := "[remote \"up\"]\n\turl = https://a.b/c\n"
	if err := Judge([]byte(other), []byte(other+"[remote \"origin\"]\n\turl = https://d.e/f\n"), Place{}); err == nil {
		t.Error("another remote becomes the one that git takes by itself")
	}
	followed := "[remote \"x\"]\n\turl = /x\n[branch \"main\"]\n\tremote = x\n\tmerge = refs/heads/main\n"
	if err := Judge([]byte(followed), nil, Place{New: true}); err != nil {
		t.Errorf("a clone that was made here may not be removed: %v", err)
	}
	moved := strings.Replace(ofTheHost, "[core]\n", "[core]\n\teditor = x\n", 1)
	if err := Judge([]byte(moved), []byte(strings.Replace(strings.Replace(moved, "\teditor = x\n", "", 1), "\thooksPath = /home/me/hooks\n", "\thooksPath = /home/me/hooks\n\teditor = x\n", 1)), Place{}); err == nil {
		t.Error("keys of the host can change their order")
	}
}

// git would write where the key leads, and something else can come there.
func TestNoSandboxWritesTheWayToAWorkingTree(t *testing.T) {
	const host = "[core]\n\tbare = false\n\tworktree = ../../../lib\n"
	for _, tc := range []struct{ old, now, want string }{
		{"", host, "[core]\n\tbare = false\n"},
		{host, host + "[user]\n\tname = x\n", host + "[user]\n\tname = x\n"},
		{host, strings.Replace(host, "lib", "other", 1), "[core]\n\tbare = false\n"},
		{host, host + "\tWorkTree = ../../../b\n", "[core]\n\tbare = false\n"},
		{host, "[core]\n\tbare = false\n", "[core]\n\tbare = false\n"},
		{"", "[CORE]\n worktree=\"../../../a\" # x\n[a \"core\"]\n\tworktree = y", "[CORE]\n[a \"core\"]\n\tworktree = y"},
	} {
		if got := string(Settle([]byte(tc.old), []byte(tc.now))); got != tc.want {
			t.Errorf("%q over %q becomes %q, want %q", tc.now, tc.old, got, tc.want)
		}
	}
}

func TestWhatParsersMayReadInDifferentWaysIsRefused(t *testing.T) {
	for _, text := range []string{
		"[core] fsmonitor = x\n", "[core]\n\tbare = \\\nfalse\n", "# a \\\n[core]\n", "[core]\r\n", "[core\n", "[core.x]\n\ty = z\n", "[core \"x\"\n", "[core \"x\\n\"]\n",
		"[core]\n\tx = \"a\n", "[core]\n\tx = a\\qb\n", "[core]\n\tx = a\\bb\n", "[core]\n\tx y\n", "[core]\n\t1x = y\n", "x = y\n", "\ufeff[core]\n", "[core]\x00\n", "[core]\n\tx\x0b= y\n",
		"[core]\n\tx = a \"\"\n", "[core]\n\tx = \"\" a\n", "[core]\n\tx = \"a\"\"\"\n", "[core]\n\tx = a\tb\n", "[core]\n\tx = \xff\n", "[core]\n\tx = \u0085y\n", "[]\n", "[\"x\"]\n", "[core]x\n", "[core]#\n", "[core \"x\" ]\n", "[core\"x\"]\n", strings.Repeat("#", MaxSize+1),
	} {
		if entries, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.40q: %v", text, entries)
		}
	}
}

// git reads the same keys and values as this package, in what this package accepts.
func TestGitReadsTheSame(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	pieces := []string{"[core]\n", "[a \"b\"]\n", "[A \"\\\\\\\"x y\"]\n", "\tkey = v\n", "K-1=\"a;b\" c # d\n", "flag\n", "x = \"\"\n", "; \"\n", "y = a\\tb\\n \n", "z =   two  words  \n", "e =\n",
		"q = \"a\" \"b\\\"\"\n", " \t\n", "[a]\n", "w = '#'\n", "w = x\\\\\n"}
	odd := []string{"\"", "\\", "#", ";", "[", "]", "=", " ", "\t", "\r", "\n", "\\\n", ".", "-", "\x00", "\v", "\u00a0", "\u2028", "\ufeff", "a", "1", "\\n", "[a]b=c"}
	seed := uint32(1)
	next := func(below int) int {
		seed = seed*1664525 + 1013904223
		return int(seed >> 16 % uint32(below))
	}
	file, compared := filepath.Join(t.TempDir(), "config"), 0
	for compared < 200 {
		text := ""
		for range 1 + next(9) {
			text += pieces[next(len(pieces))]
		}
		for range compared % 3 { // it may become one that is not understood
			at := next(len(text) + 1)
			text = text[:at] + odd[next(len(odd))] + text[at:]
		}
		entries, err := Parse([]byte(text))
		if err != nil {
			continue
		}
		compared++
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), git, "config", "--list", "-z", "--file", file)
		cmd.Env = []string{"HOME=/", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("git refuses %q: %s", text, out)
		}
		if got := shown(entries); got != string(out) {
			t.Errorf("%q: git reads %q, and we %q", text, out, got)
		}
	}
}

// The list in the document is made from the code. PADDOCK_UPDATE=1 writes it.
func TestTheDocumentListsEveryKey(t *testing.T) {
	const document, begin, end = "../../docs/reference/protected.md", "<!-- keys: begin -->\n", "<!-- keys: end -->"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the document has no place for the keys")
	}
	var list strings.Builder
	line := ""
	for _, key := range slices.Sorted(maps.Keys(allowed())) {
		word := "`" + key + "`"
		if len(line)+len(word) > 115 {
			list.WriteString(line + ",\n")
			line = ""
		}
		if line != "" {
			line += ", "
		}
		line += word
	}
	list.WriteString(line + "\n")
	text := before + begin + "\n" + list.String() + "\n" + end + after
	if text == string(data) {
		return
	}
	if os.Getenv("PADDOCK_UPDATE") != "1" {
		t.Fatal("the document does not list the keys as they are; write them anew: PADDOCK_UPDATE=1 go test ./internal/gitconfigcheck")
	}
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shown prints entries as "git config --list -z" does.
func shown(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name())
		if !e.NoValue {
			b.WriteString("\n" + e.Value)
		}
		b.WriteString("\x00")
	}
	return b.String()
}

// An accepted text has no key that a parser like git's would find and ours would not.
func FuzzParse(f *testing.F) {
	f.Add([]byte(ofTheHost), []byte(ofTheHost+"[user]\n\tname = x\n"))
	f.Add([]byte(""), []byte("[a \"\\\\\"]\nb = \"c\\\"\" # d\n"))
	f.Fuzz(func(t *testing.T, old, content []byte) {
		entries, err := Parse(content)
		if err == nil {
			want, err := likeGit(content)
			if err != nil {
				t.Fatalf("%q is accepted, and git refuses it: %v", content, err)
			}
			if got := shown(entries); got != want {
				t.Fatalf("%q: git reads %q, and we %q", content, want, got)
			}
		}
		if Judge(old, content, Place{Dir: "/w/.git/modules/x", Top: "/w"}) != nil {
			return
		}
		if err != nil {
			t.Fatalf("%q is let through and not understood", content)
		}
		var want []Entry
		before, _ := Worktrees(old)
		after, known := Worktrees(content)
		if !known {
			t.Fatalf("%q is let through, and nobody knows where it leads", content)
		}
		same := slices.Equal(before, after)
		for _, e := range entries {
			if same || e.Name() != "core.worktree" {
				want = append(want, e)
			}
		}
		if got, err := Parse(Settle(old, content)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q over %q settles as %+v, %v", content, old, got, err)
		}
	})
}

// likeGit reads a configuration as config.c of git does, one character at a time.
func likeGit(content []byte) (string, error) {
	var out, section strings.Builder
	pos := 0
	next := func() int {
		if pos >= len(content) {
			pos++
			return -1
		}
		c := content[pos]
		pos++
		if c == '\r' && pos < len(content) && content[pos] == '\n' {
			pos++
			return '\n'
		}
		return int(c)
	}
	space := func(c int) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	lower := func(c int) byte { return strings.ToLower(string(rune(c)))[0] }
	alpha := func(c int) bool { return c >= 0 && letter(byte(c)) }
	bad := fmt.Errorf("bad line before byte %d", pos)
	comment := false
	for {
		c := next()
		switch {
		case c == -1:
			return out.String(), nil
		case c == '\n':
			comment = false
		case comment || space(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			section.Reset()
			for {
				c = next()
				if c == ']' {
					break
				}
				if space(c) {
					for space(c) {
						if c == '\n' {
							return "", bad
						}
						c = next()
					}
					if c != '"' {
						return "", bad
					}
					section.WriteByte('.')
					for c = next(); c != '"'; c = next() {
						if c == '\\' {
							c = next()
						}
						if c == '\n' || c == -1 {
							return "", bad
						}
						section.WriteByte(byte(c))
					}
					if next() != ']' {
						return "", bad
					}
					break
				}
				if c == -1 || !alpha(c) && !digit(byte(c)) && c != '-' && c != '.' {
					return "", bad
				}
				section.WriteByte(lower(c))
			}
		case !alpha(c):
			return "", bad
		default:
			name := section.String() + "." + string(lower(c))
			for c = next(); c >= 0 && (alpha(c) || digit(byte(c)) || c == '-'); c = next() {
				name += string(lower(c))
			}
			for c == ' ' || c == '\t' {
				c = next()
			}
			out.WriteString(name)
			if c == '\n' || c == -1 {
				out.WriteByte(0)
				continue
			}
			if c != '=' {
				return "", bad
			}
			var value strings.Builder
			quote, note, keep := false, false, 0
			for {
				c = next()
				if c == '\n' || c == -1 {
					if quote {
						return "", bad
					}
					break
				}
				if note {
					continue
				}
				if space(c) && !quote {
					if value.Len() > 0 {
						value.WriteByte(byte(c))
					}
					continue
				}
				if !quote && (c == ';' || c == '#') {
					note = true
					continue
				}
				if c == '\\' {
					switch c = next(); c {
					case '\n':
						continue
					case 't':
						c = '\t'
					case 'b':
						c = '\b'
					case 'n':
						c = '\n'
					case '\\', '"':
					default:
						return "", bad
					}
					value.WriteByte(byte(c))
					keep = value.Len()
					continue
				}
				if c == '"' {
					quote = !quote
					keep = value.Len()
					continue
				}
				value.WriteByte(byte(c))
				keep = value.Len()
			}
			out.WriteString("\n" + value.String()[:keep])
			out.WriteByte(0)
		}
	}
}
