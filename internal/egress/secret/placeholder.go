package secret

import (
	"crypto/hkdf"
	"crypto/sha256"
	"strings"
)

const (
	shortest = 16  // of placeholders
	longest  = 512 // of placeholders: a value that is longer has a shorter one
)

// prefixes begin keys of kinds that programs know, and tell nothing of a key.
func prefixes() []string {
	return []string{"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-or-v1-", "sk-", "github_pat_", "ghp_", "gho_", "ghs_", "ghu_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "hf_", "gsk_", "r8_"}
}

// placeholder makes one that looks like value to a program that checks keys: the
// same known prefix, the same kinds of letters, the same length within bounds. It
// follows from seed and name, so that it stays when the value of the same kind
// is another, and tells nothing of the value but these.
func placeholder(seed []byte, name, value string) (string, error) {
	prefix := ""
	for _, p := range prefixes() {
		if strings.HasPrefix(value, p) && len(value) >= len(p)+shortest {
			prefix = p
			break
		}
	}
	alphabet := alphabetOf(value[len(prefix):])
	size := min(max(len(value), shortest), longest) - len(prefix)
	// Two bytes for each letter: what is left over of a division by less than
	// 64 is even enough.
	random, err := hkdf.Key(sha256.New, seed, nil, "paddock placeholder "+name, 2*size)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(prefix)
	for i := range size {
		b.WriteByte(alphabet[(int(random[2*i])<<8|int(random[2*i+1]))%len(alphabet)])
	}
	return b.String(), nil
}

// alphabetOf gives the letters and digits of the kinds that are in s. No others:
// they are the same in every encoding.
func alphabetOf(s string) string {
	const (
		digits = "0123456789"
		small  = "abcdefghijklmnopqrstuvwxyz"
		large  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	)
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
