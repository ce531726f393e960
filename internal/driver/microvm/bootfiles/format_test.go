package bootfiles

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ulikunitz/xz/lzma"
)

func TestLZ4(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want string // "!" means an error
	}{
		{"literals", "\x30abc", "abc"},
		{"a match", "\x33abc\x03\x00\x10d", "abcabcabcad"},
		{"a match that overlaps itself", "\x1fa\x01\x00\x05\x00", strings.Repeat("a", 1+4+15+5)},
		{"long literals", "\xf0\x01" + strings.Repeat("b", 16), strings.Repeat("b", 16)},
		{"before the beginning", "\x30abc\x04\x00", "!"},
		{"back by nothing", "\x30abc\x00\x00", "!"},
		{"cut within a length", "\xf0\xff", "!"},
		{"cut within literals", "\x50abc", "!"},
		{"cut within a match", "\x30abc\x01", "!"},
	} {
		got, err := lz4Unpacked(nil, []byte(tt.in))
		if tt.want == "!" {
			if err == nil {
				t.Errorf("%s: %q", tt.name, got)
			}
		} else if err != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

func TestLZMA(t *testing.T) {
	var b bytes.Buffer
	w, err := lzma.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := format(unlzma).read(&b, 100); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// The library that compresses in these tests has no filter for instructions, and only one
// checksum.
func TestXZAsItPacksItself(t *testing.T) {
	path, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("no xz")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := readBounded(self, maxKernel)
	if err != nil {
		t.Fatal(err)
	}
	program = program[:min(len(program), 1<<20)]
	for _, args := range []string{"--check=crc32 --x86 --lzma2=preset=0", "--check=none -0", "--check=crc64 -0 --block-size=300KiB", "--check=sha256 -0 -T2 --block-size=100000"} {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-c"}, strings.Fields(args)...)...)
		cmd.Stdin = bytes.NewReader(program)
		data, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := format(unxz).read(bytes.NewReader(append(data, "what follows"...)), maxKernel)
		if err != nil || !bytes.Equal(got, program) {
			t.Errorf("xz %s: %d bytes of %d: %v", args, len(got), len(program), err)
		}
		data[len(data)/2] ^= 1
		if _, err := format(unxz).read(bytes.NewReader(data), maxKernel); err == nil && !strings.Contains(args, "none") {
			t.Errorf("xz %s: a changed bit was not seen", args)
		}
		if _, err := format(unxz).read(bytes.NewReader(data), 1<<19); err == nil {
			t.Errorf("xz %s: more came out than was allowed", args)
		}
	}
}
