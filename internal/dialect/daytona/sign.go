package daytona

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/paddock-sandbox/paddock"
)

// Clients sign URLs of files themselves, with a key that they ask for. Each API key has a key of its own for a sandbox, so
// that a URL ends with the API key of its maker.

// maxSigners bounds the API keys that can have signed for a sandbox.
const maxSigners = 16

// A signer is an API key that may sign, by its ID, and the key that it signs with.
type signer struct {
	Who string `json:"who"`
	Key string `json:"key"`
}

func newSigner(who string) signer { return signer{who, rand.Text()} }

// signTable returns the routes of keys that sign. Who has one can write files, so none of them only looks.
func signTable() []route {
	return []route{
		{"GET /api/sandbox/{id}/signing-key", (*call).signingKey, false},
		{"POST /api/sandbox/{id}/signing-key/rotate", (*call).rotateSigningKey, false},
	}
}

// signingKey handles GET …/signing-key. The first time it makes one.
func (c *call) signingKey() error {
	rec, err := c.signs()
	if err != nil {
		return err
	}
	own := func(s signer) bool { return s.Who == c.caller.Who }
	if i := slices.IndexFunc(rec.Signers, own); i >= 0 {
		return c.json(http.StatusOK, rec.Signers[i].Key)
	}
	key := newSigner(c.caller.Who)
	_, err = c.change(func(rec *record) error {
		if i := slices.IndexFunc(rec.Signers, own); i >= 0 { // a parallel request made it
			key = rec.Signers[i]
			return nil
		}
		var all []signer
		for _, s := range rec.Signers {
			if _, err := c.h.o.Signer(c.ctx, rec.Tenant, s.Who); !errors.Is(err, paddock.Denied) {
				all = append(all, s)
			}
		}
		if len(all) >= maxSigners {
			return refuse(http.StatusConflict, paddock.Exhausted, "%d API keys sign URLs of this sandbox already: rotate its signing key, which ends all of them", len(all))
		}
		all = append(all, key)
		rec.Signers = all
		return nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, key.Key)
}

// rotateSigningKey handles POST …/signing-key/rotate. It ends every signed URL of the sandbox's files.
func (c *call) rotateSigningKey() error {
	if _, err := c.signs(); err != nil {
		return err
	}
	key := newSigner(c.caller.Who)
	_, err := c.change(func(rec *record) error {
		rec.Signers = []signer{key}
		return nil
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, key.Key)
}

func (c *call) signs() (record, error) {
	_, rec, err := c.box()
	if err == nil && (c.h.o.Signer == nil || c.caller.Who == "") {
		err = cannot("signed URLs of files: this server has no keys that could end them")
	}
	return rec, err
}

// fileSignature signs a request for a file, as Daytona's clients of July 2026 do.
func fileSignature(key, method, path, expires string) string {
	sum := hmac.New(sha256.New, []byte(key))
	_, _ = sum.Write([]byte("v1:files:" + method + ":" + path + ":" + expires)) // it never fails
	return "v1_" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// bySignature finds who signed the URL of a request for a file. Every refusal is one answer.
func (c *call) bySignature() error {
	q := c.URL.Query()
	bad := refuse(http.StatusUnauthorized, paddock.Denied, "the signature of the URL is not good for this file, or has ended")
	if c.h.o.Signer == nil || len(q["path"]) != 1 || len(q["expires"]) != 1 || len(q["signature"]) != 1 {
		return bad
	}
	text := q.Get("expires")
	end, err := strconv.ParseInt(text, 10, 64)
	if err != nil || end < 0 || strconv.FormatInt(end, 10) != text || end > 0 && c.h.now().Unix() >= end {
		return bad
	}
	c.h.mu.Lock()
	b := c.h.boxes[paddock.ID(c.PathValue("id"))] // a name is one of a tenant
	c.h.mu.Unlock()
	if b == nil {
		return bad
	}
	rec, ok := b.record()
	if !ok {
		return bad
	}
	i := slices.IndexFunc(rec.Signers, func(s signer) bool {
		return hmac.Equal([]byte(fileSignature(s.Key, c.Method, q.Get("path"), text)), []byte(q.Get("signature")))
	})
	if i < 0 {
		return bad
	}
	caller, err := c.h.o.Signer(c.ctx, rec.Tenant, rec.Signers[i].Who)
	if errors.Is(err, paddock.Denied) {
		return bad
	}
	if err != nil {
		return err
	}
	c.caller = caller
	c.ctx = c.h.o.Mark(c.ctx, c.Request, caller.Tenant, caller.Who)
	return nil
}
