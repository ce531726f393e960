package process

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var envSpec = &command.Spec{
	Name: "env", Synopsis: "[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]", Exit: 125, Ordered: true,
	About: "Set each NAME to VALUE in the environment and run COMMAND.",
	Options: []command.Option{
		{Short: 'i', Long: "ignore-environment", Help: "start with an empty environment"},
		{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"},
		{Short: 'u', Long: "unset", Arg: command.Required, Name: "NAME", Help: "remove variable from the environment"},
		{Short: 'C', Long: "chdir", Arg: command.Required, Name: "DIR", Help: "change working directory to DIR"},
		{Short: 'S', Long: "split-string", Arg: command.Required, Name: "S", Help: "process and split S into separate arguments; used to pass multiple arguments on shebang lines"},
		{Long: "block-signal", Arg: command.Optional, Name: "SIG", Help: "block delivery of SIG signal(s) to COMMAND"},
		{Long: "default-signal", Arg: command.Optional, Name: "SIG", Help: "reset handling of SIG signal(s) to the default"},
		{Long: "ignore-signal", Arg: command.Optional, Name: "SIG", Help: "set handling of SIG signals(s) to do nothing"},
		{Long: "list-signal-handling", Help: "list non default signal handling to stderr"},
		{Short: 'v', Long: "debug", Help: "print verbose information for each processing step"},
	},
}

func runEnv(t *kernel.Task) int {
	args := t.Args[1:]
	var a *command.Args
	for round := 0; ; round++ {
		var status int
		var ok bool
		if a, status, ok = envSpec.ParseArgs(t, args); !ok {
			return status
		}
		i := splitAt(args)
		if i < 0 || round > 100 {
			break
		}
		text, after := splitText(args, i)
		words, complaint := splitWords(t, text)
		if complaint != "" {
			t.Errorf("%s", complaint)
			return 125
		}
		next := append([]string{}, args[:i]...)
		if before := beforeSplit(args[i]); before != "" {
			next = append(next, before)
		}
		args = append(append(next, words...), after...)
	}
	env := t.Env
	rest := a.Operands
	if a.Has("i") || len(rest) > 0 && rest[0] == "-" {
		env = nil
	}
	if len(rest) > 0 && rest[0] == "-" {
		rest = rest[1:]
	}
	env = append([]string{}, env...)
	debug := func(parts ...string) {
		if a.Has("v") {
			_, _ = t.Write(2, []byte(strings.Join(parts, "")+"\n"))
		}
	}
	if env == nil || a.Has("i") {
		debug("cleaning environ")
	}
	dir := ""
	for _, f := range a.Flags {
		switch f.Key {
		case "u":
			if f.Value == "" || strings.Contains(f.Value, "=") {
				t.Errorf("cannot unset %s: %s", command.Quote(f.Value), reason(linux.EINVAL))
				return 125
			}
			debug("unset:    ", f.Value)
			env = without(env, f.Value)
		case "C":
			dir = f.Value
		case "ignore-signal", "default-signal":
			action := kernel.Ignore
			if f.Key == "default-signal" {
				action = kernel.Default
			}
			list, ok := signalList(f.Value)
			if !ok {
				return envSpec.Usage(t, "%s: invalid signal", command.Quote(f.Value))
			}
			for _, sig := range list {
				t.On(sig, action)
			}
		}
	}
	for len(rest) > 0 && strings.IndexByte(rest[0], '=') >= 0 {
		name, _, _ := strings.Cut(rest[0], "=")
		debug("setenv:   ", rest[0])
		env = append(without(env, name), rest[0])
		rest = rest[1:]
	}
	if len(rest) == 0 {
		if dir != "" {
			return envSpec.Usage(t, "must specify command with --chdir (-C)")
		}
		end := byte('\n')
		if a.Has("0") {
			end = 0
		}
		w := command.Stdout(t)
		for _, e := range env {
			w.String(e)
			w.Byte(end)
		}
		return 0
	}
	if a.Has("0") {
		return envSpec.Usage(t, "cannot specify --null (-0) with command")
	}
	if dir != "" {
		debug("chdir:    ", command.Quote(dir))
		if err := t.View.Chdir(dir); err != nil {
			t.Errorf("cannot change directory to %s: %s", command.QuoteAlways(dir), reason(err))
			return 125
		}
	}
	debug("executing: ", rest[0])
	for i, r := range rest {
		debug("   arg[", itoa(i), "]= ", command.Quote(r))
	}
	t.Env = env // the program is looked up in the PATH that it gets
	if env == nil {
		env = []string{}
	}
	return become(t, kernel.Command{Args: rest, Env: env})
}

func without(env []string, name string) []string {
	kept := env[:0:0]
	for _, e := range env {
		if !strings.HasPrefix(e, name) || !strings.HasPrefix(e[len(name):], "=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// splitAt finds the argument that holds -S, before the first operand.
func splitAt(args []string) int {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--" || arg == "-" || arg == "" || arg[0] != '-':
			return -1
		case strings.HasPrefix(arg, "--split-string") || strings.HasPrefix(arg, "--sp") || arg == "--s":
			return i
		case arg[1] == '-':
			if arg == "--unset" || arg == "--chdir" {
				i++
			}
		default:
			for k := 1; k < len(arg); k++ {
				if arg[k] == 'S' {
					return i
				}
				if arg[k] == 'u' || arg[k] == 'C' {
					if k+1 == len(arg) {
						i++
					}
					break
				}
			}
		}
	}
	return -1
}

// beforeSplit gives the options that stand before -S in the same argument.
func beforeSplit(arg string) string {
	if strings.HasPrefix(arg, "--") {
		return ""
	}
	if i := strings.IndexByte(arg, 'S'); i > 1 {
		return arg[:i]
	}
	return ""
}

func splitText(args []string, i int) (text string, after []string) {
	arg := args[i]
	if strings.HasPrefix(arg, "--") {
		if _, v, ok := strings.Cut(arg, "="); ok {
			return v, args[i+1:]
		}
	} else if k := strings.IndexByte(arg, 'S'); k+1 < len(arg) {
		return arg[k+1:], args[i+1:]
	}
	if i+1 < len(args) {
		return args[i+1], args[i+2:]
	}
	return "", nil
}

// splitWords splits the text of -S into words.
func splitWords(t *kernel.Task, s string) (words []string, complaint string) {
	var b strings.Builder
	inside := false
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if inside {
				words = append(words, b.String())
				b.Reset()
				inside = false
			}
		case quote == 0 && c == '#' && !inside:
			return words, ""
		case (c == '\'' || c == '"') && quote == 0:
			quote, inside = c, true
		case c == quote && quote != 0:
			quote = 0
		case c == '\\' && quote != '\'' || c == '\\' && quote == '\'' && i+1 < len(s) && (s[i+1] == '\\' || s[i+1] == '\''):
			i++
			if i == len(s) {
				return nil, "invalid backslash at end of string in -S"
			}
			inside = true
			switch s[i] {
			case 'c':
				if quote == '"' {
					return nil, "'\\c' must not appear in double-quoted -S string"
				}
				if b.Len() > 0 {
					words = append(words, b.String())
				}
				return words, ""
			case 'f', 'n', 'r', 't', 'v':
				b.WriteByte(map[byte]byte{'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}[s[i]])
			case '_':
				if quote == '"' {
					b.WriteByte(' ')
					break
				}
				if b.Len() > 0 {
					words = append(words, b.String())
					b.Reset()
				}
				inside = false
			case '"', '#', '$', '\'', '\\':
				b.WriteByte(s[i])
			default:
				return nil, "invalid sequence '\\" + s[i:i+1] + "' in -S"
			}
		case c == '$' && quote != '\'':
			end := strings.IndexByte(s[i:], '}')
			if i+1 >= len(s) || s[i+1] != '{' || end < 0 {
				return nil, "only ${VARNAME} expansion is supported, error at: " + s[i:]
			}
			b.WriteString(t.Getenv(s[i+2 : i+end]))
			inside = inside || t.Getenv(s[i+2:i+end]) != ""
			i += end
		default:
			b.WriteByte(c)
			inside = true
		}
	}
	if quote != 0 {
		return nil, "no terminating quote in -S string"
	}
	if inside {
		words = append(words, b.String())
	}
	return words, ""
}

var printenvSpec = &command.Spec{
	Name: "printenv", Synopsis: "[OPTION]... [VARIABLE]...", Exit: 2, Ordered: true,
	About:   "Print the values of the specified environment VARIABLE(s). If no VARIABLE is specified, print name and value pairs for them all.",
	Options: []command.Option{{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"}},
}

func runPrintenv(t *kernel.Task) int {
	a, status, ok := printenvSpec.Parse(t)
	if !ok {
		return status
	}
	end := byte('\n')
	if a.Has("0") {
		end = 0
	}
	w := command.StdoutStatus(t, 2)
	if len(a.Operands) == 0 {
		for _, e := range t.Env {
			w.String(e)
			w.Byte(end)
		}
		return 0
	}
	for _, name := range a.Operands {
		found := false
		for _, e := range t.Env {
			if v, ok := strings.CutPrefix(e, name+"="); ok && !strings.Contains(name, "=") {
				w.String(v)
				w.Byte(end)
				found = true
			}
		}
		if !found {
			status = 1
		}
	}
	return status
}
