package command

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Parse reads the task's arguments. Where they are wrong, or ask for --help
// or --version, it has said so, and the tool returns status at once.
func (s *Spec) Parse(t *kernel.Task) (a *Args, status int, ok bool) {
	return s.ParseArgs(t, t.Args[1:])
}

// ParseArgs is Parse of other arguments than the task's own.
func (s *Spec) ParseArgs(t *kernel.Task, args []string) (a *Args, status int, ok bool) {
	a = &Args{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			a.Operands = append(a.Operands, args...)
			return a, 0, true
		case strings.HasPrefix(arg, "--"):
			f, rest, stop, err := s.long(t, arg, args)
			if err != "" {
				return nil, s.Usage(t, "%s", err), false
			}
			if stop {
				return nil, 0, false
			}
			a.Flags = append(a.Flags, f)
			args = rest
		case len(arg) > 1 && arg[0] == '-':
			for i := 1; i < len(arg); i++ {
				o := s.short(arg[i])
				if o == nil {
					return nil, s.Usage(t, "invalid option -- '%s'", arg[i:i+1]), false
				}
				f := Flag{Key: o.key(), Spelt: "-" + arg[i:i+1]}
				if o.Arg != None && i+1 < len(arg) {
					f.Value, f.Given = arg[i+1:], true
				} else if o.Arg == Required {
					if len(args) == 0 {
						return nil, s.Usage(t, "option requires an argument -- '%s'", arg[i:i+1]), false
					}
					f.Value, f.Given, args = args[0], true, args[1:]
				}
				a.Flags = append(a.Flags, f)
				if f.Given {
					break
				}
			}
		default:
			a.Operands = append(a.Operands, arg)
			if s.Ordered {
				a.Operands = append(a.Operands, args...)
				return a, 0, true
			}
		}
	}
	return a, 0, true
}

func (s *Spec) short(c byte) *Option {
	for i := range s.Options {
		if s.Options[i].Short == c && c != 0 {
			return &s.Options[i]
		}
	}
	return nil
}

// long reads "--name", "--name=value", or an abbreviation that is unique.
func (s *Spec) long(t *kernel.Task, arg string, args []string) (f Flag, rest []string, stop bool, complaint string) {
	name, value, given := strings.Cut(arg[2:], "=")
	var found *Option
	var possible []string
	for i := range s.Options {
		o := &s.Options[i]
		if o.Long == name && o.Long != "" {
			found, possible = o, nil
			break
		}
		if o.Long != "" && strings.HasPrefix(o.Long, name) {
			if found == nil || found.key() != o.key() {
				possible = append(possible, o.Long)
			}
			found = o
		}
	}
	if !s.NoHelp && (found == nil || found.Long != name) {
		for _, own := range []string{"help", "version"} {
			if own == name || found == nil && len(name) > 0 && strings.HasPrefix(own, name) {
				s.tell(t, own)
				return f, nil, true, ""
			}
		}
	}
	switch {
	case found == nil:
		return f, nil, false, fmt.Sprintf("unrecognized option '--%s'", name)
	case len(possible) > 1:
		list := ""
		for _, p := range possible {
			list += " '--" + p + "'"
		}
		return f, nil, false, fmt.Sprintf("option '--%s' is ambiguous; possibilities:%s", name, list)
	case given && found.Arg == None:
		return f, nil, false, fmt.Sprintf("option '--%s' doesn't allow an argument", found.Long)
	case !given && found.Arg == Required:
		if len(args) == 0 {
			return f, nil, false, fmt.Sprintf("option '--%s' requires an argument", found.Long)
		}
		value, given, args = args[0], true, args[1:]
	}
	return Flag{Key: found.key(), Value: value, Given: given, Spelt: "--" + found.Long}, args, false, ""
}

func (s *Spec) tell(t *kernel.Task, what string) {
	if what == "version" {
		fmt.Fprintf(t.Out(), "%s (Paddock)\n", s.Name)
		return
	}
	w := t.Out()
	fmt.Fprintf(w, "Usage: %s %s\n", s.Name, s.Synopsis)
	if s.About != "" {
		fmt.Fprintf(w, "%s\n", s.About)
	}
	if len(s.Options) > 0 {
		fmt.Fprintln(w)
	}
	for i := range s.Options {
		fmt.Fprintln(w, s.Options[i].line())
	}
	fmt.Fprintf(w, "      --help                 display this help and exit\n")
	fmt.Fprintf(w, "      --version              output version information and exit\n")
}

func (o *Option) line() string {
	left := "      "
	if o.Short != 0 {
		left = fmt.Sprintf("  -%c", o.Short)
		if o.Long != "" {
			left += ", "
		}
	}
	name := o.Name
	if name == "" {
		name = "ARG"
	}
	switch {
	case o.Long != "":
		left += "--" + o.Long
		switch o.Arg {
		case Required:
			left += "=" + name
		case Optional:
			left += "[=" + name + "]"
		case None:
		}
	case o.Arg == Required:
		left += " " + name
	case o.Arg == Optional:
		left += "[" + name + "]"
	}
	if o.Help == "" {
		return left
	}
	return fmt.Sprintf("%-28s %s", left, o.Help)
}

// Usage complains about the arguments as GNU tools do, and gives the status
// for it.
func (s *Spec) Usage(t *kernel.Task, format string, args ...any) int {
	t.Errorf(format, args...)
	if !s.NoTry {
		_, _ = t.Write(2, []byte("Try '"+t.Name()+" --help' for more information.\n"))
	}
	if s.Exit == 0 {
		return 1
	}
	return s.Exit
}
