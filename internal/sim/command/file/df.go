package file

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A meter charges a task for matching.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

var dfSpec = &command.Spec{
	Name: "df", Synopsis: "[OPTION]... [FILE]...", About: "Show information about the file system on which each FILE resides, or all file systems by default.",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "include pseudo, duplicate, inaccessible file systems"}, {Short: 'B', Long: "block-size", Arg: command.Required, Name: "SIZE", Help: "scale sizes by SIZE before printing them"},
		{Short: 'h', Long: "human-readable", Help: "print sizes in powers of 1024"}, {Short: 'H', Long: "si", Help: "print sizes in powers of 1000"}, {Short: 'i', Long: "inodes", Help: "list inode information instead of block usage"},
		{Short: 'k', Help: "like --block-size=1K"}, {Short: 'l', Long: "local", Help: "limit listing to local file systems"}, {Short: 'm', Help: "like --block-size=1M"}, {Long: "no-sync", Help: "(ignored)"},
		{Long: "output", Arg: command.Optional, Name: "FIELD_LIST", Help: "use the output format defined by FIELD_LIST"}, {Short: 'P', Long: "portability", Help: "use the POSIX output format"}, {Long: "sync", Help: "(ignored)"},
		{Long: "total", Help: "produce a grand total"}, {Short: 't', Long: "type", Arg: command.Required, Name: "TYPE", Help: "limit listing to file systems of type TYPE"}, {Short: 'T', Long: "print-type", Help: "print file system type"},
		{Short: 'x', Long: "exclude-type", Arg: command.Required, Name: "TYPE", Help: "limit listing to file systems not of type TYPE"}, {Short: 'v', Help: "(ignored)"},
	},
}

// badSize complains about a block size.
func badSize(t *kernel.Task, f command.Flag, err error) {
	switch {
	case errors.Is(err, command.ErrLarge):
		t.Errorf("%s argument '%s' too large", f.Spelt, f.Value)
	case errors.Is(err, command.ErrSuffix), f.Value != "" && (f.Value[0] < '0' || f.Value[0] > '9'):
		t.Errorf("invalid suffix in %s argument '%s'", f.Spelt, f.Value)
	default:
		t.Errorf("invalid %s argument '%s'", f.Spelt, f.Value)
	}
}

// A volume is a file system as df shows it.
type volume struct {
	source, kind, target, file string
	total, used, free          uint64
	inodes, iused, ifree       uint64
}

func runDf(t *kernel.Task) int {
	a, status, ok := dfSpec.Parse(t)
	if !ok {
		return status
	}
	unit := command.DefaultSizeUnit(t, "DF_BLOCK_SIZE")
	inodes, kinds, portable := false, false, false
	var only, not []string
	for _, f := range a.Flags {
		switch f.Key {
		case "B":
			u, err := command.ParseSizeUnit(f.Value)
			if err != nil {
				badSize(t, f, err)
				return 1
			}
			unit = u
		case "h":
			unit = command.HumanSizes()
		case "H":
			unit = command.SISizes()
		case "k":
			unit = command.SizeUnit{Size: 1 << 10}
		case "m":
			unit = command.SizeUnit{Size: 1 << 20}
		case "i":
			inodes = true
		case "P":
			portable = true
		case "T":
			kinds = true
		case "t":
			only = append(only, f.Value)
		case "x":
			not = append(not, f.Value)
		}
	}
	list := volumes(t, a.Has("a") || len(a.Operands) > 0)
	if len(a.Operands) > 0 {
		var chosen []volume
		for _, name := range a.Operands {
			i, err := t.View.Stat(name)
			if err != nil {
				command.FailFile(t, name, err)
				status = 1
				continue
			}
			v := list[0]
			for _, m := range t.View.FS.Mounts() {
				k := slices.IndexFunc(list, func(x volume) bool { return x.target == m.Path })
				if m.Dev == i.Dev && k >= 0 {
					v = list[k]
				}
			}
			if path, err := t.View.Realpath(name); err == nil && below(path, "/proc") {
				if k := slices.IndexFunc(list, func(x volume) bool { return x.target == "/proc" }); k >= 0 {
					v = list[k]
				}
			}
			v.file = name
			chosen = append(chosen, v)
		}
		list = chosen
	}
	list = slices.DeleteFunc(list, func(v volume) bool {
		return only != nil && !slices.Contains(only, v.kind) || slices.Contains(not, v.kind)
	})
	if len(list) == 0 {
		if status == 0 {
			t.Errorf("no file systems processed")
		}
		return 1
	}
	if a.Has("total") {
		sum := volume{source: "total", kind: "-", target: "-", file: "-"}
		for _, v := range list {
			sum.total, sum.used, sum.free = sum.total+v.total, sum.used+v.used, sum.free+v.free
			sum.inodes, sum.iused, sum.ifree = sum.inodes+v.inodes, sum.iused+v.iused, sum.ifree+v.ifree
		}
		list = append(list, sum)
	}
	fields := []string{"source", "size", "used", "avail", "pcent", "target"}
	switch {
	case inodes:
		fields = []string{"source", "itotal", "iused", "iavail", "ipcent", "target"}
	}
	if kinds {
		fields = slices.Insert(fields, 1, "fstype")
	}
	if v, given := a.Value("output"); a.Has("output") {
		all := []string{"source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent", "file", "target"}
		fields = all
		if given && v != "" {
			fields = strings.Split(v, ",")
			for _, f := range fields {
				if !slices.Contains(all, f) {
					return dfSpec.Usage(t, "option --output: field %s unknown", command.Quote(f))
				}
			}
		}
	}
	table(t, list, fields, unit, portable)
	return status
}

