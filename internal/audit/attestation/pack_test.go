package attestation

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A packWriter makes a pack and its index, right or wrong.
type packWriter struct {
	data  []byte
	names []string // digests in hexadecimal
	at    []uint64
}

func (w *packWriter) add(t testing.TB, digest string, kind int, size int, base, text []byte) {
	t.Helper()
	if w.data == nil {
		w.data = append([]byte("PACK\x00\x00\x00\x02"), 0, 0, 0, 0)
	}
	w.names, w.at = append(w.names, digest), append(w.at, uint64(len(w.data)))
	b := byte(kind<<4 | size&15)
	for size >>= 4; size > 0; size >>= 7 {
		w.data, b = append(w.data, b|0x80), byte(size&0x7f)
	}
	w.data = append(append(w.data, b), base...)
	w.data = append(w.data, deflate(t, string(text))...)
}

func (w *packWriter) index(t testing.TB) []byte {
	t.Helper()
	order := make([]int, len(w.names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(w.names[a], w.names[b]) })
	out := []byte("\xfftOc\x00\x00\x00\x02")
	for i := range 256 {
		n := 0
		for _, name := range w.names {
			if raw, err := hex.DecodeString(name[:2]); err == nil && int(raw[0]) <= i {
				n++
			}
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	var offsets, large []byte
	for _, i := range order {
		raw, err := hex.DecodeString(w.names[i])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw...)
		if w.at[i] < 1<<31 {
			offsets = binary.BigEndian.AppendUint32(offsets, uint32(w.at[i]))
			continue
		}
		offsets = binary.BigEndian.AppendUint32(offsets, uint32(1<<31|len(large)/8))
		large = binary.BigEndian.AppendUint64(large, w.at[i])
	}
	out = append(out, make([]byte, 4*len(order))...)
	return slices.Concat(out, offsets, large, make([]byte, 40))
}

// store writes the pack into a repository in which the tag x is an object.
func (w *packWriter) store(t testing.TB, dir, tag string) {
	t.Helper()
	write(t, filepath.Join(dir, ".git/refs/tags/x"), tag+"\n", 0o600)
	write(t, filepath.Join(dir, ".git/objects/pack/pack-1.pack"), string(w.data)+strings.Repeat("\x00", 20), 0o600)
	write(t, filepath.Join(dir, ".git/objects/pack/pack-1.idx"), string(w.index(t)), 0o600)
}

// bodyOf is the contents of a tag, and its digest.
func bodyOf(commit string) (text []byte, digest string) {
	stored := tagOf(commit, "commit")
	_, body, _ := strings.Cut(stored, "\x00")
	return []byte(body), fmt.Sprintf("%x", sha1.Sum([]byte(stored)))
}

// inserting is a delta that makes a text of any base of a size.
func inserting(size int, text []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(size))
	out = binary.AppendUvarint(out, uint64(len(text)))
	for len(text) > 0 {
		n := min(len(text), 127)
		out, text = append(append(out, byte(n)), text[:n]...), text[n:]
	}
	return out
}

// behind encodes how far a delta stands behind its base.
func behind(n uint64) []byte {
	out := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append([]byte{byte(n&0x7f) | 0x80}, out...)
	}
	return out
}

