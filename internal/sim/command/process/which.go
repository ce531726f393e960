package process

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// runWhich is which as Debian has it.
func runWhich(t *kernel.Task) int {
	args := t.Args[1:]
	all, silent := false, false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if args[0] == "--" {
			args = args[1:]
			break
		}
		for i := 1; i < len(args[0]); i++ {
			switch args[0][i] {
			case 'a':
				all = true
			case 's':
				silent = true
			default:
				_, _ = t.Write(2, []byte("Illegal option -"+args[0][i:i+1]+"\n"))
				say(t, "Usage: /usr/bin/which [-a] args")
				return 2
			}
		}
		args = args[1:]
	}
	status := 0
	if len(args) == 0 {
		status = 1
	}
	path := t.Getenv("PATH")
	for _, name := range args {
		found := false
		show := func(file string) {
			found = true
			if !silent {
				say(t, file)
			}
		}
		if strings.Contains(name, "/") {
			if _, err := t.Lookup(name, ""); err == nil {
				show(name)
			}
		} else {
			for dir := range strings.SplitSeq(path, ":") {
				if dir == "" {
					dir = "."
				}
				file := strings.TrimSuffix(dir, "/") + "/" + name
				if _, err := t.Lookup(file, ""); err == nil && name != "" {
					if show(file); !all {
						break
					}
				}
			}
		}
		if !found {
			status = 1
		}
	}
	return status
}

var whereisSpec = &command.Spec{
	Name: "whereis", Synopsis: "[options] [-BMS <dir>... -f] <name>", About: "Locate the binary, source, and manual-page files for a command.",
	Options: []command.Option{{Short: 'b', Help: "search only for binaries"}, {Short: 'm', Help: "search only for manuals and infos"}, {Short: 's', Help: "search only for sources"}, {Short: 'u', Help: "search for unusual entries"}},
}

func runWhereis(t *kernel.Task) int {
	a, status, ok := whereisSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		t.Errorf("not enough arguments")
		_, _ = t.Write(2, []byte("Try 'whereis --help' for more information.\n"))
		return 1
	}
	for _, name := range a.Operands {
		line := base(name) + ":"
		seen := map[string]bool{}
		for dir := range strings.SplitSeq("/usr/bin:/usr/sbin:/bin:/sbin:/usr/local/bin:"+t.Getenv("PATH"), ":") {
			file := strings.TrimSuffix(dir, "/") + "/" + base(name)
			if _, err := t.View.Stat(file); err != nil || a.Has("m") || a.Has("s") {
				continue
			}
			real, err := t.View.Realpath(file)
			if err == nil && seen[real] {
				continue
			}
			seen[real] = true
			line += " " + file
		}
		say(t, line)
	}
	return 0
}

var timeSpec = &command.Spec{
	Name: "time", Synopsis: "[OPTIONS] COMMAND [ARG]...", Exit: 125, Ordered: true, About: "Run COMMAND, then print system resource usage.",
	Options: []command.Option{
		{Short: 'a', Long: "append", Help: "with -o FILE, append instead of overwriting"},
		{Short: 'f', Long: "format", Arg: command.Required, Name: "FORMAT", Help: "use the specified FORMAT instead of the default"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "write to FILE instead of STDERR"},
		{Short: 'p', Long: "portability", Help: "print POSIX standard 1003.2 conformant string"},
		{Short: 'q', Long: "quiet", Help: "do not print information about abnormal program termination"},
		{Short: 'v', Long: "verbose", Help: "print all resource usage information instead of the default format"},
	},
}

func runTime(t *kernel.Task) int {
	a, status, ok := timeSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return timeSpec.Usage(t, "missing program to run")
	}
	format := t.Getenv("TIME")
	if format == "" {
		format = "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps"
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			format = f.Value
		case "p":
			format = "real %e\nuser %U\nsys %S"
		case "v":
			format = "\tCommand being timed: \"%C\"\n\tUser time (seconds): %U\n\tSystem time (seconds): %S\n\tPercent of CPU this job got: %P\n\tElapsed (wall clock) time (h:mm:ss or m:ss): %E\n\tMaximum resident set size (kbytes): %M\n\tExit status: %x"
		}
	}
	out := 2
	if name, given := a.Value("o"); given {
		flags := linux.O_TRUNC
		if a.Has("a") {
			flags = linux.O_APPEND
		}
		fd, err := t.OpenFD(name, linux.O_WRONLY|linux.O_CREAT|flags, 0o666, 3)
		if err != nil {
			t.Errorf("%s: %s", name, reason(err))
			return 125
		}
		t.SetCloexec(fd, true)
		out = fd
	}
	begin, busy := time.Now(), t.Run.Busy()
	var result string
	s, err := t.Call(kernel.Command{Args: a.Operands})
	switch {
	case err != nil:
		t.Errorf("cannot run %s: %s", a.Operands[0], reason(err))
		status = unstarted(err)
		result = "Command exited with non-zero status " + itoa(status) + "\n"
	case s.Signal != 0:
		status = s.Shell()
		result = "Command terminated by signal " + itoa(int(s.Signal)) + "\n"
	case s.Code != 0:
		status = s.Code
		result = "Command exited with non-zero status " + itoa(s.Code) + "\n"
	}
	if a.Has("q") {
		result = ""
	}
	text := result + usage(t, format, a.Operands, time.Since(begin), t.Run.Busy()-busy, status) + "\n"
	if _, err := t.Write(out, []byte(text)); err != nil && !errors.Is(err, linux.EPIPE) {
		return max(status, 1)
	}
	return status
}

// usage writes what a command took, by a format of time(1).
func usage(t *kernel.Task, format string, args []string, real, busy time.Duration, status int) string {
	b := kernel.NewText(t)
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }
	for i := 0; i < len(format); i++ {
		c := format[i]
		if i+1 == len(format) || c != '%' && c != '\\' {
			b.Byte(c)
			continue
		}
		i++
		if c == '\\' {
			switch format[i] {
			case 't':
				b.Byte('\t')
			case 'n':
				b.Byte('\n')
			case '\\':
				b.Byte('\\')
			default:
				b.WriteString("?\\" + format[i:i+1])
			}
			continue
		}
		switch format[i] {
		case '%':
			b.Byte('%')
		case 'C':
			for i, a := range args {
				if i > 0 {
					b.Byte(' ')
				}
				b.WriteString(a)
			}
		case 'e':
			b.WriteString(seconds(real))
		case 'E':
			s := real.Seconds()
			if s >= 3600 {
				fmt.Fprintf(b, "%d:%02d:%02d", int(s)/3600, int(s)/60%60, int(s)%60)
			} else {
				fmt.Fprintf(b, "%d:%05.2f", int(s)/60, s-float64(int(s)/60*60))
			}
		case 'U':
			b.WriteString(seconds(busy))
		case 'S':
			b.WriteString("0.00")
		case 'P':
			p := 0
			if real > 0 {
				p = int(busy * 100 / real)
			}
			b.WriteString(itoa(p) + "%")
		case 'x':
			b.WriteString(itoa(status))
		case 'Z':
			b.WriteString("4096")
		case 'D', 'F', 'I', 'K', 'M', 'O', 'R', 'W', 'X', 'c', 'k', 'p', 'r', 's', 't', 'w':
			b.Byte('0')
		default:
			b.WriteString("?" + format[i:i+1])
		}
	}
	return b.Text()
}
