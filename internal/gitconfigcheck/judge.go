package gitconfigcheck

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Settle returns what is to be written when Judge let content replace old: content without the lines that set
// core.worktree, unless they are as before. git writes the key for each submodule and finds the working tree without it,
// where the file .git is. With it, a directory that takes the place of the working tree leads git elsewhere.
func Settle(old, content []byte) []byte {
	was, now := worktrees(old), worktrees(content)
	if slices.Equal(was.values, now.values) {
		return content
	}
	var b bytes.Buffer
	for i, line := range bytes.SplitAfter(content, []byte("\n")) {
		if !slices.Contains(now.lines, i) {
			b.Write(line)
		}
	}
	return b.Bytes()
}

// A setting is where a configuration sets a key.
type setting struct {
	lines  []int
	values []string
}

// worktrees returns where a configuration sets core.worktree.
func worktrees(content []byte) (found setting) {
	var at Entry
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.Trim(line, " \t")
		if strings.HasPrefix(line, "[") {
			at, _ = header(line)
			continue
		}
		e := at
		if e.set(line) == "" && e.Name() == "core.worktree" {
			found.lines, found.values = append(found.lines, i), append(found.values, e.Value)
		}
	}
	return found
}

// Worktrees returns the values of core.worktree. They are not known if the configuration is not understood and may have
// some.
func Worktrees(content []byte) (values []string, known bool) {
	if _, err := Parse(content); err != nil {
		return nil, !bytes.Contains(bytes.ToLower(content), []byte("worktree"))
	}
	return worktrees(content).values, true
}

// A Place says where a configuration is to be.
type Place struct {
	// Dir is the absolute path of its directory, as the sandbox sees it.
	Dir string
	// Top is the absolute path of the working tree that has Dir as the repository of a submodule. It is empty if
	// Dir is something else.
	Top string
	// New means that the repository was made in this sandbox, so that nobody on the host has decided yet where it
	// fetches from and pushes to.
	New bool
	// Hosts has where the repository led before the sandbox changed it (see Destinations). But for a New one, that
	// stays, and a branch may follow no other remote. Nil stands for what the configuration that is there says.
	Hosts map[string]string
	// Worktree means that it is for one working tree (config.worktree). git reads it behind the configuration itself,
	// so what it says replaces or adds to what is there.
	Worktree bool
}

// A Refused is the error of Judge.
type Refused struct {
	Key string // full name of the key, or empty
	Why string
}

func (r *Refused) Error() string {
	if r.Key == "" {
		return r.Why
	}
	return r.Key + ": " + r.Why
}

// Judge returns nil if content may replace old as the configuration of a repository. Nil for old means that there is
// none, and nil for content that old is removed. Keys that are not on the list must be there as before: the same keys
// and values, in the same order. The error is a *Refused.
func Judge(old, content []byte, p Place) error {
	was, err := Parse(old)
	if err != nil {
		return &Refused{Why: "the configuration that is there is not understood: " + err.Error()}
	}
	now, err := Parse(content)
	if err != nil {
		return &Refused{Why: "it is not understood: " + err.Error()}
	}
	if err := foreign(was, now, p); err != nil {
		return err
	}
	if p.New {
		return nil
	}
	hosts := p.Hosts
	if hosts == nil {
		hosts = whither(was)
	}
	if err := kept(was, now, hosts); err != nil {
		return err
	}
	return followed(now, hosts)
}

// Destinations returns what leads a repository elsewhere: the names "remote.NAME" and "submodule.NAME", and
// "branch.NAME" with the remote that the branch follows. It is empty if the configuration is not understood.
func Destinations(content []byte) map[string]string {
	entries, err := Parse(content)
	if err != nil {
		return map[string]string{}
	}
	return whither(entries)
}

func whither(entries []Entry) map[string]string {
	found := map[string]string{}
	for name := range destinations(entries) {
		found[name] = ""
	}
	for _, e := range entries {
		if e.follows() {
			found["branch."+e.Sub] = e.Value
		}
	}
	return found
}

// follows reports whether an entry says which remote a branch follows.
func (e Entry) follows() bool { return e.HasSub && e.Section == "branch" && e.Key == "remote" }

// destinations returns the entries that say where a remote or a submodule leads, and what is pushed to it.
func destinations(entries []Entry) map[string][]Entry {
	found := map[string][]Entry{}
	for _, e := range entries {
		if e.HasSub && (e.Section == "remote" && slices.Contains([]string{"url", "pushurl", "push", "mirror"}, e.Key) || e.Section == "submodule" && e.Key == "url") {
			found[e.Section+"."+e.Sub] = append(found[e.Section+"."+e.Sub], e)
		}
	}
	return found
}

