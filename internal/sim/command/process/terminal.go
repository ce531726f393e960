package process

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var ttySpec = &command.Spec{
	Name: "tty", Synopsis: "[OPTION]...", Exit: 2, About: "Print the file name of the terminal connected to standard input.",
	Options: []command.Option{{Short: 's', Long: "silent", Help: "print nothing, only return an exit status"}, {Long: "quiet", Help: "same as -s"}},
}

func runTTY(t *kernel.Task) int {
	a, status, ok := ttySpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return ttySpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	silent := a.Has("s") || a.Has("quiet")
	if _, _, ok := command.TerminalSize(t, 0); !ok {
		if !silent {
			say(t, "not a tty")
		}
		return 1
	}
	if !silent {
		say(t, t.FD(0).Name)
	}
	return 0
}

var sttySpec = &command.Spec{
	Name: "stty", Synopsis: "[-F DEVICE | --file=DEVICE] [SETTING]...\n  or:  stty [-F DEVICE | --file=DEVICE] [-a|--all]\n  or:  stty [-F DEVICE | --file=DEVICE] [-g|--save]",
	About: "Print or change terminal characteristics.",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "print all current settings in human-readable form"},
		{Short: 'g', Long: "save", Help: "print all current settings in a stty-readable form"},
		{Short: 'F', Long: "file", Arg: command.Required, Name: "DEVICE", Help: "open and use the specified DEVICE instead of stdin"},
	},
}

func runStty(t *kernel.Task) int {
	// Settings may begin with a dash: only these are options.
	var options, settings []string
	for i := 1; i < len(t.Args); i++ {
		a := t.Args[i]
		switch {
		case a == "-a" || a == "-g" || strings.HasPrefix(a, "--"):
			options = append(options, a)
		case a == "-F" && i+1 < len(t.Args):
			options = append(options, a, t.Args[i+1])
			i++
		default:
			settings = append(settings, a)
		}
	}
	a, status, ok := sttySpec.ParseArgs(t, options)
	if !ok {
		return status
	}
	d, name := t.FD(0), "standard input"
	if file, given := a.Value("F"); given {
		f, err := t.Open(file, linux.O_RDWR|linux.O_NONBLOCK, 0)
		if err != nil {
			command.FailFile(t, file, err)
			return 1
		}
		d, name = f.Hold(), file
		defer f.Drop()
	}
	var y *kernel.TTY
	if d != nil {
		y, _ = d.TTY()
	}
	if y == nil {
		t.Errorf("%s: %s", command.QuoteAlways(name), reason(linux.ENOTTY))
		return 1
	}
	m := y.Modes()
	if len(settings) == 0 {
		showModes(t, y, m, a.Has("a"), a.Has("g"))
		return 0
	}
	for i := 0; i < len(settings); i++ {
		s := settings[i]
		on := !strings.HasPrefix(s, "-")
		switch strings.TrimPrefix(s, "-") {
		case "echo":
			m.Echo = on
		case "icanon":
			m.Canonical = on
		case "isig":
			m.Signals = on
		case "icrnl":
			m.NewlineIn = on
		case "opost", "onlcr":
			m.Output = on
		case "raw":
			m = kernel.Modes{Canonical: !on, Echo: m.Echo, Signals: !on, NewlineIn: !on, Output: !on}
		case "cooked":
			m = kernel.Modes{Canonical: on, Echo: m.Echo, Signals: on, NewlineIn: on, Output: on}
		case "cbreak":
			m.Canonical = !on
		case "sane":
			m = kernel.Modes{Canonical: true, Echo: true, Signals: true, NewlineIn: true, Output: true}
		case "size":
			rows, cols := y.Size()
			say(t, itoa(rows), " ", itoa(cols))
		case "speed":
			say(t, "38400")
		case "rows", "cols", "columns":
			if i++; i == len(settings) {
				return sttySpec.Usage(t, "missing argument to %s", command.Quote(s))
			}
			n, ok := atoi(settings[i])
			if !ok {
				return sttySpec.Usage(t, "invalid integer argument: %s", command.Quote(settings[i]))
			}
			rows, cols := y.Size()
			if s == "rows" {
				y.Resize(n, cols)
			} else {
				y.Resize(rows, n)
			}
		case "echoe", "echok", "echoctl", "echoke", "ixon", "ixoff", "iexten", "echonl", "noflsh", "tostop", "brkint", "ignbrk", "inpck", "istrip",
			"iutf8", "ixany", "imaxbel", "hup", "hupcl", "cread", "clocal", "parenb", "parodd", "cs8", "cs7", "tabs", "evenp", "oddp", "nl", "ignpar", "parmrk", "inlcr", "igncr":
		case "min", "time", "intr", "quit", "erase", "kill", "eof", "eol", "eol2", "susp", "start", "stop", "werase", "lnext", "rprnt", "ispeed", "ospeed", "line", "discard", "swtch":
			i++
		default:
			saved, ok := restore(s)
			if !ok {
				return sttySpec.Usage(t, "invalid argument %s", command.Quote(s))
			}
			m = saved
		}
	}
	y.SetModes(m)
	return 0
}

