package sudo

import (
	"fmt"
	"slices"
	"strings"
)

// A mode is what a call of sudo is for.
type mode int

const (
	runCommand mode = iota
	showHelp
	showVersion
	list     // -l
	validate // -v
	nothing  // -k or -K alone
)

// options are what a call says.
type options struct {
	mode     mode
	user     string
	dir      string
	keep     bool     // -E
	names    []string // --preserve-env=
	home     bool     // -H
	shell    bool     // -s
	login    bool     // -i
	set      []string // NAME=value
	args     []string
	forgives bool // -k with a command
}

// usage is what sudo says that is called wrongly.
const usage = `usage: sudo -h | -K | -k | -V
usage: sudo -v [-knS] [-u user]
usage: sudo -l [-knS] [-u user] [command [arg ...]]
usage: sudo [-EHknS] [-D directory] [-u user] [VAR=value] [-i | -s] [command [arg ...]]
`

// flags are options without a value, by their letter and their long name. A
// letter that sudo has and that cannot be done here is in refused.
func flags() map[string]func(*options) {
	harmless := func(*options) {}
	return map[string]func(*options){
		"E": func(o *options) { o.keep = true }, "preserve-env": func(o *options) { o.keep = true },
		"H": func(o *options) { o.home = true }, "set-home": func(o *options) { o.home = true },
		"i": func(o *options) { o.login = true }, "login": func(o *options) { o.login = true },
		"s": func(o *options) { o.shell = true }, "shell": func(o *options) { o.shell = true },
		"l": func(o *options) { o.mode = list }, "list": func(o *options) { o.mode = list },
		"v": func(o *options) { o.mode = validate }, "validate": func(o *options) { o.mode = validate },
		"h": func(o *options) { o.mode = showHelp }, "help": func(o *options) { o.mode = showHelp },
		"V": func(o *options) { o.mode = showVersion }, "version": func(o *options) { o.mode = showVersion },
		"k": func(o *options) { o.forgives = true }, "reset-timestamp": func(o *options) { o.forgives = true },
		"K": func(o *options) { o.mode = nothing }, "remove-timestamp": func(o *options) { o.mode = nothing },
		"n": harmless, "non-interactive": harmless, "S": harmless, "stdin": harmless,
		"A": harmless, "askpass": harmless, "B": harmless, "bell": harmless, "N": harmless, "no-update": harmless,
	}
}

// values are those with one.
func values() map[string]func(*options, string) error {
	user := func(o *options, v string) error {
		if v == "" {
			return fmt.Errorf("option requires an argument: a user")
		}
		o.user = strings.TrimPrefix(v, "#")
		return nil
	}
	dir := func(o *options, v string) error {
		if !strings.HasPrefix(v, "/") {
			return fmt.Errorf("the directory %q is not absolute", v)
		}
		o.dir = v
		return nil
	}
	harmless := func(*options, string) error { return nil }
	return map[string]func(*options, string) error{
		"u": user, "user": user, "D": dir, "chdir": dir, "p": harmless, "prompt": harmless,
	}
}

// refused are options of sudo's that cannot be had here.
func refused() []string {
	return []string{"b", "background", "C", "close-from", "e", "edit", "g", "group", "P", "preserve-groups", "R", "chroot",
		"r", "role", "t", "type", "T", "command-timeout", "U", "other-user"}
}

// parse reads the arguments of a call, without its name. As sudo's they end at
// the first that is none, or at "--".
func parse(args []string) (*options, error) {
	o := &options{}
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			args = args[1:]
		case strings.HasPrefix(arg, "--"):
			rest, err := o.long(arg[2:], args[1:])
			if err != nil {
				return nil, err
			}
			args = rest
			continue
		case len(arg) > 1 && arg[0] == '-':
			rest, err := o.short(arg[1:], args[1:])
			if err != nil {
				return nil, err
			}
			args = rest
			continue
		case isVariable(arg):
			o.set = append(o.set, arg)
			args = args[1:]
			continue
		}
		break
	}
	for len(args) > 0 && isVariable(args[0]) { // after "--", too
		o.set = append(o.set, args[0])
		args = args[1:]
	}
	o.args = args
	switch {
	case o.login && o.shell:
		return nil, fmt.Errorf("you may not specify both the -i and -s options")
	case o.login && o.keep:
		return nil, fmt.Errorf("you may not specify both the -i and -E options")
	case o.mode == runCommand && len(o.args) == 0 && !o.login && !o.shell:
		if !o.forgives {
			return nil, errUsage
		}
		o.mode = nothing
	}
	return o, nil
}

