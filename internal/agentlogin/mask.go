package agentlogin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/secret/placeholder"
)

// tokenMax is the length of the longest token, and of the longest placeholder.
const tokenMax = 8 << 10

// isToken reports whether s can be a token: printable ASCII that stands in a header and in JSON as it is.
func isToken(s string) bool {
	return len(s) >= 8 && len(s) <= tokenMax && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}

// mask makes a fresh placeholder for a token. A JWT keeps its claims, which programs read, and gets another signature.
func mask(token string) (string, error) {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails
	if head, claims, signature, ok := splitJWT(token); ok {
		random := make([]byte, len(signature))
		_, _ = rand.Read(random)
		return head + "." + claims + "." + base64.RawURLEncoding.EncodeToString(random)[:len(signature)], nil
	}
	list, err := placeholder.New(seed, []paddock.Secret{{Name: "TOKEN", Value: token}})
	if err != nil {
		return "", fmt.Errorf("make a placeholder: %w", err)
	}
	return list[0], nil
}

// shortestSignature is the length from which another signature is a placeholder that nobody guesses.
const shortestSignature = 22

// splitJWT returns the parts of a JWT: header and claims are JSON objects, and the signature is long enough.
func splitJWT(s string) (head, claims, signature string, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || len(parts[2]) < shortestSignature {
		return "", "", "", false
	}
	for _, p := range parts[:2] {
		var m map[string]json.RawMessage
		data, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil || json.Unmarshal(data, &m) != nil || m == nil {
			return "", "", "", false
		}
	}
	if _, err := base64.RawURLEncoding.DecodeString(parts[2]); err != nil {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// jwtExpiry returns when a JWT expires, or zero.
func jwtExpiry(s string) time.Time {
	_, claims, _, ok := splitJWT(s)
	if !ok {
		return time.Time{}
	}
	var c struct {
		Exp float64 `json:"exp"`
	}
	data, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil || json.Unmarshal(data, &c) != nil || c.Exp <= 0 || c.Exp > 1e12 {
		return time.Time{}
	}
	return time.Unix(int64(c.Exp), 0)
}
