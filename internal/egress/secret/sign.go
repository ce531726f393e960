package secret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/paddock-sandbox/paddock"
)

const (
	algorithm = "AWS4-HMAC-SHA256"

	// longestHashed is the longest body that is read whole for the hash in its signature.
	// hashers is how many at once.
	longestHashed = 8 << 20
	hashers       = 4
)

// A signature is that of a request signed with placeholders.
type signature struct {
	id, key         entry
	region, service string
	at              time.Time
	headers         []string // signed headers
	slots           chan struct{}
}

// isSigned reports whether a request is signed with AWS SigV4.
func isSigned(h http.Header) bool {
	return strings.HasPrefix(h.Get("Authorization"), "AWS4-")
}

// signature parses the signature of r. It returns nil if there is none, or none with
// placeholders.
func (s *Set) signature(r *http.Request) (*signature, error) {
	for _, key := range s.entries {
		if key.SigV4 == "" {
			continue
		}
		for _, id := range s.entries {
			if id.Name != key.SigV4 {
				continue
			}
			signed, err := s.readSignature(r, id, key)
			if signed != nil || err != nil {
				return signed, err
			}
		}
	}
	return nil, nil
}

func (s *Set) readSignature(r *http.Request, id, key entry) (*signature, error) {
	authorization := strings.Join(r.Header.Values("Authorization"), ", ")
	if strings.Contains(r.URL.RawQuery, id.placeholder) && strings.Contains(strings.ToLower(r.URL.RawQuery), "x-amz-signature=") {
		return nil, fmt.Errorf("a URL that is signed with the placeholder of %s cannot be signed again; sign the request's header: %w", key.Name, paddock.Unsupported)
	}
	if !isSigned(r.Header) || !strings.Contains(authorization, id.placeholder) {
		return nil, nil
	}
	if len(r.Header.Values("Authorization")) > 1 || !strings.HasPrefix(authorization, algorithm+" ") {
		return nil, fmt.Errorf("a request that is signed with the placeholder of %s is signed again only with %s: %w", key.Name, algorithm, paddock.Unsupported)
	}
	signed := &signature{id: id, key: key, slots: s.slots}
	if err := signed.read(authorization, r.Header.Get("X-Amz-Date")); err != nil {
		return nil, fmt.Errorf("the signature with the placeholder of %s: %w: %w", key.Name, err, paddock.Invalid)
	}
	if sum := r.Header.Get("X-Amz-Content-Sha256"); strings.HasPrefix(sum, "STREAMING-AWS4-") {
		return nil, fmt.Errorf("a body in chunks that are signed each (%.60q) cannot be signed again; switch chunked signing off: %w", sum, paddock.Unsupported)
	}
	return signed, nil
}

// read parses "AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request,
// SignedHeaders=A;B, Signature=HEX".
func (s *signature) read(authorization, date string) error {
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil {
		return errors.New("no X-Amz-Date")
	}
	s.at = at
	parts := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(authorization, algorithm+" "), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[name] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if len(scope) != 5 || scope[0] != s.id.placeholder || scope[1] != date[:8] || scope[4] != "aws4_request" {
		return errors.New("its scope is not ID/DATE/REGION/SERVICE/aws4_request")
	}
	s.region, s.service = scope[2], scope[3]
	s.headers = strings.Split(parts["SignedHeaders"], ";")
	if len(s.headers) > 100 || parts["SignedHeaders"] == "" {
		return errors.New("it signs no headers, or too many")
	}
	return nil
}

// repeat signs r again.
func (s *signature) repeat(r *http.Request) error {
	sum, err := s.sum(r)
	if err != nil {
		return err
	}
	// Sign only the headers that the guest signed, because the others may change on the
	// way.
	plain := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{}}
	url := *r.URL
	plain.URL = &url
	for _, name := range s.headers {
		name = http.CanonicalHeaderKey(name)
		switch values := r.Header.Values(name); {
		case name == "Content-Length":
			plain.ContentLength = r.ContentLength
		case name != "Host" && name != "Authorization" && len(values) > 0:
			plain.Header[name] = values
		}
	}
	err = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: s.id.Value, SecretAccessKey: s.key.Value}, plain, sum, s.service, s.region, s.at, func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = strings.HasPrefix(s.service, "s3")
		o.DisableSessionToken = true // it is in the guest's header
	})
	if err != nil {
		return fmt.Errorf("sign a request again: %w", err)
	}
	r.Header.Set("Authorization", plain.Header.Get("Authorization"))
	r.Header.Set("X-Amz-Date", plain.Header.Get("X-Amz-Date"))
	return nil
}

// sum returns the hash of the body for the signature: the guest's, or a computed one.
func (s *signature) sum(r *http.Request) (string, error) {
	if sum := r.Header.Get("X-Amz-Content-Sha256"); sum != "" {
		return sum, nil
	}
	empty := sha256.Sum256(nil)
	if r.Body == nil || r.Body == http.NoBody {
		return hex.EncodeToString(empty[:]), nil
	}
	held, err := hold(r.Context(), r.Body, s.slots)
	if err != nil {
		return "", err
	}
	r.Body = held
	sum := sha256.Sum256(held.all)
	return hex.EncodeToString(sum[:]), nil
}

// held is a body that was read whole.
type held struct {
	*bytes.Reader
	all     []byte
	release func()
}

// hold reads body whole, when a slot is free.
func hold(ctx context.Context, body io.ReadCloser, slots chan struct{}) (*held, error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to sign a body: %w", ctx.Err())
	}
	release := sync.OnceFunc(func() { <-slots })
	all, err := io.ReadAll(io.LimitReader(body, longestHashed+1))
	if err == nil {
		err = body.Close()
	}
	if err == nil && len(all) > longestHashed {
		err = fmt.Errorf("a body of more than %d MiB is signed again only where X-Amz-Content-Sha256 has its sum: %w", longestHashed>>20, paddock.Unsupported)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("read a body to sign it: %w", err)
	}
	return &held{Reader: bytes.NewReader(all), all: all, release: release}, nil
}

// Close frees the slot.
func (h *held) Close() error {
	h.release()
	return nil
}
