package file

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var fileSpec = &command.Spec{
	Name: "file", Synopsis: "[OPTION...] [FILE...]", About: "Determine type of FILEs.",
	Options: []command.Option{
		{Short: 'b', Long: "brief", Help: "do not prepend filenames to output lines"}, {Short: 'i', Long: "mime", Help: "output MIME type strings (--mime-type and --mime-encoding)"},
		{Long: "mime-type", Help: "output the MIME type"}, {Long: "mime-encoding", Help: "output the MIME encoding"}, {Short: 'L', Long: "dereference", Help: "follow symlinks"}, {Short: 'h', Long: "no-dereference", Help: "don't follow symlinks (default)"},
		{Short: 'f', Long: "files-from", Arg: command.Required, Name: "FILE", Help: "read the filenames to be examined from FILE"}, {Short: 'F', Long: "separator", Arg: command.Required, Name: "STRING", Help: "use string as separator instead of ':'"},
		{Short: 'N', Long: "no-pad", Help: "do not pad output"}, {Short: '0', Long: "print0", Help: "terminate filenames with ASCII NUL"}, {Short: 'k', Long: "keep-going", Help: "(ignored)"}, {Short: 'z', Long: "uncompress", Help: "(ignored)"}, {Short: 's', Long: "special-files", Help: "treat special files as ordinary ones"},
		{Short: 'r', Long: "raw", Help: "don't translate unprintable chars"}, {Short: 'n', Long: "no-buffer", Help: "do not buffer output"}, {Short: 'p', Long: "preserve-date", Help: "(ignored)"}, {Short: 'E', Help: "exit at the first error"}, {Short: 'e', Long: "exclude", Arg: command.Required, Name: "TEST", Help: "(ignored)"}, {Short: 'm', Long: "magic-file", Arg: command.Required, Name: "LIST", Help: "(ignored)"}, {Long: "extension", Help: "(ignored)"},
	},
}

// A verdict is what a file is.
type verdict struct{ text, mime, charset string }

// looked is how much of a file is looked at.
const looked = 1 << 20

func runFile(t *kernel.Task) int {
	a, status, ok := fileSpec.Parse(t)
	if !ok {
		return status
	}
	names := a.Operands
	if from, given := a.Value("f"); given {
		b, err := command.ReadAll(t, from)
		if err != nil {
			t.Errorf("Cannot open `%s' (%s)", from, reason(err))
			return 1
		}
		list := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		names = append(list, names...)
	}
	if len(names) == 0 {
		_, _ = t.Write(2, []byte("Usage: file [-bcCdEhikLlNnprsSvzZ0] [--apple] [--extension] [--mime-encoding]\n            [--mime-type] [-e <testname>] [-F <separator>]  [-f <namefile>]\n            [-m <magicfiles>] [-P <parameter=value>] [--exclude-quiet]\n            <file> ...\n       file -C [-m <magicfiles>]\n       file [--help]\n"))
		return 1
	}
	width := 0
	for _, n := range names {
		width = max(width, columnsOf(n))
	}
	sep := ":"
	if s, given := a.Value("F"); given {
		sep = s
	}
	follow := a.Has("L") || t.Getenv("POSIXLY_CORRECT") != ""
	for _, f := range a.Flags {
		if f.Key == "L" || f.Key == "h" {
			follow = f.Key == "L"
		}
	}
	for _, n := range names {
		v := judge(t, n, follow, a.Has("s"))
		text := v.text
		if strings.HasPrefix(text, "cannot open") {
			if a.Has("E") {
				status = 1
			}
		} else {
			switch {
			case a.Has("i"):
				text = v.mime
				if !strings.HasPrefix(v.text, "broken") {
					text += "; charset=" + v.charset
				}
			case a.Has("mime-type"):
				text = v.mime
			case a.Has("mime-encoding"):
				text = v.charset
			}
		}
		if !a.Has("b") {
			pad := strings.Repeat(" ", width-columnsOf(n)+1)
			if a.Has("N") {
				pad = " "
			}
			shown := n
			if n == "-" {
				shown, pad = "/dev/stdin", " "
			}
			if a.Has("0") {
				text = shown + "\x00" + sep + pad + text
			} else {
				text = shown + sep + pad + text
			}
		}
		say(t, text)
	}
	return status
}

