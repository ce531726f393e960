package monitor

import (
	"regexp"
	"strings"
)

// maxRuleText bounds what rules look at of a command, in bytes.
const maxRuleText = 256 << 10

func commandRules() []rule {
	exec := []Moment{Exec}
	return []rule{
		{
			name: "reverse-shell", moments: exec, about: "the text of the command joins a shell to a connection", judge: matches(Deny, 0.95, "its text joins a shell to a connection", `
/dev/(tcp|udp)/
\b(nc|ncat|netcat|nc\.openbsd|nc\.traditional|busybox nc)\b[^|;&]*\s-[a-z]*[ec]\b
\bsocat\b.*\b(exec|system)\s*:
\bmkfifo\b.*\b(nc|ncat|netcat|telnet|openssl)\b
\bmknod\b.*\bp\b.*\b(nc|ncat|netcat|telnet|openssl)\b
\b(python[0-9.]*|pypy3?)\b.*\bsocket\b.*(\bdup2\b|\bpty\b|\bsubprocess\b|/bin/(ba|z|da)?sh)
\bperl\b.*\bsocket\b.*(\bexec\b|\bsystem\b|>&s)
\bruby\b.*\btcpsocket\b.*(\bexec\b|\bspawn\b|/sh\b|io\.popen)
\bphp\b.*\bfsockopen\b.*(\bexec\b|\bshell_exec\b|\bpassthru\b|\bproc_open\b|\bsystem\b)
\bnode\b.*\bnet\b.*(\bconnect\b|\bsocket\b).*(child_process|\bspawn\b|/sh\b)
\b(telnet|openssl s_client)\b[^;&]*\|\s*(/bin/)?(ba|z|da)?sh\b
\b(ba|z|da)?sh\b[^;]*\|\s*(telnet|openssl s_client|nc|ncat|netcat)\b[^;]*\|\s*(/bin/)?(ba|z|da)?sh\b
\b(nc|ncat|netcat)\b[^;&|]*\|\s*(/bin/)?(ba|z|da)?sh\b
\blua\b.*\bsocket\b.*\b(popen|execute)\b
\bawk\b.*/inet/(tcp|udp)/
\bssh\b[^;&|]*\s-[a-z]*r\s*[0-9:]+:(localhost|127\.0\.0\.1):22\b
\b(msfvenom|meterpreter|chisel client|ligolo|sliver)\b
`),
		},
		{
			name: "delete-all", moments: exec, about: "the text of the command removes or overwrites everything at once", judge: deletesAll,
		},
		{
			name: "send-keys", moments: exec, about: "the text of the command names files of keys, or the environment, and sends data", judge: sendsKeys,
		},
		{
			name: "hidden-code", moments: exec, about: "the command runs code that its text encodes", judge: matches(Deny, 0.85, "it runs code that its text encodes or hides", `
\b(base64|base32|openssl (enc|base64)|xxd|uudecode|rev|gunzip|zcat|gzip|bunzip2|xz)\b[^;&]*(\s-{1,2}[a-z]*d|\s-r|\brev\b|gunzip|zcat)[^;&]*\|\s*(sudo )?(/bin/|/usr/bin/)?(ba|z|da|k)?sh\b
\b(base64|base32)\b[^;&]*\s(-d|--decode)[^;&]*\|\s*(python[0-9.]*|perl|ruby|node|php)\b
\|\s*rev\s*\|\s*(ba|z|da)?sh\b
\beval\b[^;]*(base64|xxd|base32|\brev\b|printf)
\bexec\s*\(\s*(__import__|base64|compile|zlib|codecs|bytes\.fromhex)
\bexec\b.*\b(b64decode|fromhex|decompress)\b
\b(b64decode|fromhex|a85decode)\b.*\b(exec|eval|system|popen)\b
\beval\s*\(\s*(buffer\.from|atob|base64_decode|gzinflate|unescape)
\bbuffer\.from\(.*base64.*\b(eval|function)\b
\bprintf\b\s+\S*\\x[0-9a-f]{2}[^|;]*\|\s*(ba|z|da)?sh\b
\$'\\x[0-9a-f]{2}(\\x[0-9a-f]{2}){3,}
\becho\b\s+-[a-z]*e[a-z]*\s+\S*\\x[0-9a-f]{2}[^|;]*\|\s*(ba|z|da)?sh\b
\bperl\b.*\bpack\b\s*\(?\s*.h\*.*\b(eval|system|exec)\b
\b(bash|sh)\b\s*<<<\s*\$\([^)]*(base64|xxd|rev)
`),
		},
		{
			name: "run-download", moments: exec, about: "the command runs what it downloads, from a host that is not known for its installer", judge: runsDownload,
		},
		{
			name: "too-long", moments: exec, about: "the command is too long for the rules to look at all of it", judge: func(f *facts) (Verdict, float64, string) {
				if f.cut || len(f.text) >= maxRuleText {
					return Ask, 0.5, "its text is too long to be looked at"
				}
				return Allow, 0, ""
			},
		},
	}
}

