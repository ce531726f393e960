package javascript

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
)

// A digest is a hash in the making.
type digest struct{ h hash.Hash }

func (p *program) dataEntries() []entry {
	return []entry{
		{"encode", func(a args) (any, error) { return encode(a.str(0), a.str(1)), nil }},
		{"decode", func(a args) (any, error) {
			b := a.bytes(0)
			p.t.Step(1 + len(b)/256)
			return decode(b, a.str(3)), nil
		}},
		{"whole", func(a args) (any, error) { return whole(a.bytes(0)), nil }},
		{"valid", func(a args) (any, error) { return utf8.Valid(a.bytes(0)), nil }},
		{"find", p.findText},
		{"findBytes", func(a args) (any, error) {
			b, pattern, from := a.bytes(0), a.bytes(3), a.int(6)
			p.t.Step(1 + len(b)/64)
			return findBytes(b, pattern, from, a.truth(7)), nil
		}},
		{"puny", func(a args) (any, error) { return punycode(a.str(0)), nil }},
		{"hash", p.hash},
		{"hashUpdate", func(a args) (any, error) {
			if d := p.digest(a.int(0)); d != nil {
				b := a.bytes(1)
				p.t.Step(1 + len(b)/64)
				_, _ = d.h.Write(b) // a hash never fails
			}
			return nil, nil
		}},
		{"hashSum", func(a args) (any, error) {
			d := p.digest(a.int(0))
			if d == nil {
				return nil, &quickjs.Thrown{Message: "Digest already called", Code: "ERR_CRYPTO_HASH_FINALIZED"}
			}
			p.hashes[a.int(0)] = nil
			return d.h.Sum(nil), nil
		}},
		{"pbkdf2", func(a args) (any, error) {
			h := hashOf(a.str(8))
			n, size := a.int(6), p.bounded(a.int(7))
			if h == nil || n < 1 || size < 1 || size > 1<<20 {
				return nil, &quickjs.Thrown{Class: "TypeError", Message: "Invalid digest: " + a.str(8), Code: "ERR_CRYPTO_INVALID_DIGEST"}
			}
			// It cannot be stopped on its way.
			p.t.Bound("steps", int64(n)*int64(1+size/16), 20_000_000)
			p.t.Step(n)
			return pbkdf2.Key(h, string(a.bytes(0)), a.bytes(3), n, size)
		}},
		{"zlib", p.zlib},
		{"crc32", func(a args) (any, error) {
			return float64(crc32.Update(uint32(a.float(3)), crc32.IEEETable, a.bytes(0))), nil
		}},
	}
}

func encode(s, encoding string) []byte {
	switch encoding {
	case "utf16le":
		units := utf16.Encode([]rune(s))
		b := make([]byte, 0, 2*len(units))
		for _, u := range units {
			b = append(b, byte(u), byte(u>>8))
		}
		return b
	case "latin1", "ascii":
		units := utf16.Encode([]rune(s))
		b := make([]byte, len(units))
		for i, u := range units {
			b[i] = byte(u)
		}
		return b
	case "hex":
		n := 0
		for n+1 < len(s) && isHex(s[n]) && isHex(s[n+1]) {
			n += 2
		}
		b, err := hex.DecodeString(s[:n])
		if err != nil {
			return nil
		}
		return b
	case "base64", "base64url":
		return fromBase64(s)
	}
	return []byte(s)
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// fromBase64 reads both alphabets and skips what belongs to neither, up to
// padding.
func fromBase64(s string) []byte {
	clean := make([]byte, 0, len(s))
loop:
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/':
			clean = append(clean, c)
		case c == '-':
			clean = append(clean, '+')
		case c == '_':
			clean = append(clean, '/')
		case c == '=':
			break loop
		}
	}
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	b := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, err := base64.RawStdEncoding.Decode(b, clean)
	if err != nil {
		return nil
	}
	return b[:n]
}

func decode(b []byte, encoding string) string {
	switch encoding {
	case "utf16le":
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
		}
		return string(utf16.Decode(units))
	case "latin1", "ascii":
		var s strings.Builder
		s.Grow(len(b) + len(b)/4)
		for _, c := range b {
			if encoding == "ascii" {
				c &= 0x7f
			}
			s.WriteRune(rune(c))
		}
		return s.String()
	case "hex":
		return hex.EncodeToString(b)
	case "base64":
		return base64.StdEncoding.EncodeToString(b)
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return string(b)
}