// judge tells what a file is.
func judge(t *kernel.Task, name string, follow, special bool) verdict {
	var i vfs.Info
	var err error
	if name != "-" {
		if i, err = t.View.Lstat(name); err == nil && i.IsLink() {
			target, rerr := t.View.Readlink(name)
			to, serr := t.View.Stat(name)
			switch {
			case rerr == nil && serr != nil:
				return verdict{"broken symbolic link to " + target, "inode/symlink", "binary"}
			case !follow:
				return verdict{"symbolic link to " + target, "inode/symlink", "binary"}
			}
			i = to
		}
		if _, own := kernel.OwnFD(name); own {
			i, err = command.Stat(t, name)
		}
		if err != nil {
			return verdict{text: "cannot open `" + name + "' (" + reason(err) + ")"}
		}
		bits := ""
		if i.Mode&linux.S_ISUID != 0 {
			bits += "setuid, "
		}
		if i.Mode&linux.S_ISGID != 0 {
			bits += "setgid, "
		}
		if i.Mode&linux.S_ISVTX != 0 {
			bits += "sticky, "
		}
		node := func(text, mime string) verdict { return verdict{bits + text, "inode/" + mime, "binary"} }
		switch i.Mode & linux.S_IFMT {
		case linux.S_IFDIR:
			return node("directory", "directory")
		case linux.S_IFIFO:
			if !special {
				return node("fifo (named pipe)", "fifo")
			}
		case linux.S_IFSOCK:
			return node("socket", "socket")
		case linux.S_IFCHR:
			if !special {
				return node(fmt.Sprintf("character special (%d/%d)", i.Rdev>>8&0xfff, i.Rdev&0xff), "chardevice")
			}
		case linux.S_IFBLK:
			if !special {
				return node(fmt.Sprintf("block special (%d/%d)", i.Rdev>>8&0xfff, i.Rdev&0xff), "blockdevice")
			}
		}
	}
	in, err := command.Open(t, name)
	if err != nil {
		if err == linux.EACCES {
			return verdict{"regular file, no read permission", "inode/x-empty", "binary"}
		}
		return verdict{text: "cannot open `" + name + "' (" + reason(err) + ")"}
	}
	defer in.Close()
	b := make([]byte, 0, 64<<10)
	t.Grow(looked)
	defer t.Shrink(looked)
	for len(b) < looked {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := in.Read(b[len(b):min(cap(b), looked)])
		b = b[:len(b)+n]
		if err != nil {
			break
		}
	}
	t.Step(len(b) >> 4)
	if len(b) == 0 {
		return verdict{"empty", "inode/x-empty", "binary"}
	}
	return content(b, i.Size)
}

// content tells what bytes are.
func content(b []byte, length int64) verdict {
	if v, ok := binaryKind(b, length); ok {
		if charset, _, isText := charsetOf(b); isText {
			v.charset = charset
		}
		return v
	}
	return text(b)
}

func le16(b []byte, at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }

func binaryKind(b []byte, length int64) (verdict, bool) {
	has := func(at int, s string) bool { return len(b) >= at+len(s) && string(b[at:at+len(s)]) == s }
	is := func(text, mime string) (verdict, bool) { return verdict{text, mime, "binary"}, true }
	switch {
	case has(0, "\x7fELF") && len(b) >= 64:
		return is(elf(b), elfMime(b))
	case has(0, kernel.Marker):
		return is("Paddock program", "application/x-executable")
	case has(0, "\x1f\x8b") && len(b) >= 10:
		return is(gzipText(b, length), "application/gzip")
	case has(0, "PK\x03\x04") && len(b) > 30:
		return zipKind(b)
	case has(0, "PK\x05\x06"):
		return is("Zip archive data (empty)", "application/zip")
	case has(0, "BZh"):
		return is(fmt.Sprintf("bzip2 compressed data, block size = %c00k", b[min(3, len(b)-1)]), "application/x-bzip2")
	case has(0, "\xfd7zXZ\x00"):
		check := ""
		if len(b) > 7 {
			check = map[byte]string{0: "no checksum", 1: "checksum CRC32", 4: "checksum CRC64", 10: "checksum SHA-256"}[b[7]&15]
		}
		return is("XZ compressed data, "+check, "application/x-xz")
	case has(0, "\x28\xb5\x2f\xfd"):
		return is("Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd")
	case has(0, "7z\xbc\xaf\x27\x1c") && len(b) > 8:
		return is(fmt.Sprintf("7-zip archive data, version %d.%d", b[6], b[7]), "application/x-7z-compressed")
	case has(0, "\x89PNG\r\n\x1a\n") && len(b) >= 29:
		kinds := map[byte]string{0: "grayscale", 2: "/color RGB", 3: " colormap", 4: "gray+alpha", 6: "/color RGBA"}
		lace := "non-interlaced"
		if b[28] == 1 {
			lace = "interlaced"
		}
		kind := kinds[b[25]]
		if b[25] == 0 || b[25] == 4 {
			kind = " " + kind
		}
		return is(fmt.Sprintf("PNG image data, %d x %d, %d-bit%s, %s", binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:]), b[24], kind, lace), "image/png")
	case has(0, "\xff\xd8\xff"):
		return is("JPEG image data"+jfif(b), "image/jpeg")
	case has(0, "GIF8") && len(b) >= 10:
		return is(fmt.Sprintf("GIF image data, version %s, %d x %d", b[3:6], le16(b, 6), le16(b, 8)), "image/gif")
	case has(0, "RIFF") && has(8, "WEBP"):
		return is("RIFF (little-endian) data, Web/P image", "image/webp")
	case has(0, "RIFF") && has(8, "WAVE"):
		return is("RIFF (little-endian) data, WAVE audio", "audio/x-wav")
	case has(0, "BM") && len(b) >= 30 && le16(b, 14) == 40:
		return is(fmt.Sprintf("PC bitmap, Windows 3.x format, %d x %d x %d", binary.LittleEndian.Uint32(b[18:]), binary.LittleEndian.Uint32(b[22:]), le16(b, 28)), "image/bmp")
	case has(0, "%PDF-") && len(b) >= 8:
		return is("PDF document, version "+string(b[5:8]), "application/pdf")
	case has(0, "SQLite format 3\x00") && len(b) >= 100:
		v := binary.BigEndian.Uint32(b[96:])
		return is(fmt.Sprintf("SQLite 3.x database, last written using SQLite version %d, file counter %d, database pages %d, cookie 0x%x, schema %d, %s, version-valid-for %d", v, binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:]), binary.BigEndian.Uint32(b[40:]), binary.BigEndian.Uint32(b[44:]), map[byte]string{1: "UTF-8", 2: "UTF-16 little endian", 3: "UTF-16 big endian"}[b[59]], binary.BigEndian.Uint32(b[92:])), "application/vnd.sqlite3")
	case has(0, "\x00asm") && len(b) >= 8:
		return is(fmt.Sprintf("WebAssembly (wasm) binary module version %#x (MVP)", binary.LittleEndian.Uint32(b[4:])), "application/wasm")
	case has(257, "ustar\x00"):
		return is("POSIX tar archive", "application/x-tar")
	case has(257, "ustar  \x00"):
		return is("POSIX tar archive (GNU)", "application/x-tar")
	case has(0, "!<arch>\n"):
		return is("current ar archive", "application/x-archive")
	case has(0, "070701"):
		return is("ASCII cpio archive (SVR4 with no CRC)", "application/x-cpio")
	case has(0, "OggS"):
		return is("Ogg data", "application/ogg")
	case has(0, "ID3"):
		return is("Audio file with ID3 version 2", "audio/mpeg")
	case has(0, "fLaC"):
		return is("FLAC audio bitstream data", "audio/flac")
	case has(4, "ftyp"):
		return is("ISO Media, MP4 Base Media v1 [ISO 14496-12:2003]", "video/mp4")
	case has(0, "\x1aE\xdf\xa3"):
		return is("Matroska data", "video/x-matroska")
	case has(0, "MZ"):
		return is("MS-DOS executable", "application/x-dosexec")
	case has(0, "\xca\xfe\xba\xbe") && len(b) >= 8:
		return is(fmt.Sprintf("compiled Java class data, version %d.%d", binary.BigEndian.Uint16(b[6:]), binary.BigEndian.Uint16(b[4:])), "application/x-java-applet")
	}
	return verdict{}, false
}