// matches returns the judge of a rule about the text of commands: one regular expression a line, in lower case.
func matches(v Verdict, score float64, why, list string) func(*facts) (Verdict, float64, string) {
	res := compile(list)
	return func(f *facts) (Verdict, float64, string) {
		text, plain := strings.ToLower(f.text), strings.ToLower(f.bare)
		for _, re := range res {
			if re.MatchString(text) || re.MatchString(plain) {
				return v, score, why
			}
		}
		return Allow, 0, ""
	}
}

func compile(list string) []*regexp.Regexp {
	var res []*regexp.Regexp
	for line := range strings.Lines(strings.TrimSpace(list)) {
		res = append(res, regexp.MustCompile(`(?s)`+strings.TrimSpace(line)))
	}
	return res
}

// commandText returns the text of a command, as rules look at it.
func commandText(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if b.Len()+len(a) > maxRuleText {
			b.WriteString(a[:max(0, maxRuleText-b.Len())])
			break
		}
		b.WriteString(a)
	}
	text := strings.NewReplacer("\\\n", " ", "\x00", " ", "${IFS}", " ", "$IFS", " ", "\t", " ").Replace(b.String())
	for strings.Contains(text, "  ") && len(text) < maxRuleText {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	return text
}

// bare returns a text without what only hides words from a simple look: quotes, backslashes, and variables that are empty.
func bare(text string) string {
	return strings.NewReplacer(`''`, "", `""`, "", `'`, "", `"`, "", `\`, "", "$@", "", "$*", "").Replace(text)
}

// deletesAll is about targets that hold everything.
func deletesAll(f *facts) (Verdict, float64, string) {
	const why = "its text removes or overwrites everything at once"
	for _, text := range []string{f.text, f.bare} {
		for _, re := range f.re.deletesAll {
			if re.MatchString(text) {
				return Deny, 0.9, why
			}
		}
		for _, m := range f.re.removes.FindAllStringSubmatch(text, -1) {
			options, targets := removal(m[1])
			if !options {
				continue
			}
			for _, t := range targets {
				if everything(t) {
					return Deny, 0.9, why + ": " + t
				}
			}
		}
	}
	return Allow, 0, ""
}

// deletesAllTexts has one regular expression a line.
const deletesAllTexts = `
\bfind\s+(/|~|\.|\.\.|\$home|\$HOME|\.git|\./|\*)/?\s+(-(mindepth|maxdepth)\s+\d+\s+|-type\s+[fdl]\s+|-xdev\s+|-depth\s+|!\s+-name\s+\S+\s+|-not\s+-name\s+\S+\s+)*(-delete\b|-exec\s+(sudo\s+)?(/bin/)?(rm|shred|unlink)\b|-print0?\s*\|\s*xargs\b[^;|]*\b(rm|shred|unlink)\b)
\bfind\s+(/|~|\.|\./)?\s*(-type\s+[fdl]\s*)?\s*(-print0)?\s*\|\s*xargs\s[^;|]*\b(rm|shred|unlink)\b
\b(git\s+ls-files|ls\s+-A|ls\s+-a|ls|git\s+ls-tree\s[^|]*)\s*(-z\s*)?\|\s*xargs\s[^;|]*\b(rm|shred|unlink|truncate)\b
\bgit\s+rm\s+(-[a-zA-Z-]+\s+)*(\.|\*|:/|--\s+\.)(\s|$)
\bshutil\.rmtree\(\s*.?(\.|/|\.\.|os\.getcwd\(\)|os\.path\.expanduser\(.?~.?\)|pathlib\.Path\.home\(\)|Path\(\)|\.git)['"/]?\s*[,)]
\bfs\.(rmSync|rm|rmdirSync)\(\s*.?(\.|/|\.git|process\.cwd\(\))['"/]?\s*,
\b(mkfs(\.\w+)?|wipefs)\b\s+\S*/dev/
\bdd\b[^;|]*\bof=/dev/(sd|nvme|vd|hd|mmcblk|disk)
\bshred\b[^;|]*\s(-[a-z]*u|--remove)[^;|]*(\*|\$\()
\brsync\b[^;|]*--delete\b[^;|]*\s(/dev/null|/var/empty|\S*empty\S*)/?\s+(\./?|/|~|\$HOME)(\s|$)
:\s*\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;
\bgit\s+clean\s+(-[a-zA-Z]*\s+)*-[a-zA-Z]*(x[a-zA-Z]*f|f[a-zA-Z]*x)[a-zA-Z]*f
\bmv\s+(\./)?(\*|\.git|\.)\s+/dev/null
\bchmod\s+(-R|--recursive)\s+0*\s+(/|\.|~)
`

// removal splits the arguments of rm, and reports whether it removes directories.
func removal(args string) (recursive bool, targets []string) {
	for _, a := range strings.Fields(args) {
		switch {
		case a == "--recursive":
			recursive = true
		case strings.HasPrefix(a, "--"):
		case strings.HasPrefix(a, "-"):
			recursive = recursive || strings.ContainsAny(a, "rR")
		case strings.HasPrefix(a, "2>") || strings.HasPrefix(a, ">"):
		default:
			targets = append(targets, strings.Trim(a, `'"`))
		}
	}
	return recursive, targets
}

// everything reports whether a target of a removal is all that there is.
func everything(t string) bool {
	if len(t) > 1 {
		t = strings.TrimSuffix(t, "/")
	}
	switch t {
	case "/", "/*", "~", "~/*", ".", "..", "./*", "../*", "*", ".*", "./.*", ".[!.]*", ".??*", "$HOME", "${HOME}", "$HOME/*", "${HOME}/*", "$PWD", "$PWD/*", "${PWD}", "$(pwd)", "$OLDPWD",
		".git", "./.git", ".git/*", ".git/objects", "/home", "/root", "/etc", "/usr", "/var", "/home/*", "{*,.*}", "--no-preserve-root":
		return true
	}
	return false
}

// sendsKeys is about commands that name keys and send something.
func sendsKeys(f *facts) (Verdict, float64, string) {
	for _, text := range []string{f.text, f.bare} {
		if !f.re.sends.MatchString(strings.ToLower(text)) {
			continue
		}
		if name := f.re.keyFile(text); name != "" {
			return Deny, 0.9, "its text names " + name + " and sends data"
		}
		if f.re.environment.MatchString(strings.ToLower(text)) {
			return Deny, 0.85, "its text sends the environment"
		}
	}
	return Allow, 0, ""
}

// patterns are the regular expressions of the rules. They are made once for a monitor: programs that have none do not pay.
type patterns struct {
	removes     *regexp.Regexp // finds calls of rm with their arguments
	deletesAll  []*regexp.Regexp
	sends       *regexp.Regexp
	environment *regexp.Regexp
	publishes   *regexp.Regexp
	keyFiles    *regexp.Regexp
	downloads   *regexp.Regexp
	host        *regexp.Regexp
}

func newPatterns() *patterns {
	return &patterns{
		removes:     regexp.MustCompile(`(?:^|[\s;&|(/` + "`" + `])rm\s+([^;&|)` + "`" + `\n]*)`),
		deletesAll:  compile(deletesAllTexts),
		sends:       regexp.MustCompile(`(?s)\bcurl\b.*(\s-[a-z]*[dft]\b|\s-d\S|\s-f\S|\s-t\S|--data|--form|--upload-file|--json|\$\(|` + "`" + `)|\bwget\b.*(--post|--body|\$\(|` + "`" + `)|\b(nc|ncat|netcat|socat|telnet)\b|/dev/tcp/|\b(scp|sftp|rclone|croc|magic-wormhole|wormhole)\b|\brsync\b.*\S+:|\brequests\.(post|put)\b|\burllib\b.*\b(urlopen|request)\b|\bhttp\.client\b|\bfetch\s*\(|\bhttps?\.request\b|\baxios\b|\b(dig|nslookup|host)\b.*(\$\(|` + "`" + `)|\bgh\s+gist\s+create\b|\baws\s+s3\s+(cp|sync|mv)\b|\bgsutil\s+cp\b|\bsendmail\b|\bmail\s+-s\b|\bhttp\s+post\b|\bopenssl\s+s_client\b|\bssh\b.*(<|\|)|\|\s*ssh\b|\bnet::http\b|\btwine\s+upload\b`),
		environment: regexp.MustCompile(`(?s)(\b(env|printenv|set|export -p|declare -x)\b\s*(\|\s*(base64|gzip|xxd|tr|sort|grep|jq|curl|nc|ncat|netcat|tee|openssl)\b|\)|` + "`" + `))|\bos\.environ\b.*(post|urlopen|request|send)|(post|urlopen|request|send).*\bos\.environ\b|\bprocess\.env\b.*(json\.stringify|fetch|post|request)|json\.stringify\(process\.env\)|/proc/(self|\d+|\*)/environ`),
		publishes:   regexp.MustCompile(`(?i)\b(git\s+(-\S+\s+)*push|npm\s+publish|pnpm\s+publish|yarn\s+publish|cargo\s+publish|twine\s+upload|docker\s+push|podman\s+push|gh\s+release|git\s+lfs|huggingface-cli\s+upload|aws\s+s3|gsutil|goreleaser)\b`),
		keyFiles:    regexp.MustCompile(`(?i)(^|[\s/=@'"(:<,\[{])(\.env(\.[a-z]+)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519)|\.ssh|\.aws(/credentials)?|\.kube(/config)?|\.docker/config\.json|\.gnupg|\.config/gcloud|application_default_credentials\.json|\.config/gh(/hosts\.yml)?|credentials(\.json)?|secrets?\.(json|ya?ml|toml|env)|service[-_]account\S*\.json|kubeconfig|wallet\.dat|etc/shadow|[\w.-]+\.(pem|key|p12|pfx|kdbx|jks)|login\.keychain(-db)?|Login Data|Cookies|\.bash_history|\.zsh_history|\.claude/\.credentials\.json|\.codex/auth\.json)($|[\s/'")|;&>,\]}*` + "`" + `])`),
		downloads:   regexp.MustCompile(`(?is)\b(curl|wget|fetch)\b([^;&|]*)\|\s*(sudo\s+(-\S+\s+)*)?(/bin/|/usr/bin/|/usr/bin/env\s+)?((ba|z|da|k)?sh|python[0-9.]*|perl|node|ruby)\b|\b((ba|z|da|k)?sh|eval|source|\.)\s+(-c\s+)?['"]?(<\(|\$\()\s*(curl|wget)\b([^)]*)\)|\b(curl|wget)\b([^;&|]*)(;|&&)\s*(chmod\s+\S+\s+\S+\s*(;|&&)\s*)?((ba|z|da|k)?sh|\./|/tmp/|/dev/shm/)`),
		host:        regexp.MustCompile(`(?i)https?://([a-z0-9.-]+)|(?:^|\s)([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,})(?:/|\s|$)`),
	}
}

// keyFile returns a name in a text that is one of a file that usually holds keys, or nothing.
func (p *patterns) keyFile(text string) string {
	for _, m := range p.keyFiles.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(m[2])
		switch strings.TrimPrefix(name, ".env.") {
		case "example", "sample", "template", "dist", "test", "defaults":
			continue
		}
		if strings.HasSuffix(name, ".pem") && (strings.Contains(name, "cert") || strings.Contains(name, "ca.") || strings.Contains(name, "public")) {
			continue
		}
		return m[2]
	}
	return ""
}

// runsDownload is about scripts that nobody has seen.
func runsDownload(f *facts) (Verdict, float64, string) {
	for _, text := range []string{f.text, f.bare} {
		if !f.re.downloads.MatchString(text) {
			continue
		}
		for _, m := range f.re.host.FindAllStringSubmatch(text, -1) {
			name := strings.ToLower(m[1] + m[2])
			if !installer(name) {
				return Ask, 0.6, "it runs what it downloads from " + name
			}
		}
	}
	return Allow, 0, ""
}

// installer reports whether a host is known for an installer that its documentation pipes into a shell.
func installer(host string) bool {
	for _, d := range []string{
		"sh.rustup.rs", "get.docker.com", "deb.nodesource.com", "rpm.nodesource.com", "astral.sh", "bun.sh", "deno.land", "get.pnpm.io", "install.python-poetry.org",
		"bootstrap.pypa.io", "get.sdkman.io", "get.helm.sh", "raw.githubusercontent.com/nvm-sh", "fnm.vercel.app", "starship.rs", "foundry.paradigm.xyz", "nixos.org", "install.determinate.systems", "brew.sh", "mise.run",
	} {
		if host == d {
			return true
		}
	}
	return false
}