// restore reads what stty -g wrote.
func restore(s string) (kernel.Modes, bool) {
	f := strings.Split(s, ":")
	if len(f) < 4 {
		return kernel.Modes{}, false
	}
	var v [4]uint64
	for i := range v {
		n, err := strconv.ParseUint(f[i], 16, 32)
		if err != nil {
			return kernel.Modes{}, false
		}
		v[i] = n
	}
	return kernel.Modes{NewlineIn: v[0]&0o400 != 0, Output: v[1]&1 != 0, Signals: v[3]&1 != 0, Canonical: v[3]&2 != 0, Echo: v[3]&0o10 != 0}, true
}

func showModes(t *kernel.Task, y *kernel.TTY, m kernel.Modes, all, save bool) {
	flag := func(on bool, name string) string {
		if on {
			return name
		}
		return "-" + name
	}
	if save {
		in, out, local := 0x2100, 4, 0x8a30
		set := func(on bool, v *int, bit int) {
			if on {
				*v |= bit
			}
		}
		set(m.NewlineIn, &in, 0o400)
		set(m.Output, &out, 1)
		set(m.Signals, &local, 1)
		set(m.Canonical, &local, 2)
		set(m.Echo, &local, 0o10)
		say(t, fmt.Sprintf("%x:%x:bf:%x:3:1c:7f:15:4:0:1:0:11:13:1a:0:12:f:17:16:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0", in, out, local))
		return
	}
	rows, cols := y.Size()
	if !all {
		say(t, "speed 38400 baud; line = 0;")
		odd := ""
		for _, x := range []struct {
			on   bool
			name string
		}{{m.NewlineIn, "-icrnl"}, {m.Output, "-opost"}, {m.Signals, "-isig"}, {m.Canonical, "-icanon"}, {m.Echo, "-echo"}} {
			if !x.on {
				odd += x.name + " "
			}
		}
		if odd != "" {
			say(t, strings.TrimSpace(odd))
		}
		return
	}
	say(t, fmt.Sprintf("speed 38400 baud; rows %d; columns %d; line = 0;", rows, cols))
	say(t, "intr = ^C; quit = ^\\; erase = ^?; kill = ^U; eof = ^D; eol = <undef>; eol2 = <undef>; swtch = <undef>; start = ^Q; stop = ^S; susp = ^Z; rprnt = ^R; werase = ^W; lnext = ^V; discard = ^O; min = 1; time = 0;")
	say(t, "-parenb -parodd -cmspar cs8 -hupcl -cstopb cread -clocal -crtscts")
	say(t, "-ignbrk -brkint -ignpar -parmrk -inpck -istrip -inlcr -igncr ", flag(m.NewlineIn, "icrnl"), " ixon -ixoff -iuclc -ixany -imaxbel iutf8")
	say(t, flag(m.Output, "opost"), " -olcuc -ocrnl ", flag(m.Output, "onlcr"), " -onocr -onlret -ofill -ofdel nl0 cr0 tab0 bs0 vt0 ff0")
	say(t, flag(m.Signals, "isig"), " ", flag(m.Canonical, "icanon"), " iexten ", flag(m.Echo, "echo"), " echoe echok -echonl -noflsh -xcase -tostop -echoprt echoctl echoke -flusho -extproc")
}

func runClear(t *kernel.Task) int {
	_, _ = t.Out().WriteString("\x1b[H\x1b[2J\x1b[3J")
	return 0
}

