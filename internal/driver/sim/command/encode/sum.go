package encode

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/stream"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// A digest is a kind of checksum: its name in a tagged line, and how long it
// is. Those without new are of cksum alone.
type digest struct {
	name string // as -a has it
	tag  string
	new  func() hash.Hash
	bits int
}

func digestOf(name string) *digest {
	switch name {
	case "md5":
		return &digest{name, "MD5", md5.New, 128}
	case "sha1":
		return &digest{name, "SHA1", sha1.New, 160}
	case "sha224":
		return &digest{name, "SHA224", sha256.New224, 224}
	case "sha256":
		return &digest{name, "SHA256", sha256.New, 256}
	case "sha384":
		return &digest{name, "SHA384", sha512.New384, 384}
	case "sha512":
		return &digest{name, "SHA512", sha512.New, 512}
	case "sm3":
		return &digest{name, "SM3", newSM3, 256}
	case "blake2b":
		return blake(512)
	case "crc", "bsd", "sysv":
		return &digest{name: name}
	}
	return nil
}

func blake(bits int) *digest {
	tag := "BLAKE2b"
	if bits != 512 {
		tag += "-" + strconv.Itoa(bits)
	}
	return &digest{"blake2b", tag, func() hash.Hash {
		h, err := blake2b.New(bits/8, nil)
		if err != nil {
			panic(err) // the size was looked at
		}
		return h
	}, bits}
}

