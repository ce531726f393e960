package monitor

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// A rule judges one input. Its name is a part of the contract: it is in the record and in docs/use/monitor.md.
type rule struct {
	name    string
	moments []Moment
	files   bool // needs measured files
	network bool // needs measured connections
	about   string
	judge   func(*facts) (Verdict, float64, string)
}

// facts are what a rule looks at.
type facts struct {
	*Input

	re      *patterns
	text    string   // of the command, whole and normalized
	bare    string   // the same without quotes and backslashes
	removed int      // removals from which on a step is looked at
	fresh   *Notable // the path that is the occasion, of Effect
	flow    *HostUsed
	beyond  bool     // it is an effect beyond those that the judge is asked about
	known   []string // hosts that give packages out, in lower case
	keys    string   // a name of keys that an earlier step named or wrote, however long ago
	reached bool     // an earlier step reached the destination
	cut     bool     // the command is longer than its text
}

// A RuleInfo describes a built-in rule.
type RuleInfo struct {
	Name    string
	About   string
	Moments []Moment
}

// Rules lists the built-in rules.
func Rules() []RuleInfo {
	list := rules()
	infos := make([]RuleInfo, len(list))
	for i, r := range list {
		infos[i] = RuleInfo{r.name, r.about, r.moments}
	}
	return infos
}

// OffRules lists the rules that cannot work with what is measured.
func OffRules(m Measured) []string {
	var off []string
	for _, r := range rules() {
		if r.files && !m.Files || r.network && !m.Network {
			off = append(off, r.name)
		}
	}
	return off
}

func rules() []rule {
	return slices.Concat(commandRules(), []rule{
		{
			name: "delete-many", moments: []Moment{Effect, Apply}, files: true, judge: deletesMany,
			about: "a step removed or emptied many files outside of directories that tools rebuild, and most of what was there",
		},
		{
			name: "delete-repository", moments: []Moment{Effect, Apply}, files: true, judge: deletesRepository,
			about: "a step removed the files without which a repository of git is none",
		},
		{
			name: "write-hook", moments: []Moment{Effect, Apply}, files: true, judge: writes("hook", Pause, 0.8, "hook", "husky", "pre-commit", "lint-staged"),
			about: "a step wrote a hook that tools run by themselves, and the task does not speak of hooks",
		},
		{
			name: "write-ci", moments: []Moment{Effect, Apply}, files: true, judge: writes("ci", Ask, 0.6, "ci", "workflow", "workflows", "pipeline", "pipelines", "actions", "gitlab", "jenkins", "release"),
			about: "a step changed what a CI service runs, and the task does not speak of it",
		},
		{
			name: "write-shell", moments: []Moment{Effect, Apply}, files: true, judge: writes("shell", Pause, 0.8, "bashrc", "zshrc", "profile", "envrc", "direnv", "dotfiles", "shell", "ssh", "cron", "systemd"),
			about: "a step wrote a file that a shell, a session or a scheduler of the user reads, and the task does not speak of it",
		},
		{
			name: "write-agent", moments: []Moment{Effect, Apply}, files: true, judge: writes("agent", Ask, 0.6, "claude", "agents", "agent", "cursor", "copilot", "gemini", "instructions", "mcp", "rules", "vscode"),
			about: "a step wrote instructions or settings of coding agents or editors, and the task does not speak of them",
		},
		{
			name: "write-unseen", moments: []Moment{Effect}, files: true, judge: writesUnseen,
			about: "a step changed something that cannot be named",
		},
		{
			name: "write-unknown", moments: []Moment{Effect}, files: true, judge: writesUnknown,
			about: "a step changed in place a file with other names that are not known",
		},
		{
			name: "host-after-keys", moments: []Moment{Host}, network: true, judge: afterKeys,
			about: "the first connection to a host, after a command named files of keys or files named like keys were written",
		},
		{
			name: "host-drop", moments: []Moment{Host}, network: true, judge: dropHost,
			about: "the first connection to a service that takes anything from anybody, or to a bare address",
		},
		{
			name: "upload-new-host", moments: []Moment{Effect}, network: true, judge: uploads,
			about: "more than 1 MiB went to a host that no earlier step had reached",
		},
	})
}

