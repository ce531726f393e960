package process

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var unameSpec = &command.Spec{
	Name: "uname", Synopsis: "[OPTION]...", About: "Print certain system information. With no OPTION, same as -s.",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "print all information"},
		{Short: 's', Long: "kernel-name", Help: "print the kernel name"},
		{Short: 'n', Long: "nodename", Help: "print the network node hostname"},
		{Short: 'r', Long: "kernel-release", Help: "print the kernel release"},
		{Short: 'v', Long: "kernel-version", Help: "print the kernel version"},
		{Short: 'm', Long: "machine", Help: "print the machine hardware name"},
		{Short: 'p', Long: "processor", Help: "print the processor type (non-portable)"},
		{Short: 'i', Long: "hardware-platform", Help: "print the hardware platform (non-portable)"},
		{Short: 'o', Long: "operating-system", Help: "print the operating system"},
	},
}

// machine is what the computer's processor is called.
func machine() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	case "386":
		return "i686"
	}
	return runtime.GOARCH
}

func runUname(t *kernel.Task) int {
	a, status, ok := unameSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return unameSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	all := a.Has("a")
	var parts []string
	for _, x := range []struct{ key, text string }{
		{"s", "Linux"}, {"n", t.K.Hostname}, {"r", kernel.Release}, {"v", "#1 SMP"}, {"m", machine()},
		{"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"},
	} {
		if a.Has(x.key) || all && x.text != "unknown" || len(a.Flags) == 0 && x.key == "s" {
			parts = append(parts, x.text)
		}
	}
	say(t, strings.Join(parts, " "))
	return 0
}

var archSpec = &command.Spec{Name: "arch", Synopsis: "[OPTION]...", About: "Print machine architecture."}

func runArch(t *kernel.Task) int {
	a, status, ok := archSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return archSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	say(t, machine())
	return 0
}

var hostnameSpec = &command.Spec{
	Name: "hostname", Synopsis: "[-a|-A|-d|-f|-i|-I|-s|-y]", About: "Show the system's host name.",
	Options: []command.Option{
		{Short: 'a', Long: "alias", Help: "alias names"}, {Short: 'A', Long: "all-fqdns", Help: "all long host names (FQDNs)"},
		{Short: 'd', Long: "domain", Help: "DNS domain name"}, {Short: 'f', Long: "fqdn", Help: "long host name (FQDN)"}, {Long: "long", Help: "long host name (FQDN)"},
		{Short: 'i', Long: "ip-address", Help: "addresses for the host name"}, {Short: 'I', Long: "all-ip-addresses", Help: "all addresses for the host"},
		{Short: 's', Long: "short", Help: "short host name"}, {Short: 'y', Long: "yp", Help: "NIS/YP domain name"},
	},
}

// validHostname reports whether a name consists of letters, digits, inner
// hyphens and dots.
func validHostname(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case (c == '-' || c == '.') && i > 0 && i < len(s)-1 && s[i-1] != '-' && s[i-1] != '.':
		default:
			return false
		}
	}
	return true
}

func runHostname(t *kernel.Task) int {
	a, status, ok := hostnameSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		if !validHostname(a.Operands[0]) {
			t.Errorf("the specified hostname is invalid")
			return 1
		}
		t.Errorf("you must be root to change the host name")
		return 1
	}
	name := t.K.Hostname
	short, domain, _ := strings.Cut(name, ".")
	switch {
	case a.Has("s"):
		name = short
	case a.Has("d"):
		name = domain
	case a.Has("i"):
		name = "127.0.0.1"
	case a.Has("I"), a.Has("a"), a.Has("A"):
		name = ""
	case a.Has("y"):
		t.Errorf("Local domain name not set")
		return 1
	}
	say(t, name)
	return 0
}

var nprocSpec = &command.Spec{
	Name: "nproc", Synopsis: "[OPTION]...", About: "Print the number of processing units available to the current process.",
	Options: []command.Option{{Long: "all", Help: "print the number of installed processors"}, {Long: "ignore", Arg: command.Required, Name: "N", Help: "if possible, exclude N processing units"}},
}

// processors is how many processors the computer has.
func processors(t *kernel.Task) int {
	n := runtime.NumCPU()
	if c := t.K.CPUs; c > 0 && int(c+0.999) < n {
		n = max(1, int(c+0.999))
	}
	return n
}