func remotesOf(entries []Entry) map[string]bool {
	names := map[string]bool{}
	for _, e := range entries {
		if e.HasSub && e.Section == "remote" && e.Key == "url" {
			names[e.Sub] = true
		}
	}
	return names
}

// followed refuses to let a branch follow a remote that the sandbox has added, or another one than on the host, because
// the user's next push and pull go there. git takes "origin" where nothing says which remote.
func followed(now []Entry, hosts map[string]string) error {
	host := func(remote string) bool { _, ok := hosts["remote."+remote]; return ok }
	some := false
	for name := range hosts {
		some = some || strings.HasPrefix(name, "remote.")
	}
	remotes := remotesOf(now)
	if some && remotes["origin"] && !host("origin") {
		return &Refused{"remote.origin.url", "git would use it in place of the remotes that the host has set"}
	}
	for _, e := range now {
		pushed := e.HasSub && e.Section == "branch" && e.Key == "pushremote" || !e.HasSub && e.Section == "remote" && e.Key == "pushdefault"
		if (e.follows() || pushed) && remotes[e.Value] && !host(e.Value) {
			return &Refused{e.Name(), "the remote was added in the sandbox, and only the host may let a branch of this repository follow it"}
		}
		if to, ok := hosts["branch."+e.Sub]; ok && e.follows() && e.Value != to && e.Value != "." {
			return &Refused{e.Name(), "the branch follows another remote, and only the host may change that"}
		}
	}
	return nil
}

// foreign compares the entries that the list does not let through.
func foreign(was, now []Entry, p Place) error {
	pick := func(entries []Entry) (kept []Entry, why []string) {
		remotes := remotesOf(entries)
		for _, e := range entries {
			if reason := e.refused(p, remotes); reason != "" {
				kept, why = append(kept, e), append(why, reason)
			}
		}
		return kept, why
	}
	before, _ := pick(was)
	after, why := pick(now)
	for i, e := range after {
		if i >= len(before) || before[i] != e {
			return &Refused{e.Name(), why[i]}
		}
	}
	if len(after) < len(before) {
		return &Refused{before[len(after)].Name(), "it is set on the host, and only the host may remove it"}
	}
	return nil
}

// kept refuses to change what of the host leads elsewhere.
func kept(was, now []Entry, hosts map[string]string) error {
	before, after := destinations(was), destinations(now)
	for _, name := range slices.Sorted(maps.Keys(hosts)) { // so that the answer is always the same
		b, a := before[name], after[name]
		for i := range max(len(a), len(b)) {
			if i < len(a) && i < len(b) && a[i] == b[i] {
				continue
			}
			e := slices.Concat(b[min(i, len(b)):], a[min(i, len(a)):])[0]
			return &Refused{e.Name(), "it is there already, and only the host may change where it leads"}
		}
	}
	return nil
}

// refused returns why an entry is not let through, or nothing.
func (e Entry) refused(p Place, remotes map[string]bool) string {
	const unlisted = "the key is not on the list of keys that cannot run anything"
	name := e.Section + "." + e.Key
	if e.HasSub {
		if strings.ContainsFunc(e.Sub, hidden) || e.Sub == "" {
			return "the name has a character that is not shown"
		}
		name = e.Section + ".*." + e.Key
	}
	check := allowed()[name]
	if check == nil {
		return unlisted
	}
	if p.Worktree && !slices.Contains([]string{"core.bare", "core.worktree", "core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse"}, name) {
		return "the key is not one that git puts into the configuration of one working tree"
	}
	value := e.Value
	if e.NoValue {
		value = "true"
	}
	if strings.ContainsFunc(value, hidden) {
		return "the value has a character that is not shown"
	}
	if !check(value, judging{e.Sub, p, remotes}) {
		return fmt.Sprintf("the value %q is not one that is let through", short(value))
	}
	return ""
}

func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// judging is what a check of a value may look at.
type judging struct {
	sub     string
	place   Place
	remotes map[string]bool
}

type check func(value string, j judging) bool

func boolean(v string, _ judging) bool {
	return slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(v))
}

func number(v string, _ judging) bool {
	n := strings.TrimRight(strings.ToLower(v), "kmg")
	if len(v)-len(n) > 1 {
		return false
	}
	_, err := strconv.ParseInt(n, 10, 64)
	return err == nil
}

// word is a name of a mode, a color or an algorithm, or several of them: no path and no command.
func word(v string, _ judging) bool {
	return !strings.HasPrefix(v, "-") && len(v) <= 200 && !strings.ContainsFunc(v, func(r rune) bool {
		return r >= 0x80 || !letter(byte(r)) && !digit(byte(r)) && !strings.ContainsRune(" ,.-_:+=#%@", r)
	})
}

func text(v string, _ judging) bool { return len(v) <= 1000 }

