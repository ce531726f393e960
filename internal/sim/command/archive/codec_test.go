package archive

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// zstdFrame is a frame of zstd data with a header and blocks of one byte.
func zstdFrame(header string, blocks int) string {
	const each = 128 << 10
	s := "\x28\xb5\x2f\xfd" + header
	for i := range blocks {
		h := uint32(each<<3 | 1<<1)
		if i == blocks-1 {
			h |= 1
		}
		s += string(binary.LittleEndian.AppendUint32(nil, h)[:3]) + "x"
	}
	return s
}

func TestTheWindowOfCompressedDataCountsBeforeItIsMade(t *testing.T) {
	const (
		little = "\x00\x38" // window of 128 KiB
		large  = "\x00\x88" // window of 128 MiB
		single = "\xa0\x00\x00\x00\x04"
		skip   = "\x53\x2a\x4d\x18\x06\x00\x00\x00\x28\xb5\x2f\xfd\x00\x88"
		much   = "\x5d\x00\x00\x00\x08" // an LZMA dictionary of 128 MiB
	)
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := string(w.EncodeAll([]byte(strings.Repeat("with a checksum", 1000)), nil))
	for name, c := range map[string]struct {
		tool, data string
		heap       bool // the memory is used up
	}{
		"zstd, large":                        {"zstdcat", zstdFrame(large, 4), true},
		"zstd, the size of the only segment": {"zstdcat", zstdFrame(single, 512), true},
		"zstd, a later frame":                {"zstdcat", zstdFrame(little, 2) + zstdFrame(large, 2), true},
		"zstd, a frame after what is skipped": {"zstdcat", zstdFrame(little, 1) + skip + zstdFrame(large, 2),
			true},
		"zstd, a frame after a checksum": {"zstdcat", sum + zstdFrame(large, 2), true},
		"zstd, a checksum":               {"zstdcat", sum + sum, false},
		"zstd, little":                   {"zstdcat", zstdFrame(little, 4) + skip + zstdFrame(little, 4), false},
		"zstd, a frame that was no one":  {"zstdcat", zstdFrame(little, 1) + "\x28\xb5\x2f\xfe" + large, false},
		"lzma, large":                    {"lzcat", much + strings.Repeat("\xff", 8) + strings.Repeat("\x00", 100), true},
		"lzma, of little data":           {"lzcat", much + "\x0a" + strings.Repeat("\x00", 7) + strings.Repeat("\x00", 100), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{c.tool}, Stdin: c.data}, budget.Limits{Heap: 60 << 20})
			if ended := r.Status == 137 && strings.Contains(r.Stderr, `"heap"`); ended != c.heap {
				t.Errorf("status %d, %d bytes: %s", r.Status, len(r.Stdout), r.Stderr)
			}
		})
	}
}
