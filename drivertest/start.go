package drivertest

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func startPromises() []group {
	return []group{{promises: []promise{
		{"a program that does not exist is 127", programMissing},
		{"a program that may not be executed is 126", programDenied},
		{"a program for another machine is 126, in words", programForeign},
		{"a script whose interpreter is missing is 126, in words", interpreterMissing},
		{"a command of nothing, or with NUL, is invalid", commandInvalid},
		{"arguments arrive byte for byte", argumentBytes},
		{"arguments that are too long are refused, and the sandbox lives", argumentsTooLong},
		{"a timeout that is negative is invalid", timeoutNegative},
	}}}
}

// refused starts a command that cannot start, and checks the error.
func (b box) refused(t *testing.T, cmd paddock.Cmd, code int, words ...string) {
	t.Helper()
	_, err := b.try(bounded(t), cmd)
	var start *paddock.StartError
	if !errors.As(err, &start) {
		t.Errorf("start %q: %v, want a StartError", cmd.Args, err)
		return
	}
	if start.Code != code {
		t.Errorf("start %q: code %d, want %d (%v)", cmd.Args, start.Code, code, err)
	}
	if paddock.KindOf(err) == paddock.Internal {
		t.Errorf("start %q: %v has no kind", cmd.Args, err)
	}
	for _, w := range words {
		if strings.Contains(err.Error(), w) {
			return
		}
	}
	if len(words) > 0 {
		t.Errorf("start %q: %q says none of %q", cmd.Args, err, words)
	}
}

func programMissing(t *testing.T, s *suite) {
	b := s.box(t)
	for _, name := range []string{"no-program-of-that-name", b.in("missing"), "/no/such/program"} {
		b.refused(t, paddock.Cmd{Args: []string{name}}, 127, name)
		_, err := b.try(bounded(t), paddock.Cmd{Args: []string{name}})
		wantKind(t, name, err, paddock.NotFound)
	}
}

func programDenied(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("plain"), []byte("#!"+s.h.Shell+"\n"), 0o644)
	b.refused(t, paddock.Cmd{Args: []string{b.in("plain")}}, 126, "permission", "denied", "execut")
	b.refused(t, paddock.Cmd{Args: []string{b.dir}}, 126, "directory", "permission", "denied")
}

func programForeign(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("foreign"), foreign(), 0o755)
	b.refused(t, paddock.Cmd{Args: []string{b.in("foreign")}}, 126, "architecture", "machine", "exec format")
	b.put(t, b.in("nonsense"), []byte("\x01\x02\x03\x04 no program at all"), 0o755)
	b.refused(t, paddock.Cmd{Args: []string{b.in("nonsense")}}, 126, "format")
}

// foreign returns the start of a program for a machine that no host is: an ELF file for the
// PDP-11, little-endian, 64 bits.
func foreign() []byte {
	elf := make([]byte, 4096)
	copy(elf, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(elf[16:], 2)        // executable
	binary.LittleEndian.PutUint16(elf[18:], 65)       // PDP-11
	binary.LittleEndian.PutUint32(elf[20:], 1)        // version
	binary.LittleEndian.PutUint64(elf[24:], 0x400000) // entry
	binary.LittleEndian.PutUint64(elf[32:], 64)       // program headers
	binary.LittleEndian.PutUint16(elf[52:], 64)       // size of this header
	binary.LittleEndian.PutUint16(elf[54:], 56)       // size of a program header
	binary.LittleEndian.PutUint16(elf[56:], 1)        // number of program headers
	return elf
}

func interpreterMissing(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("script"), []byte("#!/no/such/interpreter\n"), 0o755)
	b.refused(t, paddock.Cmd{Args: []string{b.in("script")}}, 126, "interpreter")
}

func commandInvalid(t *testing.T, s *suite) {
	b := s.box(t)
	for what, args := range map[string][]string{
		"no arguments":         nil,
		"an empty program":     {""},
		"NUL in the program":   {"tr\x00ue"},
		"NUL in the arguments": {"true", "a\x00b"},
	} {
		_, err := b.try(bounded(t), paddock.Cmd{Args: args})
		wantKind(t, what, err, paddock.Invalid)
	}
}

func argumentBytes(t *testing.T, s *suite) {
	args := []string{"", " ", "a b", "new\nline", `"quotes" 'both'`, `back\slash`, "$HOME `id` *", "héllo 🐎", "\xff\xfe", "-n", strings.Repeat("x", 100_000)}
	b := s.box(t)
	got := b.must(t, `for a; do printf '<%s>' "$a"; done`, args...)
	if want := "<" + strings.Join(args, "><") + ">"; got != want {
		t.Errorf("got %q, want %q", clip(got), clip(want))
	}
}

func argumentsTooLong(t *testing.T, s *suite) {
	b := s.box(t)
	// Linux accepts at most 128 KiB for one argument.
	_, err := b.try(bounded(t), paddock.Cmd{Args: []string{"true", strings.Repeat("x", 512<<10)}})
	wantKind(t, "one of 512 KiB", err, paddock.Invalid, paddock.Exhausted)
	many := append([]string{"true"}, strings.Split(strings.Repeat(strings.Repeat("x", 64<<10)+" ", 512), " ")...)
	_, err = b.try(bounded(t), paddock.Cmd{Args: many})
	wantKind(t, "32 MiB in all", err, paddock.Invalid, paddock.Exhausted)
	b.must(t, "echo alive")
}

func timeoutNegative(t *testing.T, s *suite) {
	_, err := s.box(t).try(bounded(t), paddock.Cmd{Args: []string{"true"}, Timeout: -1})
	wantKind(t, "start", err, paddock.Invalid)
}