func runReset(t *kernel.Task) int {
	if d := t.FD(0); d != nil {
		if y, ok := d.TTY(); ok {
			y.SetModes(kernel.Modes{Canonical: true, Echo: true, Signals: true, NewlineIn: true, Output: true})
		}
	}
	_, _ = t.Write(2, []byte("\x1bc\x1b[!p\x1b[?3;4l\x1b[4l\x1b>"))
	return 0
}

// capability gives the bytes of a terminal's ability, for xterm and its like.
func capability(name string, args []int) (string, bool) {
	arg := func(i int) int {
		if i < len(args) {
			return args[i]
		}
		return 0
	}
	colour := func(base, n int) string {
		switch {
		case n < 8:
			return fmt.Sprintf("\x1b[%dm", base+n)
		case n < 16:
			return fmt.Sprintf("\x1b[%dm", base+60+n-8)
		}
		return fmt.Sprintf("\x1b[%d;5;%dm", base+8, n)
	}
	switch name {
	case "bold", "md":
		return "\x1b[1m", true
	case "dim", "mh":
		return "\x1b[2m", true
	case "sitm":
		return "\x1b[3m", true
	case "ritm":
		return "\x1b[23m", true
	case "smul", "us":
		return "\x1b[4m", true
	case "rmul", "ue":
		return "\x1b[24m", true
	case "blink", "mb":
		return "\x1b[5m", true
	case "rev", "mr", "smso", "so":
		return "\x1b[7m", true
	case "rmso", "se":
		return "\x1b[27m", true
	case "invis":
		return "\x1b[8m", true
	case "sgr0", "me":
		return "\x1b(B\x1b[m", true
	case "setaf", "AF":
		return colour(30, arg(0)), true
	case "setab", "AB":
		return colour(40, arg(0)), true
	case "op":
		return "\x1b[39;49m", true
	case "clear", "cl":
		return "\x1b[H\x1b[2J\x1b[3J", true
	case "el", "ce":
		return "\x1b[K", true
	case "el1":
		return "\x1b[1K", true
	case "ed", "cd":
		return "\x1b[J", true
	case "home", "ho":
		return "\x1b[H", true
	case "cup", "cm":
		return fmt.Sprintf("\x1b[%d;%dH", arg(0)+1, arg(1)+1), true
	case "cuu", "UP":
		return fmt.Sprintf("\x1b[%dA", arg(0)), true
	case "cud", "DO":
		return fmt.Sprintf("\x1b[%dB", arg(0)), true
	case "cuf", "RI":
		return fmt.Sprintf("\x1b[%dC", arg(0)), true
	case "cub", "LE":
		return fmt.Sprintf("\x1b[%dD", arg(0)), true
	case "cuu1":
		return "\x1b[A", true
	case "cud1":
		return "\n", true
	case "hpa":
		return fmt.Sprintf("\x1b[%dG", arg(0)+1), true
	case "civis", "vi":
		return "\x1b[?25l", true
	case "cnorm", "ve":
		return "\x1b[?12l\x1b[?25h", true
	case "smcup", "ti":
		return "\x1b[?1049h\x1b[22;0;0t", true
	case "rmcup", "te":
		return "\x1b[?1049l\x1b[23;0;0t", true
	case "sc":
		return "\x1b7", true
	case "rc":
		return "\x1b8", true
	case "bel":
		return "\a", true
	case "cr":
		return "\r", true
	}
	return "", false
}