// judgeRules returns the strictest verdict of the rules.
func judgeRules(list []rule, f *facts) Decision {
	best := Decision{Verdict: Allow, Judge: judgeOfRules}
	for _, r := range list {
		if !slices.Contains(r.moments, f.Moment) || r.files && !f.Measured.Files || r.network && !f.Measured.Network {
			continue
		}
		if v, score, why := r.judge(f); v.rank() > best.Verdict.rank() {
			best = Decision{Verdict: v, Reason: why, Score: score, Rule: r.name, Judge: judgeOfRules}
		}
	}
	return best
}

// Numbers of the rule delete-many.
const (
	manyShare  = 0.5  // of what was there
	manyAlways = 5000 // whatever else is there
)

func deletesMany(f *facts) (Verdict, float64, string) {
	s := f.Step.Files
	if s == nil {
		return Allow, 0, ""
	}
	gone := s.Removed + s.Emptied
	if gone < f.removed {
		return Allow, 0, ""
	}
	if gone >= manyAlways {
		return Pause, 0.9, fmt.Sprintf("it removed %d files and directories in one step", gone)
	}
	all := gone + s.Present
	if s.Partial || float64(gone) < manyShare*float64(all) {
		return Allow, 0, ""
	}
	return Pause, 0.9, fmt.Sprintf("it removed %d of %d files and directories in one step", gone, all)
}

func deletesRepository(f *facts) (Verdict, float64, string) {
	for _, n := range f.Step.Guest.Notable {
		if n.Kind == kindRepository && (n.What == "removed" || n.What == "moved") {
			return Pause, 0.9, "it removed " + n.Path + ", without which the repository and its history are lost"
		}
	}
	return Allow, 0, ""
}

// writes returns the judge of a rule about notable paths of a kind, unless the user's task has one of the words.
func writes(kind string, v Verdict, score float64, words ...string) func(*facts) (Verdict, float64, string) {
	return func(f *facts) (Verdict, float64, string) {
		if speaks(f.Task, words) {
			return Allow, 0, ""
		}
		list := f.Step.Guest.Notable
		if f.fresh != nil {
			list = []Notable{*f.fresh}
		}
		for _, n := range list {
			if n.Kind == kind && n.What != "removed" {
				return v, score, "it " + n.What + " " + n.Path + ", which runs or is followed outside of the sandbox"
			}
		}
		return Allow, 0, ""
	}
}

// writesUnseen is about what may be any file: it counts as the worst that it can be. It is a rule of its own, because what a
// person let go on by one rule is not asked again in that command.
func writesUnseen(f *facts) (Verdict, float64, string) {
	if f.fresh != nil && f.fresh.Kind == kindUnseen {
		return Pause, 0.8, "it changed something of which the sandbox does not tell the name"
	}
	return Allow, 0, ""
}

// writesUnknown is about a file that may have any name too.
func writesUnknown(f *facts) (Verdict, float64, string) {
	if f.fresh != nil && f.fresh.Kind == kindLinked {
		return Ask, 0.6, "it writes to " + f.fresh.Path + ", which has other names, and so to files that cannot be told"
	}
	return Allow, 0, ""
}

