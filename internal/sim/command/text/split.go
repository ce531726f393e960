package text

import (
	"bytes"
	"errors"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var splitSpec = command.Spec{
	Name: "split", Synopsis: "[OPTION]... [FILE [PREFIX]]",
	About: "Output pieces of FILE to PREFIXaa, PREFIXab, ...; default size is 1000 lines, and default PREFIX is 'x'.",
	Options: []command.Option{
		{Short: 'a', Long: "suffix-length", Arg: command.Required, Name: "N", Help: "generate suffixes of length N (default 2)"},
		{Long: "additional-suffix", Arg: command.Required, Name: "SUFFIX", Help: "append an additional SUFFIX to file names"},
		{Short: 'b', Long: "bytes", Arg: command.Required, Name: "SIZE", Help: "put SIZE bytes per output file"},
		{Short: 'C', Long: "line-bytes", Arg: command.Required, Name: "SIZE", Help: "put at most SIZE bytes of records per output file"},
		{Short: 'd', Help: "use numeric suffixes starting at 0, not alphabetic"},
		{Long: "numeric-suffixes", Arg: command.Optional, Name: "FROM", Help: "same as -d, but allow setting the start value"},
		{Short: 'x', Help: "use hex suffixes starting at 0, not alphabetic"},
		{Long: "hex-suffixes", Arg: command.Optional, Name: "FROM", Help: "same as -x, but allow setting the start value"},
		{Short: 'e', Long: "elide-empty-files", Help: "do not generate empty output files with '-n'"},
		{Long: "filter", Arg: command.Required, Name: "COMMAND", Help: "write to shell COMMAND; file name is $FILE"},
		{Short: 'l', Long: "lines", Arg: command.Required, Name: "NUMBER", Help: "put NUMBER lines/records per output file"},
		{Short: 'n', Long: "number", Arg: command.Required, Name: "CHUNKS", Help: "generate CHUNKS output files: N, K/N, l/N, l/K/N, r/N, r/K/N"},
		{Short: 't', Long: "separator", Arg: command.Required, Name: "SEP", Help: "use SEP instead of newline as the record separator; '\\0' specifies the NUL character"},
		{Short: 'u', Long: "unbuffered", Help: "immediately copy input to output with '-n r/...'"},
		{Long: "verbose", Help: "print a diagnostic just before each output file is opened"},
		{Short: '0'}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'},
		{Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

// A splitter writes pieces. kind is l, b, C, or of -n: n (bytes), N (lines), r.
type splitter struct {
	t        *kernel.Task
	kind     byte
	size     int64
	chunk    int64 // the only one that is wanted, or 0
	sep      byte
	names    suffixes
	elide    bool
	filter   string
	verbose  bool
	in       *command.Reader
	out      *piece
	outputs  []*piece
	numbered bool
}

// suffixes makes the names of pieces.
type suffixes struct {
	prefix, extra string
	digits        string
	length        int
	widen         bool // when all are used up, names get longer
	at            []int
	start         string
}

var errSuffixes = errors.New("output file suffixes exhausted")

func (s *suffixes) next() (string, error) {
	if s.at == nil {
		s.at = make([]int, s.length)
		for i := range s.start {
			if k := s.length - len(s.start) + i; k >= 0 {
				s.at[k] = strings.IndexByte(s.digits, s.start[i])
			}
		}
	} else if err := s.step(); err != nil {
		return "", err
	}
	name := []byte(s.prefix)
	for _, d := range s.at {
		name = append(name, s.digits[d])
	}
	return string(name) + s.extra, nil
}

func (s *suffixes) step() error {
	i := len(s.at) - 1
	for ; i >= 0; i-- {
		if s.at[i]++; s.at[i] < len(s.digits) {
			// The last first digit stays unused: it begins longer names.
			if i == 0 && s.widen && s.at[0] == len(s.digits)-1 {
				s.prefix += s.digits[len(s.digits)-1:]
				s.at = make([]int, len(s.at)+1)
			}
			return nil
		}
		s.at[i] = 0
	}
	return errSuffixes
}

func runSplit(t *kernel.Task) int {
	a, status, ok := splitSpec.Parse(t)
	if !ok {
		return status
	}
	s := &splitter{t: t, sep: '\n', elide: a.Has("e"), verbose: a.Has("verbose")}
	s.names = suffixes{prefix: "x", digits: "abcdefghijklmnopqrstuvwxyz", length: 2, widen: true}
	if status := s.options(a); status != 0 {
		return status
	}
	if len(a.Operands) > 2 {
		return splitSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[2]))
	}
	name := command.InputNames(a.Operands)[0]
	if len(a.Operands) > 1 {
		s.names.prefix = a.Operands[1]
	}
	if s.kind == 0 {
		s.kind, s.size = 'l', 1000
	}
	if s.size == 0 {
		s.t.Errorf("invalid number of %s: %s", map[byte]string{'l': "lines", 'b': "bytes", 'C': "lines"}[s.kind], command.Quote("0"))
		return 1
	}
	if s.chunk > 0 && s.filter != "" {
		t.Errorf("--filter does not process a chunk extracted to stdout")
		return 1
	}
	if status := s.lengths(); status != 0 {
		return status
	}
	r, err := command.OpenReader(t, name)
	if err != nil {
		command.ComplainFile(t, "cannot open %s for reading", name, err)
		return 1
	}
	defer r.Close()
	s.in = r
	defer s.abandon()
	s.run(name)
	s.finish()
	if err := r.Err(); err != nil {
		command.FailFile(t, name, err)
		return 1
	}
	return 0
}

func (s *splitter) options(a *command.Args) int {
	t := s.t
	digits, separated := "", false
	given := false
	choose := func(kind byte) bool {
		if given {
			splitSpec.Usage(t, "cannot split in more than one way")
			return false
		}
		given, s.kind = true, kind
		return true
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "a":
			n, err := command.ParseUintWithin(f.Value, "", 0, math.MaxInt32)
			if err != nil {
				command.BadNumber(t, "invalid suffix length", f.Value, err)
				return 1
			}
			s.names.length, s.numbered = int(n), n > 0
			if n == 0 {
				s.names.length = 2
			} else {
				s.names.widen = false
			}
		case "additional-suffix":
			if strings.IndexByte(f.Value, '/') >= 0 {
				return splitSpec.Usage(t, "invalid suffix %s, contains directory separator", command.Quote(f.Value))
			}
			s.names.extra = f.Value
		case "b", "C", "l":
			if !choose(f.Key[0]) {
				return 1
			}
			unit, suffixes := "bytes", command.SizeSuffixes
			if f.Key == "l" {
				unit, suffixes = "lines", ""
			}
			n, err := command.ParseUintWithin(f.Value, suffixes, 1, math.MaxInt64)
			if err != nil {
				command.BadNumber(t, "invalid number of "+unit, f.Value, err)
				return 1
			}
			s.size = int64(n)
		case "n":
			if !choose('n') {
				return 1
			}
			if !s.chunks(f.Value) {
				return 1
			}
		case "d", "x", "numeric-suffixes", "hex-suffixes":
			s.names.digits = "0123456789"
			if f.Key == "x" || f.Key == "hex-suffixes" {
				s.names.digits = "0123456789abcdef"
			}
			if f.Given {
				if f.Value == "" || strings.Trim(f.Value, s.names.digits) != "" {
					what := "numerical"
					if len(s.names.digits) == 16 {
						what = "hexadecimal"
					}
					t.Errorf("%s: invalid start value for %s suffix", command.Quote(f.Value), what)
					_, _ = t.Write(2, []byte("Try 'split --help' for more information.\n"))
					return 1
				}
				s.names.start = strings.TrimLeft(f.Value[:len(f.Value)-1], "0") + f.Value[len(f.Value)-1:]
				s.names.widen = false
			}
		case "filter":
			s.filter = f.Value
		case "t":
			switch {
			case f.Value == "":
				t.Errorf("empty record separator")
				return 1
			case len(f.Value) > 1 && f.Value != `\0`:
				t.Errorf("multi-character separator %s", command.Quote(f.Value))
				return 1
			}
			sep := f.Value[0]
			if f.Value == `\0` {
				sep = 0
			}
			if separated && sep != s.sep {
				t.Errorf("multiple separator characters specified")
				return 1
			}
			s.sep, separated = sep, true
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			if given && digits == "" {
				return splitSpec.Usage(t, "cannot split in more than one way")
			}
			given = true
			digits += f.Key
		}
	}
	if digits != "" {
		n, err := command.ParseUintWithin(digits, "", 1, math.MaxInt64)
		if err != nil {
			command.BadNumber(t, "invalid number of lines", digits, err)
			return 1
		}
		s.kind, s.size = 'l', int64(n)
	}
	return 0
}

// chunks reads what -n takes: [l/|r/][K/]N.
func (s *splitter) chunks(text string) bool {
	rest := text
	s.kind = 'n'
	if strings.HasPrefix(rest, "l/") {
		s.kind, rest = 'N', rest[2:]
	} else if strings.HasPrefix(rest, "r/") {
		s.kind, rest = 'r', rest[2:]
	}
	k, n, ranged := strings.Cut(rest, "/")
	if !ranged {
		n, k = k, ""
	}
	v, err := command.ParseUintWithin(n, "", 1, math.MaxInt64)
	if err != nil {
		command.BadNumber(s.t, "invalid number of chunks", n, err)
		return false
	}
	s.size = int64(v)
	if ranged {
		v, err := command.ParseUintWithin(k, "", 1, uint64(s.size))
		if err != nil {
			command.BadNumber(s.t, "invalid chunk number", k, err)
			return false
		}
		s.chunk = int64(v)
	}
	return true
}

// lengths makes suffixes long enough for the pieces that there will be.
func (s *splitter) lengths() int {
	if s.kind != 'n' && s.kind != 'N' && s.kind != 'r' {
		return 0
	}
	base := int64(len(s.names.digits))
	last := s.size - 1
	if s.names.start != "" && base < 26 {
		var from int64
		for _, c := range s.names.start {
			from = from*base + int64(strings.IndexRune(s.names.digits, c))
			if from > math.MaxInt32 {
				break
			}
		}
		if from < s.size {
			last += from
		}
	}
	need := 1
	for n := last; n >= base; n /= base {
		need++
	}
	s.names.widen = false
	if s.numbered {
		if s.names.length < need {
			s.t.Errorf("the suffix length needs to be at least %d", need)
			return 1
		}
		return 0
	}
	s.names.length = max(2, need)
	return 0
}

func (s *splitter) run(name string) {
	switch s.kind {
	case 'l':
		s.byLines()
	case 'b':
		s.byBytes()
	case 'C':
		s.byLineBytes()
	case 'r':
		s.roundRobin()
	default:
		s.byNumber(name)
	}
}

// write writes to the piece that is open, or opens one.
func (s *splitter) write(b []byte, fresh bool) {
	if fresh || s.out == nil {
		s.closePiece()
		s.out = s.create()
	}
	s.put(s.out, b)
}

func (s *splitter) byLines() {
	left := int64(0)
	for b, ok := s.in.Piece(); ok; b, ok = s.in.Piece() {
		for len(b) > 0 {
			fresh := left == 0
			if fresh {
				left = s.size
			}
			end := 0
			for left > 0 {
				i := bytes.IndexByte(b[end:], s.sep)
				if i < 0 {
					end = len(b)
					break
				}
				end += i + 1
				left--
			}
			s.write(b[:end], fresh)
			b = b[end:]
			s.t.Step(1)
		}
	}
}

func (s *splitter) byBytes() {
	left := int64(0)
	for b, ok := s.in.Piece(); ok; b, ok = s.in.Piece() {
		for len(b) > 0 {
			fresh := left == 0
			if fresh {
				left = s.size
			}
			n := int(min(left, int64(len(b))))
			s.write(b[:n], fresh)
			left -= int64(n)
			b = b[n:]
			s.t.Step(1)
		}
	}
}

// byLineBytes puts whole lines into a piece as long as they fit; a line that
// is too long for one fills pieces of its own.
func (s *splitter) byLineBytes() {
	var used int64
	for {
		line, ok := s.in.Record(s.sep)
		if !ok {
			return
		}
		if used > 0 && used+int64(len(line)) > s.size {
			used = 0
		}
		for len(line) > 0 {
			n := int(min(s.size-used, int64(len(line))))
			s.write(line[:n], used == 0)
			used = (used + int64(n)) % s.size
			line = line[n:]
		}
	}
}

// byNumber makes a number of pieces of the same size, of bytes or of lines.
func (s *splitter) byNumber(name string) {
	var size int64
	if f, start, end, ok := seekable(s.in); ok && f != nil {
		size = end - start
	} else if i, err := s.in.Desc().File.Info(); err == nil && i.IsRegular() {
		size = 0
	} else {
		s.t.Errorf("%s: cannot determine file size", command.QuoteFile(name))
		s.t.Exit(1)
	}
	next := func(n int64) []byte { return s.in.Next(int(min(n, 64<<10))) }
	chunk := max(1, size/s.size)
	var done int64
	bound := func(i int64) int64 { // where piece i ends
		switch {
		case i >= s.size:
			return size
		}
		return min(size, i*chunk)
	}
	if s.kind == 'n' {
		for i := int64(1); i <= s.size; i++ {
			if s.chunk > 0 && i > s.chunk {
				return
			}
			s.begin(done < bound(i))
			for done < bound(i) {
				b := next(bound(i) - done)
				if len(b) == 0 {
					return
				}
				done += int64(len(b))
				s.piece(i, b)
			}
		}
		return
	}
	// A line belongs to the piece in which it begins.
	i := int64(1)
	s.begin(size > 0)
	var rest []byte
	inside := false
	for {
		if len(rest) == 0 {
			if rest = next(64 << 10); len(rest) == 0 {
				break
			}
		}
		s.t.Step(1)
		if !inside {
			for i < s.size && done >= bound(i) {
				i++
				s.begin(done < bound(i) || i == s.size)
			}
		}
		k := bytes.IndexByte(rest, s.sep)
		inside = k < 0
		n := k + 1
		if k < 0 {
			n = len(rest)
		}
		s.piece(i, rest[:n])
		done += int64(n)
		rest = rest[n:]
	}
	for i < s.size {
		i++
		s.begin(false)
	}
}

// begin begins a piece of -n; filled says that something will be in it.
func (s *splitter) begin(filled bool) {
	s.t.Step(1)
	if s.chunk > 0 || s.elide && !filled {
		if s.elide {
			s.closePiece()
		}
		return
	}
	s.closePiece()
	s.out = s.create()
}

func (s *splitter) piece(i int64, b []byte) {
	if s.chunk == 0 {
		s.write(b, false)
		return
	}
	if i == s.chunk {
		command.Stdout(s.t).Bytes(b)
	}
}

// mostOpen is how many pieces are open at once at most.
const mostOpen = 4096

// roundRobin deals out the lines.
func (s *splitter) roundRobin() {
	if s.chunk == 0 {
		if s.size > mostOpen {
			s.t.Errorf("%s", reason(linux.EMFILE))
			s.t.Exit(1)
		}
		for range s.size {
			if s.elide {
				break
			}
			s.outputs = append(s.outputs, s.create())
		}
	}
	w := command.Stdout(s.t)
	for i := int64(0); ; i = (i + 1) % s.size {
		line, ok := s.in.Record(s.sep)
		if !ok {
			return
		}
		if s.chunk > 0 {
			if i == s.chunk-1 {
				w.Bytes(line)
			}
			continue
		}
		if i >= int64(len(s.outputs)) {
			s.outputs = append(s.outputs, s.create())
		}
		s.put(s.outputs[i], line)
	}
}
