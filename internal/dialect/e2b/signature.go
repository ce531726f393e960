package e2b

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
)

// Signature returns the parameter signature of a request for /files. With it, the holder of
// a sandbox's token lets others read or write one file. If the path is empty, an upload
// names its files, so the signature lets others write every file. It does not check the
// expiry.
func Signature(token, method string, q url.Values) string {
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

// Signed reports whether a query has the signature of the token. With an empty token it
// reports false.
func Signed(token, method string, q url.Values) bool {
	shown := q.Get("signature")
	return token != "" && shown != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(Signature(token, method, q))) == 1
}
