// Package signature is how E2B's clients sign addresses of files: with the token of a
// sandbox, so that who has the address can read or write that one file.
package signature

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
)

// Of gives what the query of a request for /files is signed with by the holder of a
// token: the parameter signature. Whether it has expired it does not look at.
func Of(token, method string, q url.Values) string {
	operation := "read"
	if method == http.MethodPost {
		operation = "write"
	}
	text := q.Get("path") + ":" + operation + ":" + q.Get("username") + ":" + token
	if until := q.Get("signature_expiration"); until != "" {
		text += ":" + until
	}
	sum := sha256.Sum256([]byte(text))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// Shown tells whether the query shows the signature of whoever holds the token. No
// token signs nothing.
func Shown(token, method string, q url.Values) bool {
	shown := q.Get("signature")
	return token != "" && shown != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(Of(token, method, q))) == 1
}
