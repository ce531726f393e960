package gitconfig

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

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
	// Hosts has the remotes and submodules that the repository had before the sandbox changed it (see Destinations).
	// But for a New one, they stay, and a branch may follow no other remote. Nil stands for those of the configuration
	// that is there.
	Hosts map[string]bool
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
		hosts = names(was)
	}
	if err := kept(was, now, hosts); err != nil {
		return err
	}
	return followed(now, hosts)
}

// Destinations returns what leads a repository elsewhere, as "remote.NAME" and "submodule.NAME". It is empty if the
// configuration is not understood.
func Destinations(content []byte) map[string]bool {
	entries, err := Parse(content)
	if err != nil {
		return map[string]bool{}
	}
	return names(entries)
}

func names(entries []Entry) map[string]bool {
	found := map[string]bool{}
	for name := range destinations(entries) {
		found[name] = true
	}
	return found
}

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

// followed refuses to let a branch follow a remote that the sandbox has added, because the user's next push and pull go
// there. git takes "origin" where nothing says which remote.
func followed(now []Entry, hosts map[string]bool) error {
	some := false
	for name := range hosts {
		some = some || strings.HasPrefix(name, "remote.")
	}
	remotes := remotesOf(now)
	if some && remotes["origin"] && !hosts["remote.origin"] {
		return &Refused{"remote.origin.url", "git would use it in place of the remotes that the host has set"}
	}
	for _, e := range now {
		if e.HasSub && e.Section == "branch" && e.Key == "remote" && remotes[e.Value] && !hosts["remote."+e.Value] {
			return &Refused{e.Name(), "the remote was added in the sandbox, and only the host may let a branch of this repository follow it"}
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
func kept(was, now []Entry, hosts map[string]bool) error {
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

func oneOf(words ...string) check {
	return func(v string, _ judging) bool { return slices.Contains(words, v) }
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
		return authority(host) && tail != "" && tail[0] != '-' // user@host:path
	}
	switch strings.ToLower(scheme) {
	case "https", "http", "git", "ssh":
		host, _, _ := strings.Cut(rest, "/")
		return authority(host)
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

// worktree is the way from the repository of a submodule to its working tree, which is in the superproject.
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