// speaks reports whether a text has one of the words, as words.
func speaks(task string, words []string) bool {
	has := strings.FieldsFunc(strings.ToLower(task), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return slices.ContainsFunc(has, func(w string) bool {
		return slices.Contains(words, w) || slices.Contains(words, strings.TrimSuffix(w, "s"))
	})
}

// afterKeys is about what is measured: that commands named files of keys, or that such files were written. Nobody measures
// what a command reads.
func afterKeys(f *facts) (Verdict, float64, string) {
	if f.Destination == nil || slices.Contains(f.known, strings.ToLower(f.Destination.Guest.Host)) {
		return Allow, 0, ""
	}
	host := f.Destination.Guest.Host
	if f.reached {
		return Allow, 0, ""
	}
	for _, s := range slices.Backward(append(slices.Clone(f.Earlier), f.Step)) {
		if used := slices.ContainsFunc(s.Guest.Hosts, func(h HostUsed) bool { return h.Host == host && !h.Refused && !h.New }); used {
			return Allow, 0, "" // an earlier step reached it
		}
	}
	text := f.bare
	if name := f.re.keyFile(text); name != "" {
		return Deny, 0.7, "it connects to " + host + " for the first time, after its command named " + name
	}
	for _, s := range append(slices.Clone(f.Earlier), f.Step) {
		if name := f.re.keyFile(bare(commandText(s.Guest.Command))); name != "" {
			return Deny, 0.6, "it connects to " + host + " for the first time, after an earlier command named " + name
		}
		for _, n := range s.Guest.Notable {
			if n.Kind == kindKey && n.What != "removed" {
				return Deny, 0.6, "it connects to " + host + " for the first time, after " + n.Path + " was written"
			}
		}
	}
	if f.keys != "" { // which no number of later commands makes forgotten
		return Deny, 0.6, "it connects to " + host + " for the first time, after an earlier command named or wrote " + f.keys
	}
	return Allow, 0, ""
}

// dropHost is about services at which anybody can leave data for anybody, and about tunnels and bare addresses.
func dropHost(f *facts) (Verdict, float64, string) {
	if f.Destination == nil {
		return Allow, 0, ""
	}
	host := strings.ToLower(strings.TrimSuffix(f.Destination.Guest.Host, "."))
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if addr.IsLoopback() || addr.IsPrivate() {
			return Allow, 0, "" // a rule has to name it
		}
		return Ask, 0.6, "it connects to the bare address " + host
	}
	for _, d := range []string{
		"pastebin.com", "paste.ee", "hastebin.com", "dpaste.com", "dpaste.org", "ix.io", "sprunge.us", "termbin.com", "rentry.co", "0x0.st", "transfer.sh",
		"file.io", "gofile.io", "bashupload.com", "temp.sh", "catbox.moe", "anonfiles.com", "webhook.site", "requestbin.com", "requestbin.net",
		"pipedream.net", "beeceptor.com", "hookbin.com", "ngrok.io", "ngrok.app", "ngrok-free.app", "trycloudflare.com", "serveo.net", "localhost.run",
		"localtunnel.me", "loca.lt", "interact.sh", "oast.fun", "oast.live", "oast.me", "oast.online", "oast.pro", "oast.site", "oastify.com",
		"burpcollaborator.net", "dnslog.cn", "canarytokens.com", "api.telegram.org",
	} {
		if host == d || strings.HasSuffix(host, "."+d) {
			return Deny, 0.8, "it connects to " + host + ", where anybody can leave data for anybody"
		}
	}
	return Allow, 0, ""
}

// muchSent is what a step may send to a new host, in bytes.
const muchSent = 1 << 20

func uploads(f *facts) (Verdict, float64, string) {
	if f.flow == nil || !f.flow.New || f.flow.Sent < muchSent {
		return Allow, 0, ""
	}
	if f.re.publishes.MatchString(f.text) && (forge(f.flow.Host) || slices.Contains(f.known, strings.ToLower(f.flow.Host))) {
		return Allow, 0, ""
	}
	return Pause, 0.7, fmt.Sprintf("it sent %d bytes to %s, which no earlier step had reached", f.flow.Sent, f.flow.Host)
}

// forge reports whether a host is one that people publish to.
func forge(host string) bool {
	host = strings.ToLower(host)
	for _, d := range []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "docker.io", "huggingface.co", "amazonaws.com", "googleapis.com"} {
		if host == d || strings.HasSuffix(host, "."+d) {
			return true
		}
	}
	return false
}

// Kinds of notable paths.
const (
	kindHook       = "hook"
	kindCI         = "ci"
	kindShell      = "shell"
	kindAgent      = "agent"
	kindKey        = "key"
	kindRepository = "repository"
	kindLinked     = "linked" // it has other names, which may be any
	kindUnseen     = "unseen" // nobody knows its name
)