func gzipText(b []byte, length int64) string {
	s := "gzip compressed data"
	at := 10
	if b[3]&4 != 0 && len(b) > at+2 {
		at += 2 + le16(b, at)
	}
	if b[3]&8 != 0 && at < len(b) {
		if n := bytes.IndexByte(b[at:], 0); n >= 0 {
			s += fmt.Sprintf(", was \"%s\"", b[at:at+n])
		}
	}
	if m := binary.LittleEndian.Uint32(b[4:]); m != 0 {
		s += ", last modified: " + time.Unix(int64(m), 0).UTC().Format("Mon Jan _2 15:04:05 2006")
	}
	switch b[8] {
	case 2:
		s += ", max compression"
	case 4:
		s += ", max speed"
	}
	names := []string{"FAT filesystem (MS-DOS, OS/2, NT)", "Amiga", "VMS", "Unix", "VM/CMS", "Atari TOS", "HPFS filesystem (OS/2, NT)", "MacOS", "Z-System", "CP/M", "TOPS/20", "NTFS filesystem (NT)"}
	if int(b[9]) < len(names) {
		s += ", from " + names[b[9]]
	}
	if length == int64(len(b)) && len(b) >= 18 {
		s += fmt.Sprintf(", original size modulo 2^32 %d", binary.LittleEndian.Uint32(b[len(b)-4:]))
	}
	return s
}

func zipKind(b []byte) (verdict, bool) {
	n := le16(b, 26)
	name := ""
	if len(b) >= 30+n {
		name = string(b[30 : 30+n])
	}
	switch {
	case name == "mimetype" && bytes.HasPrefix(b[30+n:], []byte("application/epub+zip")):
		return verdict{"EPUB document", "application/epub+zip", "binary"}, true
	case name == "[Content_Types].xml" || strings.HasPrefix(name, "_rels/"):
		switch {
		case bytes.Contains(b, []byte("word/")):
			return verdict{"Microsoft Word 2007+", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "binary"}, true
		case bytes.Contains(b, []byte("xl/")):
			return verdict{"Microsoft Excel 2007+", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "binary"}, true
		case bytes.Contains(b, []byte("ppt/")):
			return verdict{"Microsoft PowerPoint 2007+", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "binary"}, true
		}
	case strings.HasPrefix(name, "META-INF/"):
		return verdict{"Java archive data (JAR)", "application/java-archive", "binary"}, true
	}
	method := map[int]string{0: "store", 8: "deflate", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}[le16(b, 8)]
	v := le16(b, 4) & 0xff
	return verdict{fmt.Sprintf("Zip archive data, at least v%d.%d to extract, compression method=%s", v/10, v%10, method), "application/zip", "binary"}, true
}

func jfif(b []byte) string {
	if len(b) >= 18 && string(b[6:10]) == "JFIF" {
		s := fmt.Sprintf(", JFIF standard %d.%02d", b[11], b[12])
		switch b[13] {
		case 0:
			s += ", aspect ratio"
		case 1:
			s += ", resolution (DPI)"
		case 2:
			s += ", resolution (DPCM)"
		}
		s += fmt.Sprintf(", density %dx%d, segment length %d", binary.BigEndian.Uint16(b[14:]), binary.BigEndian.Uint16(b[16:]), binary.BigEndian.Uint16(b[4:]))
		for at := 2; at+9 < len(b) && b[at] == 0xff; {
			kind, n := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
			if kind >= 0xc0 && kind <= 0xc3 {
				names := map[byte]string{0xc0: "baseline", 0xc1: "extended sequential", 0xc2: "progressive", 0xc3: "lossless"}
				return s + fmt.Sprintf(", %s, precision %d, %dx%d, components %d", names[kind], b[at+4], binary.BigEndian.Uint16(b[at+7:]), binary.BigEndian.Uint16(b[at+5:]), b[at+9])
			}
			at += 2 + n
		}
		return s
	}
	return ""
}

func elfMime(b []byte) string {
	switch le16(b, 16) {
	case 1:
		return "application/x-object"
	case 2:
		return "application/x-executable"
	case 3:
		return "application/x-pie-executable"
	case 4:
		return "application/x-coredump"
	}
	return "application/octet-stream"
}