func sumOptions(name string) []command.Option {
	list := []command.Option{}
	switch name {
	case "cksum":
		list = append(list,
			command.Option{Short: 'a', Long: "algorithm", Arg: command.Required, Name: "TYPE", Help: "select the digest type to use: sysv, bsd, crc, md5, sha1, sha224, sha256, sha384, sha512, blake2b, sm3"},
			command.Option{Long: "debug", Help: "indicate which implementation used"},
			command.Option{Short: 'b'}, command.Option{Short: 't'},
			command.Option{Long: "untagged", Help: "create a reversed style checksum, without digest type"})
	case "sum":
		return []command.Option{
			{Short: 'r', Help: "use BSD sum algorithm (the default), use 1K blocks"},
			{Short: 's', Long: "sysv", Help: "use System V sum algorithm, use 512 bytes blocks"},
		}
	default:
		list = append(list,
			command.Option{Short: 'b', Long: "binary", Help: "read in binary mode"},
			command.Option{Short: 't', Long: "text", Help: "read in text mode (default)"})
	}
	if name == "cksum" || name == "b2sum" {
		list = append(list, command.Option{Short: 'l', Long: "length", Arg: command.Required, Name: "BITS", Help: "digest length in bits; must not exceed the max for the blake2 algorithm and must be a multiple of 8"})
	}
	return append(list,
		command.Option{Short: 'c', Long: "check", Help: "read checksums from the FILEs and check them"},
		command.Option{Long: "tag", Help: "create a BSD-style checksum"},
		command.Option{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline, and disable file name escaping"},
		command.Option{Long: "ignore-missing", Help: "don't fail or report status for missing files"},
		command.Option{Long: "quiet", Help: "don't print OK for each successfully verified file"},
		command.Option{Long: "status", Help: "don't output anything, status code shows success"},
		command.Option{Long: "strict", Help: "exit non-zero for improperly formatted checksum lines"},
		command.Option{Short: 'w', Long: "warn", Help: "warn about improperly formatted checksum lines"})
}

// The forms of lines to check must not be mixed: the name of a file could
// begin with a blank.
const (
	standard = iota + 1 // "SUM  NAME" or "SUM *NAME"
	reversed            // "SUM NAME"
)

// A summer is what was asked for.
type summer struct {
	t    *proc.Task
	w    *stream.Writer
	tool string
	d    *digest
	form int // of the lines so far

	binary, tag, zero, untagged                bool
	ignoreMissing, quiet, silent, strict, warn bool
	any                                        bool // cksum -c without -a: lines name the kind
}

func runSum(t *proc.Task) int {
	tool := t.Name()
	spec := command.Spec{Name: tool, Synopsis: "[OPTION]... [FILE]...", About: "Print or check checksums.", Options: sumOptions(tool)}
	s := &summer{t: t, w: stream.Out(t), tool: tool}
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	name := strings.TrimSuffix(tool, "sum")
	switch tool {
	case "b2sum":
		name = "blake2b"
	case "cksum":
		name = "crc"
	case "sum":
		name = "bsd"
	}
	text, length := false, ""
	for _, f := range a.Flags {
		switch f.Key {
		case "a":
			list := []string{"bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3"}
			if !slices.Contains(list, f.Value) {
				return operand.Choose(t, &spec, "--algorithm", f.Value, operand.ErrUnknown, list)
			}
			name = f.Value
		case "b", "t":
			if tool == "cksum" {
				_, _ = t.Write(2, []byte("Try 'cksum --help' for more information.\n"))
				return 1
			}
			s.binary, text = f.Key == "b", f.Key == "t"
		case "quiet", "status", "w":
			s.quiet, s.silent, s.warn = f.Key == "quiet", f.Key == "status", f.Key == "w"
		case "tag":
			s.tag = true
			if tool != "cksum" {
				s.binary = true
			}
			s.untagged = false
		case "untagged":
			s.untagged = true
		case "l":
			length = f.Value
		case "r":
			name = "bsd"
		case "s":
			name = "sysv"
		}
	}
	s.d = digestOf(name)
	s.zero, s.ignoreMissing, s.strict = a.Has("z"), a.Has("ignore-missing"), a.Has("strict")
	check := a.Has("c")
	if tool == "cksum" {
		s.tag = !s.untagged
		s.any = check && !a.Has("a")
	}
	if length != "" {
		if status := s.length(length, name); status != 0 {
			return status
		}
	}
	switch {
	case tool == "cksum" && check && a.Has("a") && s.d.new == nil:
		t.Errorf("--check is not supported with --algorithm={bsd,sysv,crc}")
		return 1
	case tool != "cksum" && s.tag && text:
		return spec.Usage(t, "--tag does not support --text mode")
	case s.zero && check:
		return spec.Usage(t, "the --zero option is not supported when verifying checksums")
	case tool != "cksum" && s.tag && check:
		return spec.Usage(t, "the --tag option is meaningless when verifying checksums")
	case check && tool != "cksum" && (a.Has("b") || a.Has("t")):
		return spec.Usage(t, "the --binary and --text options are meaningless when verifying checksums")
	}
	if !check {
		for _, o := range []struct {
			on   bool
			name string
		}{{s.ignoreMissing, "ignore-missing"}, {s.silent, "status"}, {s.warn, "warn"}, {s.quiet, "quiet"}, {s.strict, "strict"}} {
			if o.on {
				return spec.Usage(t, "the --%s option is meaningful only when verifying checksums", o.name)
			}
		}
	}
	status = 0
	names := stream.Names(a.Operands)
	for _, name := range names {
		ok := false
		if check {
			ok = s.check(name)
		} else {
			ok = s.file(name, len(a.Operands))
		}
		if !ok {
			status = 1
		}
	}
	return status
}

func (s *summer) length(text, name string) int {
	n, err := operand.Uint(text, "")
	if err != nil {
		operand.Invalid(s.t, "invalid length", text, err)
		return 1
	}
	if n%8 != 0 {
		s.t.Errorf("invalid length: %s", operand.Quote(text))
		s.t.Errorf("length is not a multiple of 8")
		return 1
	}
	if s.tool == "cksum" && name != "blake2b" {
		s.t.Errorf("--length is only supported with --algorithm=blake2b")
		return 1
	}
	if n > 512 {
		s.t.Errorf("invalid length: %s", operand.Quote(text))
		s.t.Errorf("maximum digest length for %s is 512 bits", operand.Quote("BLAKE2b"))
		return 1
	}
	if n != 0 {
		s.d = blake(int(n))
	}
	return 0
}

// file shows the checksum of a file.
func (s *summer) file(name string, operands int) bool {
	return stream.Each(s.t, []string{name}, func(_ string, r *stream.Reader) {
		switch s.d.name {
		case "crc", "bsd", "sysv":
			s.short(r, name, operands)
			return
		}
		h := s.d.new()
		if !feed(h, r) {
			return
		}
		s.line(hex.EncodeToString(h.Sum(nil)), name)
	}) == 0
}

// feed reads everything into a hash.
func feed(h hash.Hash, r *stream.Reader) bool {
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		_, _ = h.Write(b)
	}
	return r.Err() == nil
}

func (s *summer) line(sum, name string) {
	end := byte('\n')
	escaped := name
	if s.zero {
		end = 0
	} else if escaped = escapeName(name); escaped != name {
		s.w.Byte('\\')
	}
	switch {
	case s.tag:
		s.w.String(s.d.tag + " (" + escaped + ") = " + sum)
	case s.binary:
		s.w.String(sum + " *" + escaped)
	default:
		s.w.String(sum + "  " + escaped)
	}
	s.w.Byte(end)
}

