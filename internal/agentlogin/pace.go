package agentlogin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// pause is the time after an attempt in which there is no other one, whether it succeeded or not, by any box of any
// process. Boxes could else make the server block the login by asking all the time.
const pause = 30 * time.Second

// attemptName is the file beside a lock that has the last attempt. Whoever has the lock may read and write it.
const attemptName = "attempt"

// An attempt is the last exchange of a login. It has no token.
type attempt struct {
	At     int64  `json:"at"`     // Unix time in milliseconds
	Of     string `json:"of"`     // the digest of the refresh token that was sent
	Done   bool   `json:"done"`   // there are new tokens
	Status int    `json:"status"` // of an answer that refused; 0 is no answer
	Name   string `json:"name"`   // of its error
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// paced returns the answer to a request that comes too early after the last attempt: its tokens, however long they are
// valid, or that it failed. A refresh token that is another one since then is of a new login outside.
func (h *held) paced(was tokens) (gatewayclient.LoginAnswer, bool) {
	data, err := os.ReadFile(filepath.Join(h.lock, attemptName))
	if err != nil {
		return gatewayclient.LoginAnswer{}, false // there was none; if it cannot be read, it cannot be written either
	}
	var a attempt
	if json.Unmarshal(data, &a) != nil {
		return gatewayclient.LoginAnswer{}, false
	}
	since := time.Since(time.UnixMilli(a.At))
	switch {
	case since < 0 || since >= pause: // the clock may have been set back
		return gatewayclient.LoginAnswer{}, false
	case a.Done:
		return h.answer(was), true
	case a.Of != digest(was.refresh):
		return gatewayclient.LoginAnswer{}, false
	case a.Status != 0:
		return refused(a.Status, errServer{a.Name}), true
	}
	return failure("the login's server was asked less than a minute ago, without tokens"), true
}

// attempt asks once, and writes down before that it does. Without that it does not ask.
func (h *held) attempt(was tokens, ask func() (tokens, int, error)) (tokens, int, error) {
	a := attempt{Of: digest(was.refresh)}
	if h.note(a) != nil {
		return tokens{}, 0, errors.New("nothing can be written beside the login's lock, so no tokens are asked for; is the disk full?")
	}
	now, status, err := ask()
	a.Done, a.Status = err == nil, status
	var e errServer
	if errors.As(err, &e) {
		a.Name = e.name
	}
	if failed := h.note(a); failed != nil && err != nil {
		return now, status, errors.Join(err, failed)
	}
	return now, status, err // new tokens must be stored, whether the note could be written or not
}

func (h *held) note(a attempt) error {
	a.At = time.Now().UnixMilli()
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(h.lock, attemptName), data, 0o600)
}
