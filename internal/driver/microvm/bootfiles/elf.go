package bootfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// Parts of the ELF format. Only 64-bit little-endian files are read.
const (
	elfHeader  = 64
	elfProgram = 56 // size of a program header
	elfSection = 64 // size of a section header
	noteType   = 4  // PT_NOTE
	x86        = 62 // EM_X86_64

	xenNote  = "Xen"
	pvhEntry = 18 // XEN_ELFNOTE_PHYS32_ENTRY

	maxHeaders = 4096 // headers of either kind
	maxNotes   = 1 << 20
)

var errELF = fmt.Errorf("not an ELF file of this kind of processor: %w", paddock.Invalid)

// elfHead reads the ELF header.
func elfHead(r io.ReaderAt) ([]byte, error) {
	h, err := span(r, 0, elfHeader)
	if err != nil {
		return nil, errors.Join(errELF, err)
	}
	if !bytes.HasPrefix(h, []byte("\x7fELF\x02\x01")) || binary.LittleEndian.Uint16(h[18:]) != x86 {
		return nil, errELF
	}
	return h, nil
}

// span reads n bytes at an offset. The caller bounds n.
func span(r io.ReaderAt, at uint64, n int) ([]byte, error) {
	if at > 1<<62 {
		return nil, errELF
	}
	data := make([]byte, n)
	if k, err := r.ReadAt(data, int64(at)); k < n {
		return nil, errors.Join(errELF, err)
	}
	return data, nil
}

// pvh reports whether a kernel can be started directly, without a boot loader's protocol:
// whether it has the note with its PVH entry.
func pvh(r io.ReaderAt) (bool, error) {
	h, err := elfHead(r)
	if err != nil {
		return false, err
	}
	at, size, n := binary.LittleEndian.Uint64(h[32:]), int(binary.LittleEndian.Uint16(h[54:])), int(binary.LittleEndian.Uint16(h[56:]))
	if n > maxHeaders || n > 0 && size != elfProgram {
		return false, errELF
	}
	headers, err := span(r, at, n*elfProgram)
	if err != nil {
		return false, err
	}
	for ; len(headers) > 0; headers = headers[elfProgram:] {
		if binary.LittleEndian.Uint32(headers) != noteType {
			continue
		}
		size := binary.LittleEndian.Uint64(headers[32:])
		if size > maxNotes {
			return false, errELF
		}
		notes, err := span(r, binary.LittleEndian.Uint64(headers[8:]), int(size))
		if err != nil {
			return false, err
		}
		if hasNote(notes, xenNote, pvhEntry) {
			return true, nil
		}
	}
	return false, nil
}

// hasNote reports whether the notes include one with this name and type.
func hasNote(notes []byte, name string, kind uint32) bool {
	for len(notes) >= 12 {
		n, d := uint64(binary.LittleEndian.Uint32(notes)), uint64(binary.LittleEndian.Uint32(notes[4:]))
		found := binary.LittleEndian.Uint32(notes[8:]) == kind
		notes = notes[12:]
		whole := (n+3)&^3 + (d+3)&^3
		if n > uint64(len(notes)) || d > uint64(len(notes)) {
			return false
		}
		if found && string(bytes.TrimRight(notes[:n], "\x00")) == name {
			return true
		}
		if whole >= uint64(len(notes)) {
			return false
		}
		notes = notes[whole:]
	}
	return false
}

// section returns the content of a section.
func section(data []byte, name string) ([]byte, error) {
	r := bytes.NewReader(data)
	h, err := elfHead(r)
	if err != nil {
		return nil, err
	}
	at, size := binary.LittleEndian.Uint64(h[40:]), int(binary.LittleEndian.Uint16(h[58:]))
	n, names := int(binary.LittleEndian.Uint16(h[60:])), int(binary.LittleEndian.Uint16(h[62:]))
	if n > maxHeaders || names >= n || size != elfSection {
		return nil, errELF
	}
	headers, err := span(r, at, n*elfSection)
	if err != nil {
		return nil, err
	}
	content := func(i int) ([]byte, error) {
		s := headers[i*elfSection:]
		at, size := binary.LittleEndian.Uint64(s[24:]), binary.LittleEndian.Uint64(s[32:])
		if at > uint64(len(data)) || size > uint64(len(data))-at {
			return nil, errELF
		}
		return data[at : at+size], nil
	}
	table, err := content(names)
	if err != nil {
		return nil, err
	}
	for i := range n {
		from := binary.LittleEndian.Uint32(headers[i*elfSection:])
		if uint64(from) >= uint64(len(table)) {
			continue
		}
		have, _, _ := bytes.Cut(table[from:], []byte{0})
		if string(have) == name {
			return content(i)
		}
	}
	return nil, fmt.Errorf("there is no section %s: %w", name, paddock.Invalid)
}

// release returns the release of a decompressed kernel, from its version text.
func release(r io.Reader) (string, error) {
	found := ""
	err := scan(r, []byte("Linux version "), func(rest []byte) bool {
		word, _, ok := bytes.Cut(rest, []byte(" "))
		if ok && validRelease(string(word)) {
			found = string(word)
		}
		return found != ""
	})
	if err == nil && found == "" {
		err = fmt.Errorf("it does not say which Linux it is: %w", paddock.Invalid)
	}
	return found, err
}

// validRelease reports whether a word can be a release. It becomes a part of a path.
func validRelease(s string) bool {
	if s == "" || len(s) > 64 || s[0] < '0' || s[0] > '9' {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '.', c == '-', c == '_', c == '+', c == '~':
		default:
			return false
		}
	}
	return true
}

// says reports whether a file contains a string or the end of a longer one, because linkers
// merge strings with a common end.
func says(path, word string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	found := false
	err = scan(f, []byte(word+"\x00"), func([]byte) bool {
		found = true
		return true
	})
	return found, err
}

// scan calls found with up to 128 bytes after each occurrence of a word, until found
// returns true.
func scan(r io.Reader, word []byte, found func(rest []byte) bool) error {
	const rest = 128
	buf := make([]byte, 0, 1<<20)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		at := 0
		for {
			i := bytes.Index(buf[at:], word)
			if i < 0 {
				at = max(at, len(buf)-len(word)+1)
				break
			}
			end := at + i + len(word)
			if !last && end+rest > len(buf) {
				at += i
				break
			}
			if found(buf[end:min(end+rest, len(buf))]) {
				return nil
			}
			at = end
		}
		if last {
			return nil
		}
		buf = append(buf[:0], buf[at:]...)
	}
}