// volumes lists what is mounted.
func volumes(t *kernel.Task, all bool) []volume {
	used, files, most, mostFiles := t.View.FS.Usage()
	root := volume{
		source: "tmpfs", kind: "tmpfs", target: "/", file: "-", total: uint64(most), used: uint64(max(used, 0)), free: uint64(max(most-used, 0)),
		inodes: uint64(mostFiles), iused: uint64(max(files, 0)), ifree: uint64(max(mostFiles-files, 0)),
	}
	list := []volume{root}
	for _, m := range t.View.FS.Mounts() {
		v := root
		v.source, v.kind, v.target = m.Name, m.Type, m.Path
		if v.source == "" {
			v.source = "none"
		}
		if v.kind == "" {
			v.kind = "overlay"
		}
		list = append(list, v)
	}
	if i, err := t.View.Stat("/proc"); all && err == nil && i.IsDir() {
		list = append(list, volume{source: "proc", kind: "proc", target: "/proc", file: "-"})
	}
	return list
}

func table(t *kernel.Task, list []volume, fields []string, unit command.SizeUnit, portable bool) {
	heading := "1K-blocks"
	switch {
	case unit.Size == 0:
		heading = "Size"
	case portable:
		heading = strconv.FormatUint(unit.Size, 10) + "-blocks"
	case unit.Size != 1024:
		heading = command.HumanSizes().Text(unit.Size) + "-blocks"
		if unit.Size < 1024 {
			heading = strconv.FormatUint(unit.Size, 10) + "B-blocks"
		} else {
			heading = strings.Replace(heading, ".0", "", 1)
		}
	}
	percent := func(used, free uint64) string {
		if used+free == 0 {
			return "-"
		}
		return strconv.FormatUint((used*100+used+free-1)/(used+free), 10) + "%"
	}
	count := command.SizeUnit{Size: 1}
	if unit.Size == 0 {
		count = unit
	}
	type column struct {
		title string
		left  bool
		least int
		value func(v volume) string
	}
	known := map[string]column{
		"source": {"Filesystem", true, 14, func(v volume) string { return v.source }},
		"fstype": {"Type", true, 4, func(v volume) string { return v.kind }},
		"size":   {heading, false, 5, func(v volume) string { return unit.Text(v.total) }},
		"used":   {"Used", false, 5, func(v volume) string { return unit.Text(v.used) }},
		"avail":  {"Available", false, 5, func(v volume) string { return unit.Text(v.free) }},
		"pcent":  {"Use%", false, 4, func(v volume) string { return percent(v.used, v.free) }},
		"itotal": {"Inodes", false, 5, func(v volume) string { return count.Text(v.inodes) }},
		"iused":  {"IUsed", false, 5, func(v volume) string { return count.Text(v.iused) }},
		"iavail": {"IFree", false, 5, func(v volume) string { return count.Text(v.ifree) }},
		"ipcent": {"IUse%", false, 4, func(v volume) string { return percent(v.iused, v.ifree) }},
		"target": {"Mounted on", true, 0, func(v volume) string { return v.target }},
		"file":   {"File", true, 0, func(v volume) string { return v.file }},
	}
	rows := make([][]string, len(list)+1)
	widths := make([]int, len(fields))
	for k, f := range fields {
		c := known[f]
		title := c.title
		switch {
		case f == "avail" && unit.Size == 0:
			title = "Avail"
		case f == "pcent" && portable:
			title = "Capacity"
		}
		widths[k] = c.least
		rows[0] = append(rows[0], title)
		widths[k] = max(widths[k], len(title))
		for r, v := range list {
			text := c.value(v)
			rows[r+1] = append(rows[r+1], text)
			widths[k] = max(widths[k], len(text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for k, text := range row {
			if k > 0 {
				b.WriteByte(' ')
			}
			switch {
			case !known[fields[k]].left:
				fmt.Fprintf(&b, "%*s", widths[k], text)
			case k == len(row)-1:
				b.WriteString(text)
			default:
				fmt.Fprintf(&b, "%-*s", widths[k], text)
			}
		}
		say(t, b.String())
	}
}

var shredSpec = &command.Spec{
	Name: "shred", Synopsis: "[OPTION]... FILE...", About: "Overwrite the specified FILE(s) repeatedly, in order to make it harder for even very expensive hardware probing to recover the data.",
	Options: []command.Option{
		{Short: 'f', Long: "force", Help: "change permissions to allow writing if necessary"}, {Short: 'n', Long: "iterations", Arg: command.Required, Name: "N", Help: "overwrite N times instead of the default (3)"},
		{Long: "random-source", Arg: command.Required, Name: "FILE", Help: "(ignored)"}, {Short: 's', Long: "size", Arg: command.Required, Name: "N", Help: "shred this many bytes"},
		{Short: 'u', Help: "deallocate and remove file after overwriting"}, {Long: "remove", Arg: command.Optional, Name: "HOW", Help: "like -u but give control on HOW to delete"},
		{Short: 'v', Long: "verbose", Help: "show progress"}, {Short: 'x', Long: "exact", Help: "do not round file sizes up to the next full block"}, {Short: 'z', Long: "zero", Help: "add a final overwrite with zeros to hide shredding"},
	},
}

func runShred(t *kernel.Task) int {
	a, status, ok := shredSpec.Parse(t)
	if !ok {
		return status
	}
	passes := 3
	if s, given := a.Value("n"); given {
		n, err := command.ParseUint(s, "")
		if err != nil {
			t.Errorf("invalid number of passes: %s", command.Quote(s))
			return 1
		}
		passes = int(min(n, 1<<20))
	}
	if len(a.Operands) == 0 {
		return shredSpec.Usage(t, "missing file operand")
	}
	for _, name := range a.Operands {
		if !shred(t, name, a, passes) {
			status = 1
		}
	}
	return status
}

func shred(t *kernel.Task, name string, a *command.Args, passes int) bool {
	f, err := t.View.Open(name, linux.O_WRONLY, 0)
	if err == linux.EACCES && a.Has("f") {
		if err = t.View.Chmod(name, 0o200); err == nil {
			f, err = t.View.Open(name, linux.O_WRONLY, 0)
		}
	}
	if err != nil {
		t.Errorf("%s: failed to open for writing: %s", command.QuoteFile(name), reason(err))
		return false
	}
	defer f.Close()
	i, err := f.Info()
	if err != nil || !i.IsRegular() {
		t.Errorf("%s: invalid file type", command.QuoteFile(name))
		return false
	}
	length := i.Size
	if s, given := a.Value("s"); given {
		n, err := command.ParseInt(s, command.SizeSuffixes, 0, 1<<62)
		if err != nil {
			t.Errorf("invalid file size: %s", command.Quote(s))
			return false
		}
		length = n
	} else if !a.Has("x") && length > 0 {
		length = (length + 4095) / 4096 * 4096
	}
	total := passes
	if a.Has("z") {
		total++
	}
	for p := range total {
		kind := "random"
		if p >= passes {
			kind = "000000"
		}
		if a.Has("v") {
			t.Errorf("%s: pass %d/%d (%s)...", command.QuoteFile(name), p+1, total, kind)
		}
		for at := int64(0); at < length; {
			b := []byte(random(int(min(4096, length-at))))
			if p >= passes {
				clear(b)
			}
			n, err := f.WriteAt(b, at)
			t.Step(64)
			if err != nil {
				t.Errorf("%s: error writing at offset %d: %s", command.QuoteFile(name), at, reason(err))
				return false
			}
			at += int64(n)
		}
	}
	if a.Has("u") || a.Has("remove") {
		if a.Has("v") {
			t.Errorf("%s: removing", command.QuoteFile(name))
		}
		if err := t.View.Unlink(name); err != nil {
			t.Errorf("%s: failed to remove: %s", command.QuoteFile(name), reason(err))
			return false
		}
		if a.Has("v") {
			t.Errorf("%s: removed", command.QuoteFile(name))
		}
	}
	return true
}