func elf(b []byte) string {
	class := map[byte]string{1: "32-bit", 2: "64-bit"}[b[4]]
	order := map[byte]string{1: "LSB", 2: "MSB"}[b[5]]
	kind := map[int]string{1: "relocatable", 2: "executable", 3: "pie executable", 4: "core file"}[le16(b, 16)]
	machine := map[int]string{3: "Intel 80386", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V"}[le16(b, 18)]
	abi := map[byte]string{0: "SYSV", 3: "GNU/Linux"}[b[7]]
	return fmt.Sprintf("ELF %s %s %s, %s, version 1 (%s)", class, order, kind, machine, abi)
}

// text tells the kind of text that bytes are, or that they are none.
func text(b []byte) verdict {
	charset, name, ok := charsetOf(b)
	if !ok {
		return verdict{"data", "application/octet-stream", "binary"}
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		b = b[3:]
	}
	kind, mime := textKind(b)
	s := name + " text"
	switch {
	case kind == "JSON text data" || kind == "New Line Delimited JSON text data":
		return verdict{kind, mime, charset}
	case strings.HasSuffix(kind, "document"):
		s = kind + ", " + name + " text"
	case kind == "Perl script":
		s = kind + " text executable"
	case kind == "Node.js script":
		s = kind + " executable, " + name + " text"
	case kind == "CSV":
		s = "CSV text"
	case strings.HasSuffix(kind, "script"):
		s = kind + ", " + name + " text executable"
	case kind != "":
		s = kind + ", " + name + " text"
	}
	return verdict{s + endings(b), mime, charset}
}

// charsetOf tells how text is encoded.
func charsetOf(b []byte) (charset, name string, ok bool) {
	if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) {
		if b[0] == 0xff {
			return "utf-16le", "Unicode text, UTF-16, little-endian", true
		}
		return "utf-16be", "Unicode text, UTF-16, big-endian", true
	}
	ascii := true
	for _, c := range b {
		if c < ' ' && !(c >= 7 && c <= 13) && c != 27 || c == 0x7f {
			return "", "", false
		}
		if c >= 0x80 {
			ascii = false
		}
	}
	switch {
	case ascii:
		return "us-ascii", "ASCII", true
	case utf8.Valid(cutRune(b)):
		if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
			return "utf-8", "Unicode text, UTF-8 (with BOM)", true
		}
		return "utf-8", "Unicode text, UTF-8", true
	}
	for _, c := range b {
		if c >= 0x80 && c < 0xa0 {
			return "unknown-8bit", "Non-ISO extended-ASCII", true
		}
	}
	return "iso-8859-1", "ISO-8859", true
}

// cutRune takes away a character that was cut in half at the end.
func cutRune(b []byte) []byte {
	if len(b) < looked {
		return b
	}
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// endings tells of unusual lines.
func endings(b []byte) string {
	crlf := bytes.Count(b, []byte("\r\n"))
	lf := bytes.Count(b, []byte("\n")) - crlf
	cr := bytes.Count(b, []byte("\r")) - crlf
	longest := 0
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		longest = max(longest, len(line))
	}
	s := ""
	if longest > 300 {
		s += fmt.Sprintf(", with very long lines (%d)", longest)
	}
	with := func(text string) {
		if s == "" {
			s = ", with " + text
		} else {
			s += ", with " + text
		}
	}
	switch {
	case crlf == 0 && lf == 0 && cr == 0:
		with("no line terminators")
	case crlf > 0 || cr > 0:
		var list []string
		if crlf > 0 {
			list = append(list, "CRLF")
		}
		if cr > 0 {
			list = append(list, "CR")
		}
		if lf > 0 {
			list = append(list, "LF")
		}
		with(strings.Join(list, ", ") + " line terminators")
	}
	if bytes.IndexByte(b, 27) >= 0 {
		with("escape sequences")
	}
	if bytes.IndexByte(b, 8) >= 0 {
		with("overstriking")
	}
	return s
}

