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

// alphabet has only characters that are unambiguous when read aloud, in lower case.
const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func encoding() *base32.Encoding {
	return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding)
}

// A parsed is the content of a key's text.
type parsed struct {
	id     string
	secret [randomness]byte
}

// sum returns the hash that is stored of the secret.
func (p parsed) sum() string {
	sum := sha256.Sum256(p.secret[:])
	return hex.EncodeToString(sum[:])
}

// text returns the text of the key.
func (p parsed) text() string {
	tail := binary.BigEndian.AppendUint32(p.secret[:], p.check())
	return prefix + p.id + "_" + encoding().EncodeToString(tail)
}

func (p parsed) check() uint32 {
	return crc32.ChecksumIEEE(append([]byte(prefix+p.id+"_"), p.secret[:]...))
}

// fresh makes a random key.
func fresh() parsed {
	var id [idBytes]byte
	var p parsed
	_, _ = rand.Read(id[:]) // it never fails
	_, _ = rand.Read(p.secret[:])
	p.id = encoding().EncodeToString(id[:])
	return p
}

// hexPrefix is the prefix of a key in the format that E2B's older clients require: the same
// key in hexadecimal.
const hexPrefix = "e2b_"

// hexText returns the text of the key in that format.
func (p parsed) hexText() string {
	id, _ := encoding().DecodeString(p.id) // valid, because it was encoded here
	data := slices.Concat(id, p.secret[:])
	return hexPrefix + hex.EncodeToString(binary.BigEndian.AppendUint32(data, p.check()))
}

// parseHex parses exactly the format of hexText.
func parseHex(text string) (parsed, error) {
	var p parsed
	data, err := hex.DecodeString(strings.TrimPrefix(text, hexPrefix))
	if err != nil || len(data) != idBytes+tailBytes {
		return p, errors.New("it has the wrong length or invalid characters")
	}
	p.id = encoding().EncodeToString(data[:idBytes])
	copy(p.secret[:], data[idBytes:])
	if p.hexText() != text {
		return p, errors.New("it was cut or mistyped")
	}
	return p, nil
}

// parse parses exactly the formats of text and hexText.
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
		return p, errors.New("it has invalid characters")
	}
	if _, err := encoding().DecodeString(id); err != nil {
		return p, errors.New("it has invalid characters")
	}
	p.id = id
	copy(p.secret[:], data)
	if binary.BigEndian.Uint32(data[randomness:]) != p.check() || p.text() != text {
		return p, errors.New("it was cut or mistyped")
	}
	return p, nil
}
