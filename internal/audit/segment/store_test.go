package segment_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/paddock-sandbox/paddock/internal/audit/segment"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMI"
	region    = "test-1"
)

// A store is a small server that speaks as much of S3 as is needed: signed
// requests, objects by path, and none that is overwritten.
type store struct {
	t *testing.T

	mu      sync.Mutex
	objects map[string][]byte // guarded by mu
	answer  int               // guarded by mu; in place of anything else, if it is not 0
	forget  bool              // guarded by mu; the connection ends before the answer
	puts    int               // guarded by mu
	page    int               // guarded by mu; how many names are in an answer; 0 is 1,000
	listing string            // guarded by mu; in place of a list, if it is not empty
	gets    map[string]int    // guarded by mu
	second  map[string][]byte // guarded by mu; what is served from the second time on
	held    bool              // guarded by mu; objects are served without end
}

// list answers ListObjectsV2.
func (s *store) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("list-type") != "2" || r.URL.Path != "/records/" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.listing != "" {
		_, _ = io.WriteString(w, s.listing)
		return
	}
	var keys []string
	for name := range s.objects {
		key := strings.TrimPrefix(name, "/records/")
		if rest, ok := strings.CutPrefix(key, q.Get("prefix")); ok && key > q.Get("continuation-token") && (q.Get("delimiter") == "" || !strings.Contains(rest, q.Get("delimiter"))) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	type content struct{ Key string }
	answer := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string   `xml:",omitempty"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}{EncodingType: q.Get("encoding-type")}
	for _, key := range keys {
		if len(answer.Contents) == cmp.Or(s.page, 1000) {
			answer.IsTruncated = true
			break
		}
		answer.NextContinuationToken = key
		if answer.EncodingType == "url" {
			key = url.QueryEscape(key)
		}
		answer.Contents = append(answer.Contents, content{key})
	}
	if !answer.IsTruncated {
		answer.NextContinuationToken = ""
	}
	data, err := xml.Marshal(answer)
	if err != nil {
		s.t.Error(err)
	}
	_, _ = w.Write(data)
}

func newStore(t *testing.T) (*store, segment.Bucket) {
	s := &store{t: t, objects: make(map[string][]byte), gets: make(map[string]int)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, segment.Bucket{Endpoint: server.URL, Region: region, Name: "records", Prefix: "a/b/", AccessKey: accessKey, SecretKey: secretKey}
}

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// signed tells whether a request is, with its body, by the key.
func (s *store) signed(r *http.Request, body []byte) bool {
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || r.Header.Get("X-Amz-Content-Sha256") != payload {
		return false
	}
	again := r.Clone(r.Context())
	again.URL.Host, again.ContentLength = r.Host, int64(len(body))
	again.Header.Del("Authorization")
	for _, added := range []string{"User-Agent", "Accept-Encoding", "Content-Length"} {
		again.Header.Del(added)
	}
	keys := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}
	err = v4.NewSigner().SignHTTP(r.Context(), keys, again, payload, "s3", region, at, func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, there := s.objects[r.URL.Path]
	switch {
	case s.answer != 0:
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(s.answer)
	case !s.signed(r, body):
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		s.puts++
		s.objects[r.URL.Path] = bytes.Clone(body)
		if s.forget {
			panic(http.ErrAbortHandler)
		}
	case r.Method == http.MethodGet && r.URL.Path == "/records/":
		s.list(w, r)
	case r.Method == http.MethodGet && there && s.held:
		for {
			if _, err := w.Write(have); err != nil {
				return
			}
		}
	case r.Method == http.MethodGet && there:
		s.gets[r.URL.Path]++
		if other := s.second[r.URL.Path]; other != nil && s.gets[r.URL.Path] > 1 {
			have = other
		}
		_, _ = w.Write(have)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