func runNproc(t *kernel.Task) int {
	a, status, ok := nprocSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return nprocSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	n := processors(t)
	if s := t.Getenv("OMP_NUM_THREADS"); s != "" && !a.Has("all") {
		first, _, _ := strings.Cut(s, ",")
		if k, ok := atoi(first); ok && k > 0 {
			n = k
		}
	}
	if s := t.Getenv("OMP_THREAD_LIMIT"); s != "" && !a.Has("all") {
		if k, ok := atoi(s); ok && k > 0 {
			n = min(n, k)
		}
	}
	if s, given := a.Value("ignore"); given {
		k, err := command.ParseUint(s, "")
		if err != nil {
			t.Errorf("invalid number: %s", command.Quote(s))
			return 1
		}
		n = max(1, n-int(min(k, 1<<20)))
	}
	say(t, itoa(n))
	return 0
}

var uptimeSpec = &command.Spec{
	Name: "uptime", Synopsis: "[options]", About: "Tell how long the system has been running.",
	Options: []command.Option{{Short: 'p', Long: "pretty", Help: "show uptime in pretty format"}, {Short: 's', Long: "since", Help: "system up since"}},
}

// up tells for how long the computer has been running.
func up(t *kernel.Task) time.Duration {
	b, err := t.View.ReadFile("/proc/uptime", 1<<10)
	if err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		if f, err := strconv.ParseFloat(first, 64); err == nil {
			return time.Duration(f * float64(time.Second))
		}
	}
	return time.Since(t.Run.Started())
}

func uptimeLine(t *kernel.Task, now time.Time) string {
	d := up(t)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	s := " " + now.UTC().Format("15:04:05") + " up "
	if days > 0 {
		plural := "s"
		if days == 1 {
			plural = ""
		}
		s += fmt.Sprintf("%d day%s, ", days, plural)
	}
	if hours > 0 {
		s += fmt.Sprintf("%2d:%02d, ", hours, minutes)
	} else {
		s += fmt.Sprintf("%d min, ", minutes)
	}
	return s + " 0 user,  load average: 0.00, 0.00, 0.00"
}

func runUptime(t *kernel.Task) int {
	a, status, ok := uptimeSpec.Parse(t)
	if !ok {
		return status
	}
	now := time.Now()
	switch {
	case a.Has("s"):
		say(t, now.Add(-up(t)).UTC().Format("2006-01-02 15:04:05"))
	case a.Has("p"):
		d := up(t)
		var parts []string
		add := func(n int, unit string) {
			if n == 1 {
				parts = append(parts, "1 "+unit)
			} else if n > 1 {
				parts = append(parts, itoa(n)+" "+unit+"s")
			}
		}
		add(int(d.Hours())/24/7, "week")
		add(int(d.Hours())/24%7, "day")
		add(int(d.Hours())%24, "hour")
		add(int(d.Minutes())%60, "minute")
		if len(parts) == 0 {
			parts = []string{"0 minutes"}
		}
		say(t, "up ", strings.Join(parts, ", "))
	default:
		say(t, uptimeLine(t, now))
	}
	return 0
}

var freeSpec = &command.Spec{
	Name: "free", Synopsis: "[options]", About: "Display amount of free and used memory in the system.",
	Options: []command.Option{
		{Short: 'b', Long: "bytes", Help: "show output in bytes"}, {Long: "kilo", Help: "show output in kilobytes"}, {Long: "mega", Help: "show output in megabytes"},
		{Long: "giga", Help: "show output in gigabytes"}, {Short: 'k', Long: "kibi", Help: "show output in kibibytes"}, {Short: 'm', Long: "mebi", Help: "show output in mebibytes"},
		{Short: 'g', Long: "gibi", Help: "show output in gibibytes"}, {Short: 'h', Long: "human", Help: "show human-readable output"}, {Long: "si", Help: "use powers of 1000 not 1024"},
		{Short: 't', Long: "total", Help: "show total for RAM + swap"}, {Short: 'w', Long: "wide", Help: "wide output"}, {Short: 'l', Long: "lohi", Help: "show detailed low and high memory statistics"},
		{Short: 's', Long: "seconds", Arg: command.Required, Name: "N", Help: "repeat printing every N seconds"}, {Short: 'c', Long: "count", Arg: command.Required, Name: "N", Help: "repeat printing N times, then exit"},
	},
}