// textKind tells the language of text by how it begins.
func textKind(b []byte) (kind, mime string) {
	if line, ok := bytes.CutPrefix(b, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		return script(string(bytes.TrimSpace(line)))
	}
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	lower := bytes.ToLower(trimmed[:min(len(trimmed), 4096)])
	starts := func(s string) bool { return bytes.HasPrefix(lower, []byte(s)) }
	switch {
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && len(b) < looked:
		if json.Valid(b) {
			return "JSON text data", "application/json"
		}
		first, rest, _ := bytes.Cut(b, []byte("\n"))
		if json.Valid(first) && len(bytes.TrimSpace(rest)) > 0 {
			second, _, _ := bytes.Cut(rest, []byte("\n"))
			if json.Valid(second) {
				return "New Line Delimited JSON text data", "application/x-ndjson"
			}
		}
	case starts("<?xml version="):
		v := "1.0"
		if len(trimmed) > 18 {
			v = string(trimmed[15:18])
		}
		if bytes.Contains(lower, []byte("<svg")) {
			return "SVG Scalable Vector Graphics image", "image/svg+xml"
		}
		return "XML " + v + " document", "text/xml"
	case starts("<svg"):
		return "SVG Scalable Vector Graphics image", "image/svg+xml"
	case starts("<!doctype html"), starts("<html"), starts("<head"), starts("<title"), starts("<body"), starts("<script"), starts("<h1"):
		return "HTML document", "text/html"
	case starts("<?php"):
		return "PHP script", "text/x-php"
	case starts("diff --git "), starts("--- ") && bytes.Contains(lower, []byte("\n+++ ")):
		return "unified diff output", "text/x-diff"
	case starts("%!ps"):
		return "PostScript document", "application/postscript"
	case starts("-----begin certificate"):
		return "PEM certificate", "text/plain"
	case starts("-----begin openssh private key"):
		return "OpenSSH private key", "text/plain"
	case starts("begin:vcard"):
		return "vCard visiting card", "text/vcard"
	case starts("begin:vcalendar"):
		return "vCalendar calendar file", "text/calendar"
	case bytes.HasPrefix(trimmed, []byte("#include")), bytes.Contains(lower, []byte("\n#include ")):
		return "C source", "text/x-c"
	case bytes.HasPrefix(b, []byte("import ")) && !bytes.Contains(lower, []byte(";")), bytes.HasPrefix(b, []byte("from ")) && bytes.Contains(lower[:min(len(lower), 200)], []byte(" import ")), bytes.Contains(b[:min(len(b), 4096)], []byte("\ndef ")) && bytes.Contains(b, []byte(":\n")), bytes.HasPrefix(b, []byte("def ")):
		return "Python script", "text/x-script.python"
	}
	if csv(b) {
		return "CSV", "text/csv"
	}
	return "", "text/plain"
}

// csv reports whether all of the first lines have as many commas, at least one.
func csv(b []byte) bool {
	want, lines := -1, 0
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		if lines == 10 {
			break
		}
		if len(line) == 0 {
			break
		}
		n := bytes.Count(line, []byte(","))
		if n == 0 || want >= 0 && n != want {
			return false
		}
		want = n
		lines++
	}
	return lines > 1
}

func script(line string) (kind, mime string) {
	f := strings.Fields(line)
	if len(f) == 0 {
		return "a", "text/plain"
	}
	name := path.Base(f[0])
	if name == "env" {
		for _, x := range f[1:] {
			if !strings.HasPrefix(x, "-") && !strings.Contains(x, "=") {
				name = path.Base(x)
				break
			}
		}
	}
	switch {
	case name == "sh" || name == "dash":
		return "POSIX shell script", "text/x-shellscript"
	case name == "bash":
		return "Bourne-Again shell script", "text/x-shellscript"
	case name == "zsh":
		return "Paul Falstad's zsh script", "text/x-shellscript"
	case name == "ksh":
		return "Korn shell script", "text/x-shellscript"
	case strings.HasPrefix(name, "python"):
		return "Python script", "text/x-script.python"
	case strings.HasPrefix(name, "perl"):
		return "Perl script", "text/x-perl"
	case strings.HasPrefix(name, "ruby"):
		return "Ruby script", "text/x-ruby"
	case name == "node" || name == "nodejs":
		return "Node.js script", "application/javascript"
	case name == "awk", name == "gawk":
		return "awk script", "text/x-awk"
	case strings.HasPrefix(name, "php"):
		return "PHP script", "text/x-php"
	case strings.HasPrefix(name, "lua"):
		return "Lua script", "text/x-lua"
	}
	return "a " + line + " script", "text/plain"
}
