package encode

import (
	"bytes"
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

func dosSpec(name string) *command.Spec {
	return &command.Spec{
		Name: name, Synopsis: "[options] [file ...] [-n infile outfile ...]",
		About: "Convert line breaks of text files.",
		Options: []command.Option{
			{Short: 'a', Long: "convmode", Help: "(ignored)"},
			{Short: 'b', Long: "keep-bom", Help: "keep Byte Order Mark"},
			{Short: 'c', Arg: command.Required, Name: "convmode", Help: "conversion mode: ascii, 7bit, iso, mac"},
			{Short: 'e', Long: "add-eol", Help: "add a line break to the last line if there isn't one"},
			{Short: 'f', Long: "force", Help: "force conversion of binary files"},
			{Short: 'i', Long: "info", Arg: command.Optional, Name: "FLAGS", Help: "display file information"},
			{Short: 'k', Long: "keepdate", Help: "keep output file date"},
			{Short: 'l', Long: "newline", Help: "add additional newline"},
			{Short: 'm', Long: "add-bom", Help: "add Byte Order Mark"},
			{Short: 'n', Long: "newfile", Help: "write to new file"},
			{Short: 'o', Long: "oldfile", Help: "write to old file (default)"},
			{Short: 'O', Long: "to-stdout", Help: "write to standard output"},
			{Short: 'q', Long: "quiet", Help: "quiet mode, suppress all warnings"},
			{Short: 'r', Long: "remove-bom", Help: "remove Byte Order Mark"},
			{Short: 's', Long: "safe", Help: "skip binary files (default)"},
			{Short: 'v', Long: "verbose", Help: "verbose operation"},
		},
	}
}

// A breaker changes line breaks.
type breaker struct {
	t        *kernel.Task
	to       string // of its messages
	toDOS    bool
	mac      bool
	double   bool
	addEOL   bool
	keepBOM  bool
	dropBOM  bool
	addBOM   bool
	force    bool
	quiet    bool
	keepTime bool
	stdout   bool
}

func runDos(t *kernel.Task) int {
	spec := dosSpec(t.Name())
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	d := &breaker{t: t, to: "Unix", double: a.Has("l"), addEOL: a.Has("e"), keepBOM: a.Has("b"), dropBOM: a.Has("r"), addBOM: a.Has("m"), quiet: a.Has("q"), keepTime: a.Has("k"), stdout: a.Has("O")}
	switch t.Name() {
	case "unix2dos":
		d.to, d.toDOS = "DOS", true
	case "unix2mac":
		d.to, d.toDOS, d.mac = "Mac", true, true
	case "mac2unix":
		d.mac = true
	}
	newFiles := false
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			d.force = true
		case "s":
			d.force = false
		case "n":
			newFiles = true
		case "o":
			newFiles = false
		case "c":
			switch f.Value {
			case "ascii", "7bit", "iso":
			case "mac":
				d.mac = true
			default:
				t.Errorf("invalid %s conversion mode specified", f.Value)
				return 1
			}
		}
	}
	if a.Has("i") {
		return d.info(a.Operands)
	}
	if len(a.Operands) == 0 {
		r, err := command.StdinReader(t)
		if err != nil {
			t.Errorf("%s", reason(err))
			return 1
		}
		defer r.Close()
		b, err := r.All()
		if err != nil {
			t.Errorf("%s", reason(err))
			return 1
		}
		command.Stdout(t).Bytes(d.convert(b))
		return 0
	}
	if newFiles {
		if len(a.Operands)%2 != 0 {
			t.Errorf("target of file %s not specified in new-file mode", a.Operands[len(a.Operands)-1])
			return 1
		}
		for i := 0; i < len(a.Operands); i += 2 {
			status = max(status, d.file(a.Operands[i], a.Operands[i+1]))
		}
		return status
	}
	for _, name := range a.Operands {
		status = max(status, d.file(name, name))
	}
	return status
}

