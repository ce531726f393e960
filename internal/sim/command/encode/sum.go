package encode

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
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
	t    *kernel.Task
	w    *command.Writer
	tool string
	d    *digest
	form int // of the lines so far

	binary, tag, zero, untagged                bool
	ignoreMissing, quiet, silent, strict, warn bool
	any                                        bool // cksum -c without -a: lines name the kind
}

func runSum(t *kernel.Task) int {
	tool := t.Name()
	spec := command.Spec{Name: tool, Synopsis: "[OPTION]... [FILE]...", About: "Print or check checksums.", Options: sumOptions(tool)}
	s := &summer{t: t, w: command.Stdout(t), tool: tool}
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
				return command.BadChoice(t, &spec, "--algorithm", f.Value, command.ErrUnknown, list)
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
	names := command.InputNames(a.Operands)
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
	n, err := command.ParseUint(text, "")
	if err != nil {
		command.BadNumber(s.t, "invalid length", text, err)
		return 1
	}
	if n%8 != 0 {
		s.t.Errorf("invalid length: %s", command.Quote(text))
		s.t.Errorf("length is not a multiple of 8")
		return 1
	}
	if s.tool == "cksum" && name != "blake2b" {
		s.t.Errorf("--length is only supported with --algorithm=blake2b")
		return 1
	}
	if n > 512 {
		s.t.Errorf("invalid length: %s", command.Quote(text))
		s.t.Errorf("maximum digest length for %s is 512 bits", command.Quote("BLAKE2b"))
		return 1
	}
	if n != 0 {
		s.d = blake(int(n))
	}
	return 0
}

// file shows the checksum of a file.
func (s *summer) file(name string, operands int) bool {
	return command.EachFile(s.t, []string{name}, func(_ string, r *command.Reader) {
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
func feed(h hash.Hash, r *command.Reader) bool {
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
func (s *summer) short(r *command.Reader, name string, operands int) {
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
