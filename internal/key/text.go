package key

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
)

// Sizes in the text of a key, in characters of five bits each.
const (
	prefix     = "pk_"
	idBytes    = 10
	idSize     = 16
	randomness = 32 // bytes
	tailBytes  = randomness + crc32.Size
	tailSize   = 58
	textSize   = len(prefix) + idSize + 1 + tailSize
)

// alphabet is what is read aloud without doubt, in lower case.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func encoding() *base32.Encoding {
	return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)
}

// A parsed key is what its text says.
type parsed struct {
	id     string
	secret [randomness]byte
}

// sum is what is kept of the secret.
func (p parsed) sum() string {
	sum := sha256.Sum256(p.secret[:])
	return hex.EncodeToString(sum[:])
}

// text is what the bearer gets.
func (p parsed) text() string {
	tail := binary.BigEndian.AppendUint32(p.secret[:], p.check())
	return prefix + p.id + "_" + encoding().EncodeToString(tail)
}

func (p parsed) check() uint32 {
	return crc32.ChecksumIEEE(append([]byte(prefix+p.id+"_"), p.secret[:]...))
}

// fresh makes a key that nobody can guess.
func fresh() parsed {
	var id [idBytes]byte
	var p parsed
	_, _ = rand.Read(id[:]) // it never fails
	_, _ = rand.Read(p.secret[:])
	p.id = encoding().EncodeToString(id[:])
	return p
}

// hexPrefix begins a key in the grammar of E2B's clients, which older ones insist
// on: the same key, in digits of base 16.
const hexPrefix = "e2b_"

// hexText is the other text that the bearer may get.
func (p parsed) hexText() string {
	id, _ := encoding().DecodeString(p.id) // it was encoded here
	data := slices.Concat(id, p.secret[:])
	return hexPrefix + hex.EncodeToString(binary.BigEndian.AppendUint32(data, p.check()))
}

// parseHex reads it. It takes exactly what hexText writes.
func parseHex(text string) (parsed, error) {
	var p parsed
	data, err := hex.DecodeString(strings.TrimPrefix(text, hexPrefix))
	if err != nil || len(data) != idBytes+tailBytes {
		return p, errors.New("it has the wrong length, or characters that no key has")
	}
	p.id = encoding().EncodeToString(data[:idBytes])
	copy(p.secret[:], data[idBytes:])
	if p.hexText() != text {
		return p, errors.New("it was cut or mistyped")
	}
	return p, nil
}

// parse reads the text of a key. It takes exactly what text and hexText write.
func parse(text string) (parsed, error) {
	var p parsed
	if strings.HasPrefix(text, hexPrefix) {
		return parseHex(text)
	}
	if len(text) != textSize {
		return p, errors.New("it has the wrong length")
	}
	id, tail, found := strings.Cut(strings.TrimPrefix(text, prefix), "_")
	if !found || !strings.HasPrefix(text, prefix) || len(id) != idSize {
		return p, errors.New("a key begins with pk_ and its ID")
	}
	data, err := encoding().DecodeString(tail)
	if err != nil || len(data) != tailBytes {
		return p, errors.New("it has characters that no key has")
	}
	if _, err := encoding().DecodeString(id); err != nil {
		return p, errors.New("it has characters that no key has")
	}
	p.id = id
	copy(p.secret[:], data)
	if binary.BigEndian.Uint32(data[randomness:]) != p.check() || p.text() != text {
		return p, errors.New("it was cut or mistyped")
	}
	return p, nil
}