func escapeName(name string) string {
	if !strings.ContainsAny(name, "\\\n\r") {
		return name
	}
	name = strings.ReplaceAll(name, `\`, `\\`)
	name = strings.ReplaceAll(name, "\n", `\n`)
	return strings.ReplaceAll(name, "\r", `\r`)
}

// short shows the checksums of old, with the size.
func (s *summer) short(r *stream.Reader, name string, operands int) {
	var n, sum uint64
	crc := posixCRC{}
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		n += uint64(len(b))
		switch s.d.name {
		case "crc":
			crc.write(b)
		case "bsd":
			x := uint16(sum)
			for _, c := range b {
				x = x>>1 + x<<15 + uint16(c)
			}
			sum = uint64(x)
		case "sysv":
			for _, c := range b {
				sum += uint64(c)
			}
		}
	}
	if r.Err() != nil {
		return
	}
	switch s.d.name {
	case "crc":
		s.w.Printf("%d %d", crc.sum(n), n)
		if operands > 0 {
			s.w.String(" " + name)
		}
	case "bsd":
		s.w.Printf("%05d %5d", sum, (n+1023)/1024)
		if operands > 0 {
			s.w.String(" " + name)
		}
	case "sysv":
		x := sum&0xffff + sum&0xffffffff>>16
		s.w.Printf("%d %d", x&0xffff+x>>16, (n+511)/512)
		if operands > 0 {
			s.w.String(" " + name)
		}
	}
	if s.zero {
		s.w.Byte(0)
	} else {
		s.w.Byte('\n')
	}
}

// posixCRC is the checksum of POSIX cksum: CRC-32 from the highest bit on,
// with the length behind the data. It is the usual CRC-32 of the bytes with
// their bits turned round.
type posixCRC struct {
	crc    uint32
	begun  bool
	turned []byte
}

func (c *posixCRC) write(b []byte) {
	if !c.begun {
		c.begun, c.crc = true, 1<<32-1
	}
	c.turned = append(c.turned[:0], b...)
	for i, x := range c.turned {
		c.turned[i] = bits.Reverse8(x)
	}
	c.crc = crc32.Update(c.crc, crc32.IEEETable, c.turned)
}

func (c *posixCRC) sum(n uint64) uint32 {
	c.write(nil)
	for ; n > 0; n >>= 8 {
		c.write([]byte{byte(n)})
	}
	return ^bits.Reverse32(^c.crc)
}

var crc32Spec = command.Spec{Name: "crc32", Synopsis: "[FILE]...", About: "Print the CRC-32 of each FILE."}

func runCRC32(t *proc.Task) int {
	a, status, ok := crc32Spec.Parse(t)
	if !ok {
		return status
	}
	w := stream.Out(t)
	return stream.Each(t, stream.Names(a.Operands), func(name string, r *stream.Reader) {
		h := crc32.NewIEEE()
		if !feed(h, r) {
			return
		}
		w.Printf("%08x", h.Sum32())
		if len(a.Operands) > 1 {
			w.String("\t" + name)
		}
		w.Byte('\n')
	})
}

// check reads checksums from a file and looks whether they are right.
func (s *summer) check(list string) bool {
	r, err := stream.Open(s.t, list)
	if err != nil {
		operand.Fail(s.t, list, err)
		return false
	}
	defer r.Close()
	shown := list
	if list == "-" {
		shown = "standard input"
	}
	var c checking
	for number := 1; ; number++ {
		line, _, ok := r.Line('\n')
		if !ok {
			break
		}
		if len(line) > 0 && line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			continue
		}
		d, sum, name, ok := s.parse(string(line))
		if !ok || list == "-" && name == "-" {
			c.wrong++
			if s.warn {
				s.t.Errorf("%s: %d: improperly formatted %s checksum line", operand.File(shown), number, s.kind())
			}
			continue
		}
		c.right++
		s.verify(&c, d, sum, name)
	}
	if r.Err() != nil {
		s.t.Errorf("%s: read error", operand.File(shown))
		return false
	}
	return s.report(&c, shown)
}

// checking counts what was found.
type checking struct{ right, wrong, unread, mismatched, matched int }

func (s *summer) kind() string {
	if s.any {
		return "CRC"
	}
	tag, _, _ := strings.Cut(s.d.tag, "-")
	return tag
}

func (s *summer) verify(c *checking, d *digest, sum, name string) {
	r, err := stream.Open(s.t, name)
	if err != nil {
		if s.ignoreMissing && reason(err) == "No such file or directory" {
			return
		}
		operand.Fail(s.t, name, err)
		c.unread++
		s.verdict(name, "FAILED open or read")
		return
	}
	defer r.Close()
	h := d.new()
	if !feed(h, r) {
		operand.Fail(s.t, name, r.Err())
		c.unread++
		s.verdict(name, "FAILED open or read")
		return
	}
	if strings.EqualFold(hex.EncodeToString(h.Sum(nil)), sum) {
		c.matched++
		if !s.quiet {
			s.verdict(name, "OK")
		}
		return
	}
	c.mismatched++
	s.verdict(name, "FAILED")
}

func (s *summer) verdict(name, word string) {
	if s.silent {
		return
	}
	if strings.IndexByte(name, '\n') >= 0 {
		s.w.Byte('\\')
		name = escapeName(name)
	}
	s.w.String(name + ": " + word + "\n")
}

func (s *summer) report(c *checking, list string) bool {
	if c.right == 0 {
		s.t.Errorf("%s: no properly formatted checksum lines found", operand.File(list))
		return false
	}
	tell := func(n int, one, many string) {
		if n == 1 {
			s.t.Errorf("WARNING: 1 "+one, []any{}...)
		} else if n > 1 {
			s.t.Errorf("WARNING: %d "+many, n)
		}
	}
	if !s.silent {
		tell(c.wrong, "line is improperly formatted", "lines are improperly formatted")
		tell(c.unread, "listed file could not be read", "listed files could not be read")
		tell(c.mismatched, "computed checksum did NOT match", "computed checksums did NOT match")
		if s.ignoreMissing && c.matched == 0 {
			s.t.Errorf("%s: no file was verified", operand.File(list))
		}
	}
	return c.mismatched == 0 && c.unread == 0 && (!s.strict || c.wrong == 0) && (!s.ignoreMissing || c.matched > 0)
}

// parse reads a line of checksums: "SUM  NAME", "SUM *NAME", "KIND (NAME) =
// SUM", or the reversed form of BSD, "SUM NAME".
func (s *summer) parse(line string) (d *digest, sum, name string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	escaped := strings.HasPrefix(line, `\`)
	if escaped {
		line = line[1:]
	}
	d = s.d
	if d2, rest, tagged := s.tagged(line); tagged {
		if d2 == nil {
			return nil, "", "", false
		}
		open := strings.IndexByte(rest, '(')
		end := strings.LastIndexByte(rest, ')')
		if open < 0 || end < open {
			return nil, "", "", false
		}
		name = rest[open+1 : end]
		rest = strings.TrimLeft(rest[end+1:], " \t")
		if !strings.HasPrefix(rest, "=") {
			return nil, "", "", false
		}
		sum = strings.TrimLeft(rest[1:], " \t")
		if !isHex(sum) || len(sum) != d2.bits/4 {
			return nil, "", "", false
		}
		d = d2
	} else {
		if s.any || d.new == nil {
			return nil, "", "", false
		}
		n := 0
		for n < len(line) && isHexDigit(line[n]) {
			n++
		}
		if d.name == "blake2b" {
			if n == 0 || n%2 != 0 || n > 128 {
				return nil, "", "", false
			}
			d = blake(n * 4)
		}
		if n != d.bits/4 || n == len(line) || line[n] != ' ' && line[n] != '\t' {
			return nil, "", "", false
		}
		sum = line[:n]
		name = line[n+1:]
		if name == "" {
			return nil, "", "", false
		}
		if len(name) == 1 || name[0] != ' ' && name[0] != '*' {
			if s.form == standard {
				return nil, "", "", false
			}
			s.form = reversed
		} else if s.form != reversed {
			s.form = standard
			name = name[1:]
		}
	}
	if escaped {
		if name, ok = unescapeName(name); !ok {
			return nil, "", "", false
		}
	}
	return d, sum, name, name != ""
}

// tagged recognizes a line that begins with the name of a kind. The kind is
// nil if it is not the one that is checked.
func (s *summer) tagged(line string) (d *digest, rest string, ok bool) {
	for _, name := range []string{"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sm3", "blake2b"} {
		k := digestOf(name)
		rest, ok := strings.CutPrefix(line, k.tag)
		if !ok {
			continue
		}
		if !s.any && s.d.name != name {
			return nil, "", true
		}
		if name == "blake2b" && strings.HasPrefix(rest, "-") {
			digits := rest[1:]
			n := 0
			for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
				n++
			}
			bits, err := strconv.Atoi(digits[:n])
			if err != nil || bits == 0 || bits%8 != 0 || bits > 512 {
				return nil, "", true
			}
			k, rest = blake(bits), digits[n:]
		}
		trimmed := strings.TrimPrefix(rest, " ")
		if !strings.HasPrefix(trimmed, "(") {
			continue
		}
		return k, trimmed, true
	}
	return nil, "", false
}

func unescapeName(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case '\\':
			b.WriteByte('\\')
		default:
			return "", false
		}
	}
	return b.String(), true
}

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isHex(s string) bool {
	for i := range len(s) {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