// notableKind returns the kind of a path below a mounted directory, or nothing. It looks at the name only.
func notableKind(p string) string {
	p = strings.ToLower(p)
	base, dir := path.Base(p), "/"+path.Dir(p)+"/"
	has := func(part string) bool { return strings.Contains("/"+p, part) }
	switch {
	case has("/.git/hooks/") && !strings.HasSuffix(base, ".sample"), has("/.husky/"), has("/.githooks/"), base == ".pre-commit-config.yaml", base == "lefthook.yml",
		base == ".lintstagedrc":
		return kindHook
	case strings.HasSuffix(dir, "/.git/") && (base == "head" || base == "objects" || base == "refs"):
		return kindRepository
	case has("/.github/workflows/"), has("/.github/actions/"), base == ".gitlab-ci.yml", base == "jenkinsfile", has("/.circleci/"), base == "azure-pipelines.yml",
		base == ".travis.yml", base == "bitbucket-pipelines.yml", has("/.buildkite/"), base == ".drone.yml", base == "cloudbuild.yaml", has("/.woodpecker"):
		return kindCI
	case slices.Contains([]string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc",
		".inputrc", ".envrc", ".xprofile", ".xinitrc", ".xsessionrc", "authorized_keys", "config.fish", ".gitconfig", ".tmux.conf", ".vimrc",
	}, base), has("/.ssh/"), has("/.config/autostart/"), has("/.config/systemd/user/"), has("/.config/fish/"), has("/library/launchagents/"), has("/cron.d/"), has("/crontabs/"):
		return kindShell
	case slices.Contains([]string{"claude.md", "claude.local.md", "agents.md", "gemini.md", ".cursorrules", ".windsurfrules", ".clinerules", "copilot-instructions.md", ".mcp.json", ".aider.conf.yml"}, base),
		has("/.claude/"), has("/.cursor/"), has("/.codex/"), has("/.gemini/"), has("/.continue/"), has("/.vscode/tasks.json"), has("/.vscode/settings.json"), has("/.idea/runconfigurations/"):
		return kindAgent
	case keyName(base) || has("/.aws/credentials") || has("/.kube/config") || has("/.docker/config.json"):
		return kindKey
	}
	return ""
}

// treeKind returns the kind of what tools act on in a directory, by its name alone.
func treeKind(p string) string {
	for _, below := range []string{
		"x", "workflows/x", "actions/x", "autostart/x", "systemd/user/x", "user/x", "fish/x", "runconfigurations/x", "tasks.json", "config", "config.json",
	} {
		if kind := notableKind(p + "/" + below); kind != "" && kind != kindRepository {
			return kind
		}
	}
	return ""
}

// keyName reports whether a file has the name of one that usually holds keys or passwords.
func keyName(base string) bool {
	switch base {
	case ".env", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "credentials", "credentials.json", "secrets.json", "secrets.yaml", "secrets.yml",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "service-account.json", ".htpasswd", "shadow", "kubeconfig", "login.keychain", "wallet.dat", "key.pem", "private.pem", "privkey.pem":
		return true
	}
	if rest, ok := strings.CutPrefix(base, ".env."); ok {
		return !slices.Contains([]string{"example", "sample", "template", "dist", "test", "defaults"}, rest)
	}
	return strings.HasSuffix(base, ".key") || strings.HasSuffix(base, ".p12") || strings.HasSuffix(base, ".pfx") || strings.HasSuffix(base, ".kdbx") || strings.HasSuffix(base, ".jks")
}

// rebuildable reports whether a path is in a directory that tools rebuild, by its name.
func rebuildable(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".gradle", ".next", ".nuxt", ".turbo", ".cache", ".venv", "venv",
			"target", "dist", "build", "out", "coverage", "htmlcov", "bazel-out", ".terraform", ".parcel-cache", ".svelte-kit", "cmakefiles", "deriveddata", "pods", ".dart_tool", "zig-cache", ".zig-cache", "zig-out", "_build", "deps", "obj":
			return true
		}
		if strings.HasSuffix(part, ".egg-info") || strings.HasPrefix(part, "cmake-build-") {
			return true
		}
	}
	return false
}