var errUsage = fmt.Errorf("a command is missing")

func isVariable(arg string) bool {
	name, _, ok := strings.Cut(arg, "=")
	return ok && name != "" && !strings.ContainsAny(name, "/\x00")
}

// long is an option of two dashes.
func (o *options) long(text string, rest []string) ([]string, error) {
	name, value, given := strings.Cut(text, "=")
	if name == "preserve-env" && given {
		o.names = append(o.names, strings.Split(value, ",")...)
		return rest, nil
	}
	if slices.Contains(refused(), name) && len(name) > 1 {
		return nil, fmt.Errorf("--%s cannot be had in this sandbox", name)
	}
	if set, ok := values()[name]; ok && len(name) > 1 {
		if !given {
			if len(rest) == 0 {
				return nil, fmt.Errorf("option '--%s' requires an argument", name)
			}
			value, rest = rest[0], rest[1:]
		}
		return rest, set(o, value)
	}
	set, ok := flags()[name]
	if !ok || len(name) == 1 || given {
		return nil, fmt.Errorf("unrecognized option '--%s'", text)
	}
	set(o)
	return rest, nil
}

// short is letters after one dash.
func (o *options) short(text string, rest []string) ([]string, error) {
	for i := range len(text) {
		name := text[i : i+1]
		if slices.Contains(refused(), name) {
			return nil, fmt.Errorf("-%s cannot be had in this sandbox", name)
		}
		if set, ok := values()[name]; ok {
			value := text[i+1:]
			if value == "" {
				if len(rest) == 0 {
					return nil, fmt.Errorf("option requires an argument -- '%s'", name)
				}
				value, rest = rest[0], rest[1:]
			}
			return rest, set(o, value)
		}
		set, ok := flags()[name]
		if !ok {
			return nil, fmt.Errorf("invalid option -- '%s'", name)
		}
		set(o)
	}
	return rest, nil
}

// kept are variables that sudo leaves a command of another user, and those by which
// clients find what a sandbox's way out is signed with. A name that ends in "*" is
// every one that begins so.
func kept() []string {
	return []string{"COLORTERM", "COLORS", "DISPLAY", "LANG", "LANGUAGE", "LC_*", "LS_COLORS", "TERM", "TZ", "XAUTHORITY", "DEBIAN_FRONTEND",
		"AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "DENO_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}
}

// environment gives what a call keeps of the caller's.
func (o *options) environment(all []string) [][]byte {
	names := slices.Concat(kept(), o.names)
	if o.shell && !o.login {
		names = append(names, "SHELL")
	}
	var env [][]byte
	for _, v := range all {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			continue
		}
		if o.keep || slices.ContainsFunc(names, func(n string) bool {
			begin, any := strings.CutSuffix(n, "*")
			return n == name || any && strings.HasPrefix(name, begin)
		}) {
			env = append(env, []byte(v))
		}
	}
	return env
}

// request is what a call asks of the agent, in a directory.
func (o *options) request(env []string, dir string) *Request {
	r := &Request{
		User: []byte(o.user), Env: o.environment(env), Shell: o.shell, Login: o.login,
		KeepHome: (o.keep || slices.Contains(o.names, "HOME")) && !o.home,
	}
	switch {
	case o.dir != "":
		r.Dir = []byte(o.dir)
	case !o.login:
		r.Dir = []byte(dir)
	}
	for _, a := range o.args {
		r.Args = append(r.Args, []byte(a))
	}
	for _, v := range o.set {
		r.Set = append(r.Set, []byte(v))
	}
	return r
}
