package shell

import (
	"slices"
	"strings"
)

// A topic is what help says about one name.
type topic struct{ name, usage, short string }

// topics lists what there is help about: builtins and reserved words.
func topics() []topic {
	return []topic{
		{"%", "job_spec [&]", "Resume a job in the foreground."},
		{"((", "(( expression ))", "Compute an arithmetic expression."},
		{".", ". filename [arguments]", "Run commands from a file in this shell."},
		{":", ":", "Do nothing, successfully."},
		{"[", "[ arg... ]", "Evaluate a conditional expression; the last argument is `]'."},
		{"[[", "[[ expression ]]", "Evaluate a conditional expression."},
		{"alias", "alias [-p] [name[=value] ... ]", "Define or show aliases."},
		{"bg", "bg [job_spec ...]", "Let jobs go on in the background."},
		{"bind", "bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] [keyseq:readline-function or readline-command]", "Show or set what keys do."},
		{"break", "break [n]", "Leave loops."},
		{"builtin", "builtin [shell-builtin [arg ...]]", "Run a builtin, whatever functions there are."},
		{"caller", "caller [expr]", "Tell where the running function was called."},
		{"case", "case WORD in [PATTERN [| PATTERN]...) COMMANDS ;;]... esac", "Run commands by what a word matches."},
		{"cd", "cd [-L|[-P [-e]] [-@]] [dir]", "Change the shell working directory."},
		{"command", "command [-pVv] command [arg ...]", "Run a command that is no function, or tell what a name is."},
		{"compgen", "compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [word]", "Show what a word can be completed to."},
		{"complete", "complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]", "Say how arguments are completed."},
		{"compopt", "compopt [-o|+o option] [-DEI] [name ...]", "Change how arguments are completed."},
		{"continue", "continue [n]", "Go on with the next round of a loop."},
		{"coproc", "coproc [NAME] command [redirections]", "Run a command beside the shell, joined to it by pipes."},
		{"declare", "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]", "Set variables and their attributes."},
		{"dirs", "dirs [-clpv] [+N] [-N]", "Show the directory stack."},
		{"disown", "disown [-h] [-ar] [jobspec ... | pid ...]", "Forget jobs."},
		{"echo", "echo [-neE] [arg ...]", "Write arguments to the standard output."},
		{"enable", "enable [-a] [-dnps] [-f filename] [name ...]", "Enable and disable builtins."},
		{"eval", "eval [arg ...]", "Run arguments as a command."},
		{"exec", "exec [-cl] [-a name] [command [argument ...]] [redirection ...]", "Put a program in the shell's place, or redirect for good."},
		{"exit", "exit [n]", "Exit the shell."},
		{"export", "export [-fn] [name[=value] ...] or export -p", "Give variables to the programs that are started."},
		{"false", "false", "Return an unsuccessful result."},
		{"fc", "fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]", "Show or repeat commands of the history."},
		{"fg", "fg [job_spec]", "Bring a job to the foreground."},
		{"for", "for NAME [in WORDS ... ] ; do COMMANDS; done", "Run commands for each word of a list."},
		{"for ((", "for (( exp1; exp2; exp3 )); do COMMANDS; done", "Loop by arithmetic."},
		{"function", "function name { COMMANDS ; } or name () { COMMANDS ; }", "Define a function."},
		{"getopts", "getopts optstring name [arg ...]", "Parse option arguments."},
		{"hash", "hash [-lr] [-p pathname] [-dt] [name ...]", "Remember or show where programs are."},
		{"help", "help [-dms] [pattern ...]", "Tell about builtins."},
		{"history", "history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]", "Show or change the history."},
		{"if", "if COMMANDS; then COMMANDS; [ elif COMMANDS; then COMMANDS; ]... [ else COMMANDS; ] fi", "Run commands by a condition."},
		{"jobs", "jobs [-lnprs] [jobspec ...] or jobs -x command [args]", "Show what jobs do."},
		{"kill", "kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]", "Send a signal to a job."},
		{"let", "let arg [arg ...]", "Compute arithmetic expressions."},
		{"local", "local [option] name[=value] ...", "Define local variables."},
		{"logout", "logout [n]", "Exit a login shell."},
		{"mapfile", "mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]", "Read lines into an array."},
		{"popd", "popd [-n] [+N | -N]", "Take a directory off the stack."},
		{"printf", "printf [-v var] format [arguments]", "Format and print arguments under a format."},
		{"pushd", "pushd [-n] [+N | -N | dir]", "Put a directory on the stack."},
		{"pwd", "pwd [-LP]", "Print the name of the working directory."},
		{"read", "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]", "Read a line and split it into variables."},
		{"readarray", "readarray [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]", "Read lines into an array."},
		{"readonly", "readonly [-aAf] [name[=value] ...] or readonly -p", "Make variables unchangeable."},
		{"return", "return [n]", "Return from a function."},
		{"select", "select NAME [in WORDS ... ;] do COMMANDS; done", "Let a person choose words, and run commands for each."},
		{"set", "set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]", "Set options and positional parameters."},
		{"shift", "shift [n]", "Shift positional parameters."},
		{"shopt", "shopt [-pqsu] [-o] [optname ...]", "Set and unset shell options."},
		{"source", "source filename [arguments]", "Run commands from a file in this shell."},
		{"suspend", "suspend [-f]", "Suspend the shell."},
		{"test", "test [expr]", "Evaluate conditional expression."},
		{"time", "time [-p] pipeline", "Tell how long a pipeline takes."},
		{"times", "times", "Tell the processor time used."},
		{"trap", "trap [-lp] [[arg] signal_spec ...]", "Trap signals and other events."},
		{"true", "true", "Return a successful result."},
		{"type", "type [-afptP] name [name ...]", "Tell what a command name means."},
		{"typeset", "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]", "Set variables and their attributes."},
		{"ulimit", "ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]", "Show or set limits of resources."},
		{"umask", "umask [-p] [-S] [mode]", "Display or set file mode mask."},
		{"unalias", "unalias [-a] name [name ...]", "Remove aliases."},
		{"unset", "unset [-f] [-v] [-n] [name ...]", "Unset variables and functions."},
		{"until", "until COMMANDS; do COMMANDS-2; done", "Run commands until a test succeeds."},
		{"variables", "variables - Names and meanings of some shell variables", "Variables that mean something to the shell."},
		{"wait", "wait [-fn] [-p var] [id ...]", "Wait for jobs to end, and give their status."},
		{"while", "while COMMANDS; do COMMANDS-2; done", "Run commands as long as a test succeeds."},
		{"{", "{ COMMANDS ; }", "Run commands as a unit."},
	}
}

