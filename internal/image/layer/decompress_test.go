package layer

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/paddock-sandbox/paddock"
)

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func contentOf(t *testing.T, data []byte) (string, error) {
	t.Helper()
	in, err := Decompress(t.Context(), bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	return string(text), err
}

func TestLayersAreReadPlainInGzipAndInZstd(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll([]byte("the layer"), nil)
	skip := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd'}, packed...) // a frame to skip, and the layer
	for what, data := range map[string][]byte{"plain": []byte("the layer"), "gzip": gzipped(t, "the layer"), "zstd": packed, "zstd after a note": skip, "two of zstd": append(w.EncodeAll([]byte("the "), nil), w.EncodeAll([]byte("layer"), nil)...)} {
		if got, err := contentOf(t, data); err != nil || got != "the layer" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	wide := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x90, 0x01, 0x00, 0x00} // a window of 256 MiB, and an empty last block
	if got, err := contentOf(t, wide); !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "window") {
		t.Errorf("a large window: %q, %v", got, err)
	}
	if got, err := contentOf(t, gzipped(t, "the layer")[:15]); !errors.Is(err, paddock.Invalid) {
		t.Errorf("a layer that ends early: %q, %v", got, err)
	}
}

func TestALayerThatIsGivenUpEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, err := Decompress(ctx, bytes.NewReader(gzipped(t, strings.Repeat("the layer", 1000))))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, in); !errors.Is(err, paddock.Canceled) {
		t.Error(err)
	}
}

func FuzzDecompress(f *testing.F) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(w.EncodeAll([]byte("the layer"), nil))
	f.Add(gzipped(f, "the layer"))
	f.Add([]byte("abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Decompress(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		defer in.Close()
		out, err := io.ReadAll(io.LimitReader(in, 1<<20))
		packed := bytes.HasPrefix(data, []byte{0x1f, 0x8b}) || bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) || len(data) > 3 && data[1] == 0x2a
		if !packed && (err != nil || !bytes.Equal(out, data)) {
			t.Errorf("%q, which is not compressed, became %q: %v", data, out, err)
		}
	})
}
