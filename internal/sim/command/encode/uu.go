package encode

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var uuencodeSpec = &command.Spec{
	Name: "uuencode", Synopsis: "[INFILE] REMOTEFILE",
	About: "Encode a file into email friendly text.",
	Options: []command.Option{
		{Short: 'm', Long: "base64", Help: "convert using base64"},
		{Short: 'e', Long: "encode-file-name", Help: "encode the output file name"},
	},
}

func runUuencode(t *kernel.Task) int {
	a, status, ok := uuencodeSpec.Parse(t)
	if !ok {
		return status
	}
	if status := command.CheckCount(t, uuencodeSpec, a.Operands, 1, 2); status != 0 {
		return status
	}
	in, name, mode := "-", a.Operands[0], uint32(0o644)
	if len(a.Operands) == 2 {
		in, name = a.Operands[0], a.Operands[1]
		if i, err := t.View.Stat(in); err == nil {
			mode = i.Mode & 0o777
		}
	}
	shown := name
	word := "begin"
	if a.Has("m") {
		word += "-base64"
	}
	if a.Has("e") {
		word += "-encoded"
		shown = base64.StdEncoding.EncodeToString([]byte(name))
	}
	w := command.Stdout(t)
	return command.EachFile(t, []string{in}, func(_ string, r *command.Reader) {
		w.Printf("%s %03o %s\n", word, mode, shown)
		for b := r.Next(45); len(b) > 0; b = r.Next(45) {
			t.Step(1)
			if a.Has("m") {
				w.Bytes(append(base64.StdEncoding.AppendEncode(w.Space(), b), '\n'))
				continue
			}
			w.Bytes(append(uuLine(w.Space(), b), '\n'))
		}
		if a.Has("m") {
			w.String("====\n")
		} else {
			w.String("`\nend\n")
		}
	})
}

func uuLine(dst, b []byte) []byte {
	char := func(v byte) byte {
		if v &= 63; v == 0 {
			return '`'
		}
		return v + ' '
	}
	dst = append(dst, char(byte(len(b))))
	for len(b) > 0 {
		var g [3]byte
		n := copy(g[:], b)
		b = b[n:]
		dst = append(dst, char(g[0]>>2), char(g[0]<<4|g[1]>>4), char(g[1]<<2|g[2]>>6), char(g[2]))
	}
	return dst
}

var uudecodeSpec = command.Spec{
	Name: "uudecode", Synopsis: "[FILE]...",
	About: "Decode an encoded file.",
	Options: []command.Option{
		{Short: 'o', Long: "output-file", Arg: command.Required, Name: "FILE", Help: "direct output to FILE"},
		{Short: 'c', Long: "ignore-chmod", Help: "(ignored)"},
	},
}

func runUudecode(t *kernel.Task) int {
	a, status, ok := uudecodeSpec.Parse(t)
	if !ok {
		return status
	}
	output, _ := a.Value("o")
	result := 0
	status = command.EachFile(t, command.InputNames(a.Operands), func(name string, r *command.Reader) {
		if name == "-" {
			name = "stdin"
		}
		if !uudecode(t, r, name, output) {
			result = 1
		}
	})
	return max(status, result)
}

func uudecode(t *kernel.Task, r *command.Reader, name, output string) bool {
	for {
		line, _, ok := r.Line('\n')
		if !ok {
			t.Errorf("%s: No 'begin' line", name)
			return false
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
		mode, file, ok := strings.Cut(rest, " ")
		bits, err := strconv.ParseUint(mode, 8, 32)
		if word != "begin" && word != "begin-base64" && word != "begin-encoded" && word != "begin-base64-encoded" || !ok || err != nil || file == "" {
			continue
		}
		if strings.HasSuffix(word, "encoded") {
			b, err := base64.StdEncoding.DecodeString(file)
			if err != nil {
				t.Errorf("%s: illegal file name", name)
				return false
			}
			file = string(b)
		}
		if output != "" {
			file = output
		}
		w := command.Stdout(t)
		if file != "-" && file != "/dev/stdout" {
			o, err := command.Create(t, file, linux.O_TRUNC)
			if err != nil {
				t.Errorf("%s: %s: %s", name, file, reason(err))
				return false
			}
			defer func() { _ = o.Close() }()
			if err := t.View.Chmod(file, uint32(bits)&0o777); err != nil {
				t.Errorf("%s: %s: %s", name, file, reason(err))
				return false
			}
			w = command.NewWriter(o, func(err error) {
				t.Errorf("%s: %s", file, reason(err))
				t.Exit(1)
			})
		}
		ok = uuBody(t, r, w, name, strings.Contains(word, "base64"))
		w.Flush()
		return ok
	}
}

func uuBody(t *kernel.Task, r *command.Reader, w *command.Writer, name string, base bool) bool {
	for {
		line, _, ok := r.Line('\n')
		if !ok {
			t.Errorf("%s: Short file", name)
			return false
		}
		s := strings.TrimRight(string(line), "\r")
		if base {
			if s == "====" {
				return true
			}
			b, err := base64.StdEncoding.DecodeString(s)
			if err != nil {
				t.Errorf("%s: Illegal line", name)
				return false
			}
			w.Bytes(b)
			continue
		}
		if s == "" || s[0] == '`' || s[0] == ' ' && strings.TrimSpace(s) == "" {
			line, _, ok := r.Line('\n')
			if !ok || strings.TrimRight(string(line), "\r") != "end" {
				t.Errorf("%s: No 'end' line", name)
				return false
			}
			return true
		}
		n := int(s[0]-' ') & 63
		value := func(i int) byte {
			if i >= len(s) {
				return 0
			}
			return (s[i] - ' ') & 63
		}
		out := w.Space()
		for i := 1; n > 0; i, n = i+4, n-3 {
			g := [3]byte{value(i)<<2 | value(i+1)>>4, value(i+1)<<4 | value(i+2)>>2, value(i+2)<<6 | value(i+3)}
			out = append(out, g[:min(n, 3)]...)
		}
		w.Bytes(out)
	}
}
