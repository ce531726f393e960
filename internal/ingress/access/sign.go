package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what is signed.
const (
	version     = "v2"
	longestKey  = 64
	longestPath = 1024
	longestText = 2048
)

// A claim is what a signature is over, besides its end and path.
type claim struct {
	id    paddock.ID
	token string // of the incarnation
	epoch int64
	port  int
}

// A pass is what a signed text says of itself.
type pass struct {
	expires time.Time // whole seconds
	key     string    // the ID of the key that it was made with, and ends with
	path    string    // below which it holds; empty is everything
}

// seal signs: a text that can stand in a URL and in a cookie.
func seal(key []byte, c claim, p pass) string {
	end := strconv.FormatInt(p.expires.Unix(), 10)
	return version + "." + end + "." + p.key + "." + encoding().EncodeToString([]byte(p.path)) + "." + encoding().EncodeToString(sum(key, c, p))
}

// open tells what a text allows of a port. Every refusal is one answer, but that
// one who held a good text is told that its time is over.
func open(key []byte, c claim, text string, now time.Time) (pass, error) {
	p, mac, ok := parse(text)
	if !ok || !hmac.Equal(mac, sum(key, c, p)) {
		return pass{}, fmt.Errorf("the signature of the URL is not good for this port: %w", paddock.Denied)
	}
	if !now.Before(p.expires) {
		return pass{}, fmt.Errorf("the signed URL ended at %s: %w", p.expires.UTC().Format(time.RFC3339), paddock.Denied)
	}
	return p, nil
}

func encoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }

// parse reads a text that is written in the one way that seal writes.
func parse(text string) (p pass, mac []byte, ok bool) {
	if len(text) > longestText {
		return pass{}, nil, false
	}
	parts := strings.Split(text, ".")
	if len(parts) != 5 || parts[0] != version {
		return pass{}, nil, false
	}
	end, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || end < 0 || end > 1<<40 || strconv.FormatInt(end, 10) != parts[1] {
		return pass{}, nil, false
	}
	if !goodKey(parts[2]) {
		return pass{}, nil, false
	}
	below, err := encoding().DecodeString(parts[3])
	if err != nil || strings.ContainsAny(parts[3], "\r\n") || len(below) > 0 && !goodPrefix(string(below)) {
		return pass{}, nil, false
	}
	mac, err = encoding().DecodeString(parts[4])
	if err != nil || strings.ContainsAny(parts[4], "\r\n") || len(mac) != sha256.Size {
		return pass{}, nil, false
	}
	return pass{time.Unix(end, 0), parts[2], string(below)}, mac, true
}

// sum is the signature. Each part has its length before it, so that no two claims
// are one text.
func sum(key []byte, c claim, p pass) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{
		"paddock port", version, string(c.id), c.token, strconv.FormatInt(c.epoch, 10), strconv.Itoa(c.port),
		p.key, p.path, strconv.FormatInt(p.expires.Unix(), 10),
	} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// mark names a signed text, which it does not tell.
func mark(text string) string {
	sum := sha256.Sum256([]byte(text))
	return encoding().EncodeToString(sum[:])
}

// goodKey tells whether an ID of a key can stand in a signed text.
func goodKey(id string) bool {
	return id != "" && len(id) <= longestKey && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// goodPrefix tells whether a path can bound others: one that begins at the root,
// and has one spelling.
func goodPrefix(p string) bool {
	if len(p) > longestPath || !strings.HasPrefix(p, "/") || !plainPath(p) {
		return false
	}
	for _, c := range []byte(p) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"%;?#`, c) >= 0 {
			return false
		}
	}
	return true
}

// plainPath tells whether all who read a path read the same: without steps up or
// in place, empty names, and what some take for a slash.
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && !strings.ContainsAny(p, "\\\x00") && (path.Clean(p) == p || path.Clean(p)+"/" == p)
}

// allows tells whether a request's path is below that of a pass.
func (p pass) allows(u *url.URL) bool {
	if p.path == "" {
		return true
	}
	base := strings.TrimSuffix(p.path, "/")
	if u.RawPath != "" || !plainPath(u.Path) { // a spelling that the server inside may read in another way
		return false
	}
	for name := range strings.SplitSeq(u.Path, "/") {
		if head, _, _ := strings.Cut(name, ";"); head == "." || head == ".." || strings.Contains(name, "%") {
			return false
		}
	}
	return u.Path == base || strings.HasPrefix(u.Path, base+"/")
}