func runFree(t *kernel.Task) int {
	a, status, ok := freeSpec.Parse(t)
	if !ok {
		return status
	}
	total, used := uint64(t.K.Heap().Limit()), uint64(max(t.K.Heap().Used(), 0))
	unit := uint64(1024)
	human := a.Has("h")
	for _, f := range a.Flags {
		switch f.Key {
		case "b":
			unit = 1
		case "kilo":
			unit = 1000
		case "mega":
			unit = 1e6
		case "giga":
			unit = 1e9
		case "k":
			unit = 1024
		case "m":
			unit = 1 << 20
		case "g":
			unit = 1 << 30
		}
	}
	show := func(n uint64) string {
		if !human {
			return strconv.FormatUint(n/unit, 10)
		}
		s := command.HumanSizes().Text(n)
		if c := s[len(s)-1]; c >= '0' && c <= '9' {
			return s + "B"
		}
		return s + "i"
	}
	times, wait := 1, time.Second
	if s, given := a.Value("s"); given {
		d, ok := duration(s)
		if !ok || d <= 0 {
			t.Errorf("seconds argument failed: %s", command.Quote(s))
			return 1
		}
		times, wait = 1<<30, d
	}
	if s, given := a.Value("c"); given {
		n, ok := atoi(s)
		if !ok || n == 0 {
			t.Errorf("failed to parse count argument: %s", command.Quote(s))
			return 1
		}
		times = n
	}
	w := t.Out()
	for i := range times {
		if i > 0 {
			fmt.Fprintln(w)
			if err := t.Sleep(wait); err != nil {
				return 1
			}
		}
		if a.Has("w") {
			fmt.Fprintf(w, "%9s%11s%12s%12s%12s%12s%12s%12s\n", "", "total", "used", "free", "shared", "buffers", "cache", "available")
			fmt.Fprintf(w, "%-9s%11s%12s%12s%12s%12s%12s%12s\n", "Mem:", show(total), show(used), show(total-used), show(0), show(0), show(0), show(total-used))
		} else {
			fmt.Fprintf(w, "%9s%11s%12s%12s%12s%12s%12s\n", "", "total", "used", "free", "shared", "buff/cache", "available")
			fmt.Fprintf(w, "%-9s%11s%12s%12s%12s%12s%12s\n", "Mem:", show(total), show(used), show(total-used), show(0), show(0), show(total-used))
		}
		fmt.Fprintf(w, "%-9s%11s%12s%12s\n", "Swap:", show(0), show(0), show(0))
		if a.Has("t") {
			fmt.Fprintf(w, "%-9s%11s%12s%12s\n", "Total:", show(total), show(used), show(total-used))
		}
	}
	return 0
}

func runGetconf(t *kernel.Task) int {
	args := t.Args[1:]
	if len(args) == 2 && args[0] == "-v" {
		args = args[2:]
	}
	values := [][2]string{
		{"_NPROCESSORS_CONF", itoa(processors(t))}, {"_NPROCESSORS_ONLN", itoa(processors(t))}, {"PAGE_SIZE", "4096"}, {"PAGESIZE", "4096"},
		{"ARG_MAX", strconv.FormatInt(t.K.Limits.Arguments, 10)}, {"OPEN_MAX", itoa(t.K.MaxDescriptors())}, {"CHILD_MAX", itoa(t.K.MaxTasks())},
		{"PATH_MAX", "4096"}, {"NAME_MAX", "255"}, {"PIPE_BUF", "4096"}, {"LINK_MAX", "65000"}, {"HOST_NAME_MAX", "64"}, {"LOGIN_NAME_MAX", "256"},
		{"LINE_MAX", "2048"}, {"CLK_TCK", "100"}, {"LONG_BIT", "64"}, {"INT_MAX", "2147483647"}, {"INT_MIN", "-2147483648"}, {"UINT_MAX", "4294967295"},
		{"CHAR_BIT", "8"}, {"LONG_MAX", "9223372036854775807"}, {"SSIZE_MAX", "32767"}, {"NGROUPS_MAX", "65536"}, {"SYMLOOP_MAX", ""}, {"TZNAME_MAX", ""},
		{"PATH", "/bin:/usr/bin"}, {"GNU_LIBC_VERSION", "glibc 2.36"}, {"_POSIX_VERSION", "200809"}, {"POSIX_VERSION", "200809"}, {"WORD_BIT", "32"},
		{"RE_DUP_MAX", "32767"}, {"BC_BASE_MAX", "99"}, {"BC_DIM_MAX", "2048"}, {"BC_SCALE_MAX", "99"}, {"BC_STRING_MAX", "1000"}, {"EXPR_NEST_MAX", "32"}, {"IOV_MAX", "1024"},
		{"_POSIX_PATH_MAX", "256"}, {"_POSIX_ARG_MAX", "4096"}, {"_POSIX_OPEN_MAX", "20"}, {"_PHYS_PAGES", strconv.FormatInt(t.K.Heap().Limit()/4096, 10)}, {"_AVPHYS_PAGES", strconv.FormatInt((t.K.Heap().Limit()-t.K.Heap().Used())/4096, 10)},
	}
	switch {
	case len(args) == 1 && args[0] == "-a":
		for _, v := range values {
			say(t, fmt.Sprintf("%-34s %s", v[0], v[1]))
		}
		return 0
	case len(args) != 1 && len(args) != 2:
		_, _ = t.Write(2, []byte("Usage: getconf [-v specification] variable_name [pathname]\n       getconf -a [pathname]\n"))
		return 2
	}
	for _, v := range values {
		if v[0] == args[0] {
			text := v[1]
			if text == "" {
				text = "undefined"
			}
			say(t, text)
			return 0
		}
	}
	t.Errorf("Unrecognized variable `%s'", args[0])
	return 2
}