// whole tells how much of b is there before a character that is not complete.
func whole(b []byte) int {
	for back := 1; back <= 3 && back <= len(b); back++ {
		c := b[len(b)-back]
		if c < 0x80 {
			break
		}
		if c >= 0xC0 {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// findText looks for a string in a string; positions are in UTF-16 units.
func (p *program) findText(a args) (any, error) {
	if s, pattern := a.str(0), a.str(1); isASCII(s) {
		p.t.Step(1 + len(s)/64)
		return findBytes([]byte(s), []byte(pattern), a.int(2), a.truth(3)), nil
	}
	s, pattern := utf16.Encode([]rune(a.str(0))), utf16.Encode([]rune(a.str(1)))
	from := max(0, min(a.int(2), len(s)))
	p.t.Step(1 + len(s)/16)
	flat := func(u []uint16) []byte {
		b := make([]byte, 2*len(u))
		for i, c := range u {
			b[2*i], b[2*i+1] = byte(c>>8), byte(c)
		}
		return b
	}
	hay, needle := flat(s), flat(pattern)
	if a.truth(3) {
		hay = hay[:min(len(hay), 2*from+len(needle))]
		for {
			i := bytes.LastIndex(hay, needle)
			if i < 0 || i%2 == 0 {
				return half(i), nil
			}
			hay = hay[:i+len(needle)-1]
		}
	}
	for at := 2 * from; at <= len(hay); {
		i := bytes.Index(hay[at:], needle)
		if i < 0 {
			return -1, nil
		}
		if (at+i)%2 == 0 {
			return (at + i) / 2, nil
		}
		at += i + 1
		p.t.Step(1)
	}
	return -1, nil
}

func half(i int) int {
	if i < 0 {
		return -1
	}
	return i / 2
}

func findBytes(b, pattern []byte, from int, last bool) int {
	from = max(0, min(from, len(b)))
	if last {
		return bytes.LastIndex(b[:min(len(b), from+len(pattern))], pattern)
	}
	i := bytes.Index(b[from:], pattern)
	if i < 0 {
		return -1
	}
	return from + i
}

func hashOf(name string) func() hash.Hash {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "-")) {
	case "md5":
		return md5.New
	case "sha1", "sha-1":
		return sha1.New
	case "sha224", "sha-224":
		return sha256.New224
	case "sha256", "sha-256":
		return sha256.New
	case "sha384", "sha-384":
		return sha512.New384
	case "sha512", "sha-512":
		return sha512.New
	case "sha512-256", "sha-512/256":
		return sha512.New512_256
	}
	return nil
}

// maxHashes is how many hashes may be in the making.
const maxHashes = 100_000

func (p *program) hash(a args) (any, error) {
	make := hashOf(a.str(0))
	if make == nil {
		return nil, &quickjs.Thrown{Message: "Digest method not supported", Code: "ERR_CRYPTO_INVALID_DIGEST"}
	}
	p.t.Bound("script_heap", int64(len(p.hashes)), maxHashes)
	d := &digest{}
	if a.none(1) {
		d.h = make()
	} else {
		d.h = hmac.New(make, append([]byte(nil), a.bytes(1)...))
	}
	p.hashes = append(p.hashes, d)
	return len(p.hashes) - 1, nil
}

func (p *program) digest(i int) *digest {
	if i < 0 || i >= len(p.hashes) {
		return nil
	}
	return p.hashes[i]
}

// zlib packs or unpacks.
func (p *program) zlib(a args) (any, error) {
	format, data, level := a.str(0), append([]byte(nil), a.bytes(2)...), a.int(5)
	if level < -1 || level > 9 {
		level = -1
	}
	p.t.Step(1 + len(data)/64)
	bad := func(err error) error {
		code := "Z_DATA_ERROR"
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			return &quickjs.Thrown{Message: "unexpected end of file", Code: "Z_BUF_ERROR"}
		}
		text := "incorrect header check"
		if format == "deflate" {
			text = "invalid stored block lengths"
		}
		return &quickjs.Thrown{Message: text, Code: code}
	}
	if a.truth(1) {
		r, err := unpacker(format, data)
		if err != nil {
			return nil, bad(err)
		}
		b, err := p.unpacked(r)
		if err != nil {
			return nil, bad(err)
		}
		return b, nil
	}
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch format {
	case "gzip":
		w, err = gzip.NewWriterLevel(&b, level)
	case "zlib":
		w, err = zlib.NewWriterLevel(&b, level)
	default:
		w, err = flate.NewWriter(&b, level)
	}
	if err != nil {
		return nil, err
	}
	for len(data) > 0 {
		n := min(len(data), 64<<10)
		p.t.Step(n / 16)
		if _, err := w.Write(data[:n]); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	err = w.Close()
	return b.Bytes(), err
}

func unpacker(format string, data []byte) (io.Reader, error) {
	if format == "any" {
		format = "zlib"
		if len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b {
			format = "gzip"
		}
	}
	switch format {
	case "gzip":
		return gzip.NewReader(bytes.NewReader(data))
	case "zlib":
		return zlib.NewReader(bytes.NewReader(data))
	}
	return flate.NewReader(bytes.NewReader(data)), nil
}

// unpacked reads all, within what the engine may hold.
func (p *program) unpacked(r io.Reader) ([]byte, error) {
	limit := min(p.t.K.Limits.Archive, p.t.K.Limits.ScriptHeap)
	var b bytes.Buffer
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		p.t.Step(1 + n/64)
		p.t.Bound("script_heap", int64(b.Len()+n), limit)
		b.Write(chunk[:n])
		if err == io.EOF {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// punycode writes a host's name in ASCII. It knows nothing of the letters that
// a registry would refuse.
func punycode(host string) string {
	if len(host) > 1024 {
		return ""
	}
	labels := strings.Split(strings.ToLower(host), ".")
	for i, l := range labels {
		if !isASCII(l) {
			labels[i] = "xn--" + punyLabel([]rune(l))
		}
	}
	return strings.Join(labels, ".")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// punyLabel is RFC 3492.
func punyLabel(in []rune) string {
	const base, tmin, tmax, skew, damp = 36, 1, 26, 38, 700
	var out []byte
	for _, r := range in {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	b := len(out)
	h := b
	if b > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(128), 0, 72
	for h < len(in) {
		m := rune(utf8.MaxRune)
		for _, r := range in {
			if r >= n && r < m {
				m = r
			}
		}
		delta += int(m-n) * (h + 1)
		n = m
		for _, r := range in {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := max(tmin, min(tmax, k-bias))
				if q < t {
					break
				}
				out = append(out, digit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, digit(q))
			d := delta / 2
			if h == b {
				d = delta / damp
			}
			d += d / (h + 1)
			k := 0
			for ; d > (base-tmin)*tmax/2; k += base {
				d /= base - tmin
			}
			bias = k + (base-tmin+1)*d/(d+skew)
			delta = 0
			h++
		}
		delta++
		n++
	}
	return string(out)
}

func digit(d int) byte {
	if d < 26 {
		return byte('a' + d)
	}
	return byte('0' + d - 26)
}