func TestDeltasOfBothKindsAreRead(t *testing.T) {
	body, digest := bodyOf(one)
	base, baseDigest := bodyOf(two)
	for name, add := range map[string]func(w *packWriter){
		"whole": func(w *packWriter) { w.add(t, digest, packTag, len(body), nil, body) },
		"against an offset": func(w *packWriter) {
			w.add(t, baseDigest, packTag, len(base), nil, base)
			delta := inserting(len(base), body)
			w.add(t, digest, offDelta, len(delta), behind(uint64(len(w.data))-w.at[0]), delta)
		},
		"against a name": func(w *packWriter) {
			delta := inserting(len(base), body)
			raw, err := hex.DecodeString(baseDigest)
			if err != nil {
				t.Fatal(err)
			}
			w.add(t, digest, refDelta, len(delta), raw, delta)
			w.add(t, baseDigest, packTag, len(base), nil, base)
		},
	} {
		dir := t.TempDir()
		w := &packWriter{}
		add(w)
		w.store(t, dir, digest)
		if got, err := Resolve(openRoot(t, dir), "x"); err != nil || got != one {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// A command in the sandbox may have written any of it.
func TestAHostilePackIsRefusedWithTheReason(t *testing.T) {
	body, digest := bodyOf(one)
	other, otherDigest := bodyOf(two)
	self, err := hex.DecodeString(digest)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		make func(w *packWriter)
		want string
	}{
		{"an object under another name", func(w *packWriter) { w.add(t, digest, packTag, len(other), nil, other) }, "has another digest"},
		{"a file", func(w *packWriter) { w.add(t, digest, packBlob, 2, nil, []byte("hi")) }, "names no commit"},
		{"a size that is not its own", func(w *packWriter) { w.add(t, digest, packTag, len(body)-1, nil, body) }, "has not the size that it says"},
		{"a bomb", func(w *packWriter) { w.add(t, digest, packTag, 10, nil, make([]byte, 100<<20)) }, "has not the size that it says"},
		{"a stream that goes on for ever and says nothing", func(w *packWriter) {
			w.add(t, digest, packTag, len(body), nil, body)
			z := deflate(t, string(body)) // two bytes of a head, and blocks
			empty := bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 200_000)
			w.data = slices.Concat(w.data[:len(w.data)-len(z)], z[:2], empty, z[2:])
		}, "has not the size that it says"},
		{"a huge object", func(w *packWriter) { w.add(t, digest, packTag, maxObject+1, nil, make([]byte, maxObject+1)) }, "more than 1048576 bytes"},
		{"a kind that there is not", func(w *packWriter) { w.add(t, digest, 5, 2, nil, []byte("hi")) }, "is of the kind 5"},
		{"a delta of itself", func(w *packWriter) { w.add(t, digest, refDelta, 2, self, []byte("hi")) }, "made of too many others"},
		{"a delta of nothing", func(w *packWriter) { w.add(t, digest, refDelta, 2, make([]byte, 20), []byte("hi")) }, "the base of a delta"},
		{"a delta of what stands behind it", func(w *packWriter) { w.add(t, digest, offDelta, 2, []byte{0}, []byte("hi")) }, "a delta has no base"},
		{"a delta of another base", func(w *packWriter) {
			w.add(t, otherDigest, packTag, len(other), nil, other)
			delta := inserting(len(other)+1, body)
			w.add(t, digest, offDelta, len(delta), behind(uint64(len(w.data))-w.at[0]), delta)
		}, "a delta is of another base"},
		{"an offset beyond the pack", func(w *packWriter) {
			w.add(t, digest, packTag, len(body), nil, body)
			w.at[0] = 1 << 30
		}, "beyond its end"},
		{"an offset beyond every file", func(w *packWriter) {
			w.add(t, digest, packTag, len(body), nil, body)
			w.at[0] = 1<<63 + 1
		}, "beyond every file"},
		{"an offset in front of the pack", func(w *packWriter) {
			w.add(t, digest, packTag, len(body), nil, body)
			w.at[0] = 0
		}, "beyond its end"},
	} {
		dir := t.TempDir()
		w := &packWriter{}
		row.make(w)
		w.store(t, dir, digest)
		if got, err := Resolve(openRoot(t, dir), "x"); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %s, %v, want %q", row.name, got, err, row.want)
		}
	}
}

func TestADeltaIsAppliedWithinItsBounds(t *testing.T) {
	base := []byte("0123456789")
	for _, row := range []struct {
		name  string
		delta []byte
		want  string // empty is an error
	}{
		{"copy and insert", []byte{10, 5, 0x91, 2, 3, 2, 'a', 'b'}, "234ab"},
		{"of another base", []byte{9, 3, 3, 'a', 'b', 'c'}, ""},
		{"beyond the base", []byte{10, 5, 0x91, 8, 3}, ""},
		{"64 KiB where no size is named", []byte{10, 5, 0x80}, ""},
		{"more than it says", []byte{10, 1, 2, 'a', 'b'}, ""},
		{"less than it says", []byte{10, 3, 2, 'a', 'b'}, ""},
		{"cut off", []byte{10, 3, 3, 'a'}, ""},
		{"no command", []byte{10, 3, 0}, ""},
		{"huge", append([]byte{10}, binary.AppendUvarint(nil, 1<<60)...), ""},
		{"nothing", nil, ""},
	} {
		got, err := patch(base, row.delta)
		if string(got) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
}

func FuzzAPack(f *testing.F) {
	body, digest := bodyOf(one)
	base, baseDigest := bodyOf(two)
	w := &packWriter{}
	w.add(f, baseDigest, packTag, len(base), nil, base)
	delta := inserting(len(base), body)
	raw, err := hex.DecodeString(baseDigest)
	if err != nil {
		f.Fatal(err)
	}
	w.add(f, digest, refDelta, len(delta), raw, delta)
	f.Add(w.data, w.index(f))
	f.Add(bytes.Repeat([]byte{0xff}, 100), w.index(f))
	f.Add(w.data, bytes.Repeat([]byte{0}, 1100))
	dir := f.TempDir()
	write(f, filepath.Join(dir, ".git/refs/tags/x"), digest+"\n", 0o600)
	f.Fuzz(func(t *testing.T, pack, index []byte) {
		write(t, filepath.Join(dir, ".git/objects/pack/pack-1.pack"), string(pack), 0o600)
		write(t, filepath.Join(dir, ".git/objects/pack/pack-1.idx"), string(index), 0o600)
		if got, err := Resolve(openRoot(t, dir), "x"); err == nil && got != one { // the digest allows only one answer
			t.Errorf("it is %s", got)
		}
	})
}