// several is a number of threads or processes.
func several(v string, _ judging) bool {
	n, err := strconv.Atoi(v)
	return err == nil && n >= 0 && n <= 64
}

func oneOf(words ...string) check {
	return func(v string, _ judging) bool { return slices.Contains(words, v) }
}

// pushes says what a push without a name pushes. With "current", a branch of the host that lost its remote would go to
// "origin".
func pushes(v string, j judging) bool {
	return v == "simple" || v == "nothing" || v == "current" && j.place.New
}

func flagOr(words ...string) check {
	return func(v string, j judging) bool { return boolean(v, j) || slices.Contains(words, v) }
}

// ref is the name of a branch or another reference, or a pattern of them.
func ref(v string, _ judging) bool {
	v = strings.TrimPrefix(strings.TrimPrefix(v, "+"), "^")
	return v != "" && len(v) <= 1000 && v[0] != '-' && !strings.Contains(v, "..") && !strings.ContainsAny(v, " \\~?[\"'`$;|&<>(){}!") && strings.Count(v, ":") <= 1
}

// A remote is one that the configuration itself has, or ".": never an address.
func remote(v string, j judging) bool { return v == "." || remoteName(v) && j.remotes[v] }

func remoteName(v string) bool {
	return v != "" && v[0] != '-' && v[0] != '.' && !strings.ContainsFunc(v, func(r rune) bool {
		return r >= 0x80 || !letter(byte(r)) && !digit(byte(r)) && !strings.ContainsRune(".-_/", r)
	}) && !strings.Contains(v, "..")
}

// address is a place that git reaches by its own transports or by ssh: no helper program (NAME::ADDRESS, other schemes),
// and nothing that ssh or git would take for an option.
func address(v string, _ judging) bool {
	if v == "" || len(v) > 2000 || v[0] == '-' || strings.Contains(v, "::") || strings.ContainsAny(v, "\\\"'`$;|<>(){}! ") {
		return false
	}
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok {
		host, tail, colon := strings.Cut(v, ":")
		if !colon || strings.Contains(host, "/") { // a path
			return true
		}
		return authority(host) && !strings.Contains(host, "%") && tail != "" && tail[0] != '-' // user@host:path
	}
	if strings.Contains(v, "%0") || strings.Contains(v, "%1") { // of control characters
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	switch strings.ToLower(scheme) {
	case "https", "http", "git":
		return authority(host)
	case "ssh": // which may give the name of a user to a shell
		return authority(host) && !strings.Contains(host, "%")
	case "file":
		return strings.HasPrefix(rest, "/")
	}
	return false
}

// authority checks user, password, host and port of an address.
func authority(v string) bool {
	if v == "" {
		return false
	}
	user, host, ok := strings.Cut(v, "@")
	if !ok {
		user, host = "", v
	}
	if host == "" || host[0] == '-' || strings.HasPrefix(user, "-") || strings.HasPrefix(strings.ToLower(user), "%2d") || strings.Contains(host, "@") {
		return false
	}
	return !strings.ContainsFunc(host, func(r rune) bool {
		return r >= 0x80 || !letter(byte(r)) && !digit(byte(r)) && !strings.ContainsRune(".-_:[]", r)
	}) && !strings.ContainsFunc(user, func(r rune) bool {
		return r >= 0x80 || !letter(byte(r)) && !digit(byte(r)) && !strings.ContainsRune(".-_:%+~*", r)
	})
}

// plain is a path of plain components that does not go upward: the name or the path of a submodule.
func plain(v string) bool {
	return v != "" && v[0] != '-' && !strings.HasPrefix(v, "/") && !strings.Contains(v, `\`) && path.Clean(v) == v && v != "." && v != ".." && !strings.HasPrefix(v, "../")
}

// submodule is a value of a submodule whose name is a plain path.
func submodule(of check) check {
	return func(v string, j judging) bool { return plain(j.sub) && of(v, j) }
}

// subaddress is also an address relative to that of the superproject.
func subaddress(v string, j judging) bool {
	if strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") {
		return !strings.ContainsAny(v, "\\\"'`$;|<>(){}!: ")
	}
	return address(v, j)
}

// worktree is the way from the repository of a submodule to its working tree, which is in the superproject. It is
// never written (see Settle).
func worktree(v string, j judging) bool {
	if j.place.Top == "" || strings.HasPrefix(v, "/") || strings.Contains(v, `\`) {
		return false
	}
	down := v
	for strings.HasPrefix(down, "../") {
		down = down[3:]
	}
	if down == v || !plain(down) {
		return false
	}
	return strings.HasPrefix(path.Join(j.place.Dir, v), strings.TrimSuffix(j.place.Top, "/")+"/") && !strings.Contains("/"+down+"/", "/.git/")
}
