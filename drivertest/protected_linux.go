package drivertest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// ProtectedNames tests every protected name in two workspaces: one that has none of them, and
// one that has all. No name can be made in the first or changed in the second, at the top or
// below, in any spelling that a file system may take for the same. roots are the names that may
// be used where they are, and not be made. A component "*" stands for any. Some names of git come to be there, with
// nothing in them but what the broker writes itself.
func ProtectedNames(t *testing.T, open func(state string) (paddock.Driver, error), names, roots []string) {
	s := newSuite(t, Harness{New: open, Base: paddock.Spec{AllowMissing: Weak(t, open)}})
	have := map[string]string{"README": "read me", "low/README": "read me"}
	for _, name := range names {
		have[strings.ReplaceAll(name, "*", "x")] = "the host's\n"
	}
	for _, name := range roots {
		have[name+"/data"] = "the host's\n"
	}
	have[".git/worktrees/x/gitdir"] = "/mnt/full/README\n" // a working tree that is there
	brokers := map[string]string{
		".git/hooks": "d", ".git/worktrees/x/hooks": "d", ".git/branches": "d", ".git/remotes": "d", ".git/modules": "d",
		".git/worktrees/x/commondir": "-rw-r--r-- ../..\n", ".git/worktrees/x/gitdir": "-rw-r--r-- ",
	}
	plain := func(name string) string {
		return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, "\u200c", ""), "up/"))
	}
	empty, full := hostTree(t, map[string]string{"README": "read me"}), hostTree(t, have)
	before := tree(t, full)
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: empty, Target: "/mnt/empty", Write: true}, paddock.Mount{Source: full, Target: "/mnt/full", Write: true})
	})
	var list strings.Builder
	for _, name := range append(slices.Clone(names), roots...) {
		name = strings.ReplaceAll(name, "*", "x")
		for _, spelt := range []string{name, strings.ToUpper(name), name[:2] + "\u200c" + name[2:], "up/" + name} {
			list.WriteString(spelt + "\n")
		}
	}
	b.put(t, "/tmp/names", []byte(list.String()), 0o644)
	r := b.sh(t, `for top in /mnt/empty /mnt/full; do
	cd $top || exit 1
	sed -n 's,/[^/]*$,,p' /tmp/names | xargs -d '\n' mkdir -p
	while IFS= read -r name; do
		{ echo planted > "$name"; } 2> /dev/null && echo "wrote $top/$name"
		{ echo planted >> "$name"; } 2> /dev/null && echo "appended to $top/$name"
	done < /tmp/names
	xargs -d '\n' touch < /tmp/names
	xargs -d '\n' mkdir < /tmp/names
	[ $top = /mnt/empty ] || xargs -d '\n' rm -rf < /tmp/names
done 2> /dev/null
echo end`)
	if !strings.HasSuffix(r.out, "end\n") {
		t.Fatalf("the attempts did not end: %+v", r.exit)
	}
	for line := range strings.Lines(strings.TrimSuffix(r.out, "end\n")) {
		line = strings.TrimSpace(line)
		_, at, _ := strings.Cut(line, "/mnt/")
		_, at, _ = strings.Cut(at, "/")
		if what := brokers[plain(at)]; !strings.HasPrefix(what, "-") { // what it wrote is dropped
			t.Errorf("a command %s", line)
		}
	}
	// Only directories above names may be there, and be without what the host did not put there.
	for name, what := range tree(t, empty) {
		if may, ok := brokers[plain(name)]; ok && (what == may || may == "d" && strings.HasPrefix(what, "d")) {
			continue
		}
		if _, ok := brokers[path.Dir(plain(name))]; ok {
			t.Errorf("in the empty workspace there is %s: %s", name, what)
		}
		if !strings.HasPrefix(what, "d") && name != "README" {
			t.Errorf("in the empty workspace there is %s: %s", name, what)
		}
		if slices.ContainsFunc(append(slices.Clone(names), roots...), func(n string) bool {
			return strings.EqualFold(strings.ReplaceAll(strings.TrimPrefix(name, "up/"), "\u200c", ""), strings.ReplaceAll(n, "*", "x"))
		}) {
			t.Errorf("in the empty workspace there is %s", name)
		}
	}
	after := tree(t, full)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		// What a commit writes may be changed, and the test's own README.
		inRoot := slices.ContainsFunc(roots, func(root string) bool { return name == root+"/data" })
		if !inRoot && strings.HasPrefix(before[name], "-") && after[name] != before[name] {
			t.Errorf("%s was %q and is %q", name, before[name], after[name])
		}
	}
}