var localeSpec = &command.Spec{
	Name: "locale", Synopsis: "[OPTION...] NAME\n  or:  locale [OPTION...] [-a|-m]", About: "Get locale-specific information.",
	Options: []command.Option{
		{Short: 'a', Long: "all-locales", Help: "write names of available locales"}, {Short: 'm', Long: "charmaps", Help: "write names of available charmaps"},
		{Short: 'c', Long: "category-name", Help: "write names of selected categories"}, {Short: 'k', Long: "keyword-name", Help: "write names of selected keywords"}, {Short: 'v', Long: "verbose", Help: "print more information"},
	},
}

func runLocale(t *kernel.Task) int {
	a, status, ok := localeSpec.Parse(t)
	if !ok {
		return status
	}
	switch {
	case a.Has("a"):
		say(t, "C\nC.utf8\nPOSIX")
		return 0
	case a.Has("m"):
		say(t, "ANSI_X3.4-1968\nUTF-8")
		return 0
	}
	keys := map[string]string{
		"charmap": "UTF-8", "decimal_point": ".", "thousands_sep": "", "yesexpr": "^[yY]", "noexpr": "^[nN]", "yesstr": "", "nostr": "",
		"abday": "Sun;Mon;Tue;Wed;Thu;Fri;Sat", "day": "Sunday;Monday;Tuesday;Wednesday;Thursday;Friday;Saturday",
		"abmon": "Jan;Feb;Mar;Apr;May;Jun;Jul;Aug;Sep;Oct;Nov;Dec", "d_fmt": "%m/%d/%y", "t_fmt": "%H:%M:%S", "d_t_fmt": "%a %b %e %H:%M:%S %Y", "int_curr_symbol": "", "currency_symbol": "",
	}
	for _, name := range a.Operands {
		v, ok := keys[name]
		if !ok {
			t.Errorf("unknown name \"%s\"", name)
			status = 1
			continue
		}
		if a.Has("k") {
			v = name + "=\"" + v + "\""
		}
		say(t, v)
	}
	if len(a.Operands) > 0 {
		return status
	}
	lang, all := t.Getenv("LANG"), t.Getenv("LC_ALL")
	say(t, "LANG=", lang)
	say(t, "LANGUAGE=", t.Getenv("LANGUAGE"))
	for _, name := range []string{"CTYPE", "NUMERIC", "TIME", "COLLATE", "MONETARY", "MESSAGES", "PAPER", "NAME", "ADDRESS", "TELEPHONE", "MEASUREMENT", "IDENTIFICATION"} {
		own := t.Getenv("LC_" + name)
		switch {
		case all != "":
			say(t, "LC_", name, "=\"", all, "\"")
		case own != "":
			say(t, "LC_", name, "=", own)
		case lang != "":
			say(t, "LC_", name, "=\"", lang, "\"")
		default:
			say(t, "LC_", name, "=\"POSIX\"")
		}
	}
	say(t, "LC_ALL=", all)
	return 0
}

var mountpointSpec = &command.Spec{
	Name: "mountpoint", Synopsis: "[-qd] <directory>", About: "Check whether a directory or file is a mountpoint.",
	Options: []command.Option{
		{Short: 'q', Long: "quiet", Help: "quiet mode - don't print anything"}, {Long: "nofollow", Help: "do not follow symlink"},
		{Short: 'd', Long: "fs-devno", Help: "print maj:min device number of the filesystem"}, {Short: 'x', Long: "devno", Help: "print maj:min device number of the block device"},
	},
}

func runMountpoint(t *kernel.Task) int {
	a, status, ok := mountpointSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) != 1 {
		_, _ = t.Write(2, []byte("mountpoint: bad usage\nTry 'mountpoint --help' for more information.\n"))
		return 1
	}
	name := a.Operands[0]
	i, err := t.View.Stat(name)
	if err != nil {
		if !a.Has("q") {
			t.Errorf("%s: %s", name, reason(err))
		}
		return 1
	}
	is := false
	if i.IsDir() {
		u, uerr := t.View.Stat(name + "/..")
		is = uerr == nil && (u.Dev != i.Dev || u.Ino == i.Ino)
	}
	if a.Has("d") && is {
		say(t, itoa(int(i.Dev>>8)), ":", itoa(int(i.Dev&0xff)))
		return 0
	}
	if !a.Has("q") {
		if is {
			say(t, name, " is a mountpoint")
		} else {
			say(t, name, " is not a mountpoint")
		}
	}
	if !is {
		return 32
	}
	return 0
}