func biHelp(s *Shell, args []string) int {
	var short, usage, manual bool
	o := getopt{s: s, args: args, spec: "dms"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'd':
			short = true
		case 's':
			usage = true
		case 'm':
			manual = true
		default:
			return o.usage("help: usage: help [-dms] [pattern ...]")
		}
	}
	rest := o.rest()
	list := topics()
	if len(rest) == 0 {
		s.print("These commands are part of the shell. `help NAME' tells about one of them.\n\n")
		for i := range list {
			s.print(" " + list[i].usage + "\n")
		}
		return 0
	}
	found := false
	for _, p := range rest {
		for _, t := range s.topics(list, p) {
			found = true
			switch {
			case short:
				s.print(t.name + " - " + t.short + "\n")
			case usage:
				s.print(t.name + ": " + t.usage + "\n")
			case manual:
				s.print("NAME\n    " + t.name + " - " + t.short + "\n\nSYNOPSIS\n    " + t.usage + "\n\n")
			default:
				s.print(t.name + ": " + t.usage + "\n    " + t.short + "\n")
			}
		}
	}
	if !found {
		last := rest[len(rest)-1]
		s.Warn("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", last, last, last)
		return 1
	}
	return 0
}

// topics gives the topics that a text names: by itself, as a pattern, or as
// what names begin with.
func (s *Shell) topics(list []topic, text string) []topic {
	if i := slices.IndexFunc(list, func(t topic) bool { return t.name == text }); i >= 0 {
		return list[i : i+1]
	}
	x := s.Expander()
	var out []topic
	for _, t := range list {
		if ok, err := x.Match(text, t.name); ok && err == nil || strings.HasPrefix(t.name, text) {
			out = append(out, t)
		}
	}
	return out
}
