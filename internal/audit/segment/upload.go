package segment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Bucket is a place in a store that speaks S3.
type Bucket struct {
	Endpoint string // such as https://s3.eu-central-1.amazonaws.com; plain http only to a loopback address
	Region   string
	Name     string
	Prefix   string // of the names in it, such as "server-1/"

	AccessKey, SecretKey string

	// Client makes the requests. Nil uses one with a time limit. It follows no redirect.
	Client *http.Client
}

// String returns all fields but the secret key, so that no log contains it.
func (b Bucket) String() string { return b.Endpoint + "/" + b.Name + "/" + b.Prefix }

// GoString returns the same as String.
func (b Bucket) GoString() string { return b.String() }

const (
	requestTime  = 5 * time.Minute
	firstPause   = time.Second
	longestPause = 5 * time.Minute

	// most is how large a file is uploaded: a segment, the lines that ended it,
	// and what a chain adds.
	most = 2*MaxSize + 16<<20
)

// An Uploader copies finished segments to a bucket.
type Uploader struct {
	dir *os.Root
	s3  *store
	log *slog.Logger
}

// A store makes requests about one bucket.
type store struct {
	b      Bucket
	base   *url.URL
	client http.Client
}

// NewUploader checks the bucket's fields and makes no request. log may be nil.
func NewUploader(dir *os.Root, b Bucket, log *slog.Logger) (*Uploader, error) {
	s3, err := b.store()
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Uploader{dir, s3, log}, nil
}

// store checks the bucket's words.
func (b Bucket) store() (*store, error) {
	base, err := url.Parse(b.Endpoint)
	if err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || strings.Trim(base.Path, "/") != "" {
		return nil, fmt.Errorf("the endpoint of a bucket is https://HOST[:PORT], and not what was given: %w", paddock.Invalid)
	}
	if base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())) {
		return nil, fmt.Errorf("the endpoint %s is not https, and not on this machine: %w", base.Host, paddock.Denied)
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(b.Name) || !regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9_.-]*/)*$`).MatchString(b.Prefix) {
		return nil, fmt.Errorf("bucket %q with prefix %q: a name is of 3 to 63 lower-case letters, digits, dots and dashes; a prefix is empty, or of plain words that each end with a slash: %w", b.Name, b.Prefix, paddock.Invalid)
	}
	if b.Region == "" || b.AccessKey == "" || b.SecretKey == "" {
		return nil, fmt.Errorf("bucket %s has no region or no keys: %w", b.Name, paddock.Invalid)
	}
	s := &store{b: b, base: base, client: http.Client{Timeout: requestTime}}
	if b.Client != nil {
		s.client = *b.Client
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// Run uploads finished segments at once and whenever wake receives. After a failure it retries with growing pauses. It
// returns when ctx ends.
func (u *Uploader) Run(ctx context.Context, wake <-chan struct{}) {
	for failures := 0; ; {
		err := u.Sweep(ctx)
		var again <-chan time.Time
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			pause := min(longestPause, firstPause<<min(failures, 10))
			failures++
			u.log.Error("segments of the record could not be uploaded", "failures", failures, "pause", pause, "err", err)
			again = time.After(pause)
		}
		select {
		case <-wake:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep uploads the finished segments, oldest first, and stops at the first failure. It keeps uploaded ones in the
// directory "sent".
func (u *Uploader) Sweep(ctx context.Context) error {
	names, err := list(u.dir, ".")
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, part) {
			continue
		}
		if err := u.upload(ctx, name); err != nil {
			return fmt.Errorf("upload %s to bucket %s: %w", name, u.s3.b.Name, err)
		}
		if err := u.dir.Rename(name, sentDir+"/"+name); err != nil {
			return fmt.Errorf("note that %s was uploaded: %w", name, err)
		}
	}
	return nil
}

func (u *Uploader) upload(ctx context.Context, name string) error {
	f, err := u.dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return err
	}
	if len(data) > most {
		return fmt.Errorf("it is larger than any segment: %w", paddock.Invalid)
	}
	code, _, err := u.s3.request(ctx, http.MethodPut, name, data)
	switch {
	case err != nil:
		return err
	case code == http.StatusOK:
		return nil
	case code != http.StatusPreconditionFailed && code != http.StatusConflict:
		return refused(code)
	}
	// One of the name is there: from an earlier try, or from someone else.
	code, there, err := u.s3.request(ctx, http.MethodGet, name, nil)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return refused(code)
	}
	if !bytes.Equal(there, data) {
		return fmt.Errorf("the bucket has another one of that name: %w", paddock.Exists)
	}
	return nil
}

// refused gives an answer's status a kind.
func refused(code int) error {
	kind := paddock.Unavailable
	if code == http.StatusForbidden || code == http.StatusUnauthorized {
		kind = paddock.Denied
	}
	return fmt.Errorf("the store answers %d (%s): %w", code, http.StatusText(code), kind)
}

// request makes one request about an object. What is there is not overwritten by it.
func (s *store) request(ctx context.Context, method, name string, data []byte) (code int, body []byte, err error) {
	answer, err := s.send(ctx, method, s.b.Prefix+name, nil, data)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return 0, nil, errors.Join(reason(ctx), err)
	}
	return answer.StatusCode, body, nil
}

// send makes one signed request. The answer's body is the caller's to close.
func (s *store) send(ctx context.Context, method, key string, query url.Values, data []byte) (*http.Response, error) {
	to := *s.base
	to.Path = "/" + s.b.Name + "/" + key
	to.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPut {
		r.Header.Set("If-None-Match", "*")
		r.Header.Set("Content-Type", "application/jsonl")
	}
	sum := sha256.Sum256(data)
	payload := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", payload)
	keys := aws.Credentials{AccessKeyID: s.b.AccessKey, SecretAccessKey: s.b.SecretKey}
	err = v4.NewSigner().SignHTTP(ctx, keys, r, payload, "s3", s.b.Region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err != nil {
		return nil, fmt.Errorf("sign a request: %w", err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, errors.Join(reason(ctx), err)
	}
	return answer, nil
}

// reason gives what went wrong on the way a kind.
func reason(ctx context.Context) error {
	if ctx.Err() != nil {
		return paddock.Canceled
	}
	return paddock.Unavailable
}

var _ audit.Sealer = (*Writer)(nil)