func runTput(t *kernel.Task) int {
	args := t.Args[1:]
	term := t.Getenv("TERM")
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case strings.HasPrefix(args[0], "-T") && len(args[0]) > 2:
			term = args[0][2:]
		case args[0] == "-T" && len(args) > 1:
			term = args[1]
			args = args[1:]
		case args[0] == "-V":
			say(t, "tput (Paddock)")
			return 0
		case args[0] == "-x":
		default:
			_, _ = t.Write(2, []byte("tput: invalid option -- '"+args[0][1:2]+"'\nusage: tput [-V] [-S] [-x] [-T term] capname\n"))
			return 2
		}
		args = args[1:]
	}
	if len(args) == 0 {
		_, _ = t.Write(2, []byte("usage: tput [-V] [-S] [-x] [-T term] capname\n"))
		return 2
	}
	if term == "" {
		_, _ = t.Write(2, []byte("tput: No value for $TERM and no -T specified\n"))
		return 2
	}
	rows, cols := 24, 80
	for fd := range 3 {
		if r, c, ok := command.TerminalSize(t, fd); ok && r > 0 && c > 0 {
			rows, cols = r, c
			break
		}
	}
	var numbers []int
	for _, a := range args[1:] {
		n, ok := atoi(a)
		if !ok {
			n = 0
		}
		numbers = append(numbers, n)
	}
	dumb := term == "dumb"
	switch args[0] {
	case "cols", "co":
		say(t, itoa(cols))
		return 0
	case "lines", "li":
		say(t, itoa(rows))
		return 0
	case "colors", "Co":
		n := "8"
		if strings.Contains(term, "256") {
			n = "256"
		}
		if dumb {
			n = "-1"
		}
		say(t, n)
		return 0
	case "longname":
		_, _ = t.Out().WriteString(term)
		return 0
	case "am", "bce", "km", "mir", "msgr", "xenl":
		return 0
	case "init", "reset":
		return 0
	}
	text, ok := capability(args[0], numbers)
	if !ok {
		_, _ = t.Write(2, []byte("tput: unknown terminfo capability '"+args[0]+"'\n"))
		return 4
	}
	if dumb && args[0] != "bel" && args[0] != "cr" && args[0] != "cud1" {
		return 1
	}
	_, _ = t.Out().WriteString(text)
	return 0
}

var topSpec = &command.Spec{
	Name: "top", Synopsis: "-hv | -bcHiOSs -d secs -n max -u|U user -p pid(s)", NoTry: true, About: "Display the processes.",
	Options: []command.Option{
		{Short: 'b', Help: "batch mode"}, {Short: 'c', Help: "command lines"}, {Short: 'i', Help: "no idle tasks"}, {Short: 'H', Help: "threads"}, {Short: 'S', Help: "cumulative time"}, {Short: 's', Help: "secure mode"}, {Short: 'w', Arg: command.Optional, Help: "width"},
		{Short: 'd', Arg: command.Required, Name: "secs", Help: "delay"}, {Short: 'n', Arg: command.Required, Name: "max", Help: "iterations"}, {Short: 'u', Arg: command.Required, Name: "user", Help: "only a user's"},
		{Short: 'U', Arg: command.Required, Name: "user", Help: "only a user's"}, {Short: 'p', Arg: command.Required, Name: "pid", Help: "only these"}, {Short: 'o', Arg: command.Required, Name: "field", Help: "sort"},
	},
}

func runTop(t *kernel.Task) int {
	a, status, ok := topSpec.Parse(t)
	if !ok {
		return status
	}
	_, _, terminal := command.TerminalSize(t, 1)
	if !a.Has("b") && !terminal {
		t.Errorf("failed tty get")
		return 1
	}
	times, delay := 1<<30, 3*time.Second
	if s, given := a.Value("n"); given {
		if times, ok = atoi(s); !ok || times == 0 {
			t.Errorf("bad iterations argument '%s'", s)
			return 1
		}
	}
	if s, given := a.Value("d"); given {
		if delay, ok = duration(s); !ok {
			t.Errorf("bad delay interval '%s'", s)
			return 1
		}
	}
	b := &command.Accounts{View: &t.View}
	w := t.Out()
	for i := range times {
		if i > 0 {
			if err := t.Sleep(delay); err != nil {
				return 0
			}
			fmt.Fprintln(w)
		}
		if !a.Has("b") {
			_, _ = w.WriteString("\x1b[H\x1b[2J")
		}
		list := everyone(t)
		total, used := float64(t.K.Heap().Limit())/(1<<20), float64(t.K.Heap().Used())/(1<<20)
		fmt.Fprintf(w, "top -%s\n", uptimeLine(t, time.Now()))
		fmt.Fprintf(w, "Tasks: %3d total, %3d running, %3d sleeping,   0 stopped,   0 zombie\n", len(list), 1, max(0, len(list)-1))
		fmt.Fprintf(w, "%%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st \n")
		fmt.Fprintf(w, "MiB Mem : %8.1f total, %8.1f free, %8.1f used, %8.1f buff/cache     \n", total, total-used, used, 0.0)
		fmt.Fprintf(w, "MiB Swap: %8.1f total, %8.1f free, %8.1f used. %8.1f avail Mem \n\n", 0.0, 0.0, 0.0, total-used)
		fmt.Fprintf(w, "    PID USER      PR  NI    VIRT    RES    SHR S  %%CPU  %%MEM     TIME+ COMMAND\n")
		for _, p := range list {
			name := p.comm
			if a.Has("c") {
				name = p.command()
			}
			fmt.Fprintf(w, "%7d %-8.8s  20   0       0      0      0 %s   0.0   0.0   0:00.00 %s\n", p.pid, b.UserText(p.uid), p.state, name)
		}
	}
	return 0
}