func (d *breaker) file(in, out string) int {
	i, err := d.t.View.Stat(in)
	if err != nil {
		d.t.Errorf("%s: %s", in, reason(err))
		if !d.quiet {
			d.t.Errorf("Skipping %s, not a regular file.", in)
		}
		return 2
	}
	if !i.IsRegular() {
		if !d.quiet {
			d.t.Errorf("Skipping %s, not a regular file.", in)
		}
		return 0
	}
	b, err := command.ReadAll(d.t, in)
	if err != nil {
		d.t.Errorf("%s: %s", in, reason(err))
		return 2
	}
	if at := unprintable(b); at >= 0 && !d.force {
		if !d.quiet {
			d.t.Errorf("Binary symbol 0x%02X found at line %d", b[at], 1+bytes.Count(b[:at], []byte{'\n'}))
			d.t.Errorf("Skipping binary file %s", in)
		}
		return 0
	}
	b = d.convert(b)
	if d.stdout {
		command.Stdout(d.t).Bytes(b)
		return 0
	}
	if !d.quiet {
		if in == out {
			d.t.Errorf("converting file %s to %s format...", in, d.to)
		} else {
			d.t.Errorf("converting file %s to file %s in %s format...", in, out, d.to)
		}
	}
	o, err := command.Create(d.t, out, linux.O_TRUNC)
	if err != nil {
		d.t.Errorf("%s: %s", out, reason(err))
		return 2
	}
	defer func() { _ = o.Close() }()
	if _, err := o.Write(b); err != nil {
		d.t.Errorf("%s: %s", out, reason(err))
		return 2
	}
	if d.keepTime {
		if err := d.t.View.Chtimes(out, i.Atime, i.Mtime, true); err != nil {
			d.t.Errorf("%s: %s", out, reason(err))
			return 2
		}
	}
	return 0
}

// unprintable finds a byte that text does not have.
func unprintable(b []byte) int {
	for i, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 27 {
			return i
		}
	}
	return -1
}

func (d *breaker) convert(b []byte) []byte {
	const bom = "\xef\xbb\xbf"
	had := bytes.HasPrefix(b, []byte(bom))
	if had {
		b = b[len(bom):]
	}
	d.t.Grow(2*len(b) + 8)
	out := make([]byte, 0, len(b)+len(b)/8+8)
	if had && (d.keepBOM || d.toDOS && !d.dropBOM) || d.addBOM {
		out = append(out, bom...)
	}
	end := "\n"
	switch {
	case d.toDOS && d.mac:
		end = "\r"
	case d.toDOS:
		end = "\r\n"
	}
	if d.double {
		end += end
	}
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case d.toDOS && c == '\n' && (d.mac || i == 0 || b[i-1] != '\r'):
			out = append(out, end...)
		case d.toDOS && c == '\n':
			out = append(out, '\n')
		case d.toDOS:
			out = append(out, c)
		case d.mac && c == '\r' && (i+1 == len(b) || b[i+1] != '\n'):
			out = append(out, end...)
		case !d.mac && c == '\r' && i+1 < len(b) && b[i+1] == '\n':
			i++
			out = append(out, end...)
		case !d.mac && c == '\n' && d.double:
			out = append(out, end...)
		default:
			out = append(out, c)
		}
	}
	if n := len(out); d.addEOL && n > 0 && out[n-1] != end[len(end)-1] {
		out = append(out, end...)
	}
	return out
}

// info shows how many breaks of which kind files have.
func (d *breaker) info(names []string) int {
	w := command.Stdout(d.t)
	return command.EachFile(d.t, command.InputNames(names), func(name string, r *command.Reader) {
		b, err := r.All()
		if err != nil {
			return
		}
		dos := bytes.Count(b, []byte("\r\n"))
		unix := bytes.Count(b, []byte{'\n'}) - dos
		mac := bytes.Count(b, []byte{'\r'}) - dos
		kind, bom := "text  ", "no_bom  "
		if unprintable(b) >= 0 {
			kind = "binary"
		}
		if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
			bom = "UTF-8   "
		}
		line := fmt.Sprintf("%8d%8d%8d  %s%s", dos, unix, mac, bom, kind)
		if name != "-" {
			line += "  " + name
		}
		w.String(line + "\n")
	})
}
