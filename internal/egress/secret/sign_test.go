package secret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/paddock-sandbox/paddock"
)

// cloud returns a set for signed requests, with the placeholders of the identifier, the key
// and the token.
func cloud(t *testing.T) (set *Set, id, key, token string) {
	t.Helper()
	secrets := []paddock.Secret{
		{Name: "ID", Value: "AKIAREALREALREALREAL"}, {Name: "KEY", Value: "real/key+that+nobody+has+to+know/at+all", SigV4: "ID"}, {Name: "TOKEN", Value: "the-real-session-token"},
	}
	s := store(t, secrets...)
	env := s.Environment()
	return s.Bound(secrets), env["ID"], env["KEY"], env["TOKEN"]
}

// sign signs r as client programs do.
func sign(t *testing.T, r *http.Request, service string, c aws.Credentials, sum string) {
	t.Helper()
	err := v4.NewSigner().SignHTTP(context.Background(), c, r, sum, service, "eu-north-1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = service == "s3"
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARequestSignedWithPlaceholdersIsSignedAgain(t *testing.T) {
	set, id, key, token := cloud(t)
	body := strings.Repeat("body", 1000)
	sum := sha256.Sum256([]byte(body))
	for _, service := range []string{"s3", "dynamodb"} {
		for _, named := range []string{"", "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", hex.EncodeToString(sum[:])} {
			signed := func(c aws.Credentials) *http.Request {
				r := request(t, "PUT", "https://bucket.example/a%20b/ä+c?x=1&empty&b=%2F", body)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-Amz-Target", "a  b")
				hash := hex.EncodeToString(sum[:])
				if named != "" {
					r.Header.Set("X-Amz-Content-Sha256", named)
					hash = named
				}
				sign(t, r, service, c, hash)
				return r
			}
			got := signed(aws.Credentials{AccessKeyID: id, SecretAccessKey: key, SessionToken: token})
			got.Header.Set("Accept-Encoding", "identity") // parts that are not signed may change
			want := signed(aws.Credentials{AccessKeyID: "AKIAREALREALREALREAL", SecretAccessKey: "real/key+that+nobody+has+to+know/at+all", SessionToken: "the-real-session-token"})
			used, err := set.Head(got)
			if err != nil || !slices.Equal(used, []string{"ID", "KEY", "TOKEN"}) {
				t.Fatalf("%s, %q: %v, %v", service, named, used, err)
			}
			if a, b := got.Header.Get("Authorization"), want.Header.Get("Authorization"); a != b {
				t.Errorf("%s, %q: signed\n%s, not\n%s", service, named, a, b)
			}
			if b, err := io.ReadAll(got.Body); err != nil || string(b) != body {
				t.Errorf("%s, %q: the body has %d bytes, %v", service, named, len(b), err)
			}
			if err := got.Body.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestASignatureThatCannotBeRepeatedIsRefusedInWords(t *testing.T) {
	set, id, key, _ := cloud(t)
	signed := func() *http.Request {
		r := request(t, "PUT", "https://bucket.example/a", "x")
		r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		sign(t, r, "s3", aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, "UNSIGNED-PAYLOAD")
		return r
	}
	for name, change := range map[string]func(*http.Request){
		"chunks that are signed": func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") },
		"a presigned URL":        func(r *http.Request) { r.URL.RawQuery = "X-Amz-Credential=" + id + "%2Fx&X-Amz-Signature=0" },
		"another algorithm":      func(r *http.Request) { r.Header.Set("Authorization", "AWS4-ECDSA-P256-SHA256 Credential="+id+"/x") },
		"two of them":            func(r *http.Request) { r.Header.Add("Authorization", r.Header.Get("Authorization")) },
		"no date":                func(r *http.Request) { r.Header.Del("X-Amz-Date") },
		"another day":            func(r *http.Request) { r.Header.Set("X-Amz-Date", "20260103T030405Z") },
		"a body that is too long": func(r *http.Request) {
			r.Header.Del("X-Amz-Content-Sha256")
			r.Body = io.NopCloser(io.LimitReader(zeros{}, longestHashed+1))
		},
	} {
		r := signed()
		change(r)
		if used, err := set.Head(r); !errors.Is(err, paddock.Unsupported) && !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v, %v", name, used, err)
		}
	}
	if len(set.slots) != 0 {
		t.Error("a body is still held")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestAnotherKeysSignatureStaysAsItIs(t *testing.T) {
	set, _, _, _ := cloud(t)
	r := request(t, "GET", "https://bucket.example/a", "")
	sign(t, r, "s3", aws.Credentials{AccessKeyID: "AKIAOWNOWNOWNOWNOWNO", SecretAccessKey: "own"}, "UNSIGNED-PAYLOAD")
	before := r.Header.Get("Authorization")
	if used, err := set.Head(r); err != nil || used != nil || r.Header.Get("Authorization") != before {
		t.Errorf("%v, %v, %s", used, err, r.Header.Get("Authorization"))
	}
}

func TestTheSecretKeyItselfGoesNowhere(t *testing.T) {
	set, _, key, _ := cloud(t)
	r := request(t, "GET", "https://bucket.example/?"+key, "")
	r.Header.Set("X", key)
	if used, err := set.Head(r); err != nil || used != nil || r.Header.Get("X") != key || r.URL.RawQuery != key {
		t.Errorf("%v, %v, %q, %q", used, err, r.Header, r.URL.RawQuery)
	}
}