var watchSpec = &command.Spec{
	Name: "watch", Synopsis: "[options] command", Ordered: true, About: "Execute a program periodically, showing output fullscreen.",
	Options: []command.Option{
		{Short: 'b', Long: "beep", Help: "beep if command has a non-zero exit"}, {Short: 'c', Long: "color", Help: "interpret ANSI color and style sequences"}, {Short: 'C', Long: "no-color", Help: "do not interpret them"},
		{Short: 'd', Long: "differences", Arg: command.Optional, Name: "permanent", Help: "highlight changes between updates"},
		{Short: 'e', Long: "errexit", Help: "exit if command has a non-zero exit"}, {Short: 'g', Long: "chgexit", Help: "exit when output from command changes"},
		{Short: 'n', Long: "interval", Arg: command.Required, Name: "secs", Help: "seconds to wait between updates"}, {Short: 'p', Long: "precise", Help: "attempt run command in precise intervals"},
		{Short: 'q', Long: "equexit", Arg: command.Required, Name: "cycles", Help: "exit when output from command does not change for cycles"},
		{Short: 't', Long: "no-title", Help: "turn off header"}, {Short: 'x', Long: "exec", Help: "pass command to exec instead of \"sh -c\""}, {Short: 'w', Long: "no-wrap", Help: "turn off line wrapping"},
	},
}

func runWatch(t *kernel.Task) int {
	a, status, ok := watchSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return watchSpec.Usage(t, "no command")
	}
	every := 2 * time.Second
	if s, given := a.Value("n"); given {
		if every, ok = duration(s); !ok {
			t.Errorf("failed to parse argument: '%s'", s)
			return 1
		}
	}
	every = max(every, 100*time.Millisecond)
	args := a.Operands
	if !a.Has("x") {
		args = []string{"sh", "-c", strings.Join(a.Operands, " ")}
	}
	_, cols, terminal := command.TerminalSize(t, 1)
	if !terminal {
		cols = 80
	}
	last, first, equal := "", true, 0
	limit, _ := a.Value("q")
	most, _ := atoi(limit)
	for {
		text, s, err := capture(t, args)
		if err != nil {
			t.Errorf("%s: %s", args[0], reason(err))
			return unstarted(err)
		}
		w := t.Out()
		if terminal {
			_, _ = w.WriteString("\x1b[H\x1b[2J")
		}
		if !a.Has("t") {
			left := fmt.Sprintf("Every %.1fs: %s", every.Seconds(), strings.Join(a.Operands, " "))
			right := t.K.Hostname + ": " + time.Now().UTC().Format("Mon Jan _2 15:04:05 2006")
			fmt.Fprintf(w, "%s%s%s\n\n", left, strings.Repeat(" ", max(1, cols-len(left)-len(right))), right)
		}
		_, _ = w.WriteString(text)
		if err := t.Flush(); err != nil {
			return 1
		}
		switch {
		case a.Has("e") && s.Shell() != 0:
			return 8
		case a.Has("g") && !first && text != last:
			return 0
		}
		if text == last {
			equal++
		} else {
			equal = 0
		}
		if most > 0 && equal >= most {
			return 0
		}
		last, first = text, false
		if err := t.Sleep(every); err != nil {
			return 0
		}
	}
}

// capture runs a program and gives what it writes.
func capture(t *kernel.Task, args []string) (string, kernel.Status, error) {
	d, buf := kernel.NewBuffer(1 << 20)
	defer buf.Free()
	d.Hold()
	defer d.Drop()
	child, err := t.Spawn(kernel.Command{Args: args}, func(child *kernel.Task) error {
		if err := child.SetFD(1, d, false); err != nil {
			return err
		}
		return child.SetFD(2, d, false)
	})
	if err != nil {
		return "", kernel.Status{}, err
	}
	s, err := t.Wait(child)
	return string(buf.Bytes()), s, err
}
