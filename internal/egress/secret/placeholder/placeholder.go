// Package placeholder makes the texts that stand for secrets inside a sandbox. It is apart from package secret, which
// replaces them in requests, because every owner of a sandbox needs the placeholders and none needs HTTP or signatures.
package placeholder

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

const (
	// shortestValue is the minimum length of a value. A shorter one would match other text
	// in answers.
	shortestValue = 6
	longestValue  = 16 << 10
)

// New checks secrets and returns the placeholder of each, in their order. A placeholder follows from seed, the name and
// the kind of the value, so the same seed gives the same placeholders after a pause or an update. A value that is too
// short to be taken out of answers (under 6 bytes), too long (over 16 KiB), or that cannot stand at its place is
// Invalid. No error holds a value.
func New(seed []byte, secrets []paddock.Secret) ([]string, error) {
	list := make([]string, len(secrets))
	for i, s := range secrets {
		err := check(s)
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %s: %w: %w", i, s.Name, err, paddock.Invalid)
		}
		if list[i], err = placeholder(seed, s); err != nil {
			return nil, fmt.Errorf("secrets[%d]: %s: %w", i, s.Name, err)
		}
	}
	return list, nil
}

// Placed reports whether a secret may be put into requests at a place. The default is everywhere but in bodies. A key
// for signatures is put nowhere.
func Placed(s paddock.Secret, p paddock.SecretPlace) bool {
	if s.SigV4 != "" {
		return false
	}
	if len(s.Places) == 0 {
		return p != paddock.SecretBody
	}
	return slices.Contains(s.Places, p)
}

func check(s paddock.Secret) error {
	switch n := len(s.Value); {
	case n < shortestValue:
		return fmt.Errorf("its value has less than %d bytes, and could not be kept out of answers", shortestValue)
	case n > longestValue:
		return fmt.Errorf("its value has more than %d bytes", longestValue)
	}
	if Placed(s, paddock.SecretHeader) && strings.ContainsFunc(s.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("its value has a line end or another control character, and cannot stand in a header")
	}
	if len(s.End) > longestEnd || strings.Trim(s.End, digits+small+large) != "" {
		return fmt.Errorf("the end of its placeholder is not up to %d letters and digits", longestEnd)
	}
	return nil
}

const (
	digits = "0123456789"
	small  = "abcdefghijklmnopqrstuvwxyz"
	large  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

const (
	longestEnd = 32

	shortest = 16  // of placeholders
	longest  = 512 // of placeholders; longer values have shorter ones
)

// prefixes returns well-known prefixes of keys, which disclose nothing of a key.
func prefixes() []string {
	return []string{"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-or-v1-", "sk-", "github_pat_", "ghp_", "gho_", "ghs_", "ghu_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "hf_", "gsk_", "r8_"}
}

// placeholder returns a text that a program accepts as a key like value: the same known
// prefix, the same kinds of characters, and the same length within bounds. It depends on
// the seed, the name and these properties only, so it stays the same for another value of
// the same kind.
//
// An end that the caller chose comes after at least as many fresh characters as the shortest
// placeholder has. So what a sandbox learnt from an earlier one, or whoever reads the end in a
// file, has no placeholder: the gateway replaces whole ones only, and only those of its own
// sandbox. A placeholder is no secret in any case. The end says nothing of the value either.
func placeholder(seed []byte, s paddock.Secret) (string, error) {
	name, value, prefix := s.Name, s.Value, ""
	for _, p := range prefixes() {
		if strings.HasPrefix(value, p) && len(value) >= len(p)+shortest {
			prefix = p
			break
		}
	}
	alphabet := alphabetOf(value[len(prefix):])
	size := min(max(len(value), shortest), longest) - len(prefix) - len(s.End)
	if s.End != "" {
		size = max(size, shortest)
	}
	// Two random bytes for each character make the modulo bias negligible.
	random, err := hkdf.Key(sha256.New, seed, nil, "paddock placeholder "+name, 2*size)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(prefix)
	for i := range size {
		b.WriteByte(alphabet[(int(random[2*i])<<8|int(random[2*i+1]))%len(alphabet)])
	}
	b.WriteString(s.End)
	return b.String(), nil
}

// alphabetOf returns the kinds of letters and digits that occur in s. It uses no other
// characters, because letters and digits are the same in every encoding.
func alphabetOf(s string) string {
	switch {
	case strings.Trim(s, digits) == "" && s != "":
		return digits
	case strings.Trim(s, digits+"abcdef") == "" && s != "":
		return digits + "abcdef"
	}
	var b strings.Builder
	for _, kind := range []string{digits, small, large} {
		if strings.ContainsAny(s, kind) {
			b.WriteString(kind)
		}
	}
	if b.Len() == 0 || b.String() == digits {
		return digits + small
	}
	return b.String()
}
