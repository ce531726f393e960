package segment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// VerifyBucket does what [Verify] does, for the segments uploaded to a bucket: directly below its prefix, and not in
// subdirectories. It ignores objects without the name of a segment. It streams each object and keeps none. It does not
// trust the store: it checks the content like a file, and different content at a second read is an error.
func VerifyBucket(ctx context.Context, b Bucket, o chain.Options) (Series, error) {
	s3, err := b.store()
	if err != nil {
		return Series{}, err
	}
	return verify(&remote{ctx: ctx, s3: s3, sums: make(map[string][sha256.Size]byte)}, o)
}

// A remote place is a bucket.
type remote struct {
	ctx  context.Context // of the one call that it is made for
	s3   *store
	sums map[string][sha256.Size]byte // of what was read to its end
}

// Bounds of what a store may list.
const (
	pageMax  = 8 << 20   // bytes of an answer, which has at most 1,000 names of 1,024 bytes
	namesMax = 1 << 20   // segments: at one an hour, more than a hundred years
	tokenMax = 16 << 10  // of a token that asks for the next page
	pagesMax = 100 << 10 // answers, since one may hold no name of ours
)

// A listing is an answer of ListObjectsV2.
type listing struct {
	XMLName      xml.Name `xml:"ListBucketResult"`
	EncodingType string   `xml:"EncodingType"`
	IsTruncated  bool     `xml:"IsTruncated"`
	Next         string   `xml:"NextContinuationToken"`
	Contents     []struct {
		Key string `xml:"Key"`
	} `xml:"Contents"`
}

// readListing reads an answer, which anybody could have written.
func readListing(data []byte) (listing, error) {
	var l listing
	d := xml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("the store's list of objects cannot be read: %w: %w", err, paddock.Invalid)
	}
	for i := range l.Contents {
		if l.EncodingType != "url" {
			continue
		}
		key, err := url.QueryUnescape(l.Contents[i].Key)
		if err != nil {
			return l, fmt.Errorf("the store's list has a name that is not encoded as it says: %w", paddock.Invalid)
		}
		l.Contents[i].Key = key
	}
	if l.IsTruncated == (l.Next == "") || len(l.Next) > tokenMax {
		return l, fmt.Errorf("the store's list does not say how it goes on: %w", paddock.Invalid)
	}
	return l, nil
}

// files lists the segments, page by page.
func (r *remote) files() ([]string, error) {
	var names []string
	token := ""
	for range pagesMax {
		l, err := r.page(token)
		if err != nil {
			return nil, fmt.Errorf("list bucket %s: %w", r.s3.b.Name, err)
		}
		for _, c := range l.Contents {
			name, below := strings.CutPrefix(c.Key, r.s3.b.Prefix)
			if !below || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) || strings.Contains(name, "/") {
				continue
			}
			// The store's order is that of names. One that says a name twice, or goes in
			// circles, does not come to an end.
			if len(names) > 0 && name <= names[len(names)-1] {
				return nil, fmt.Errorf("list bucket %s: the store lists %s behind %s: %w", r.s3.b.Name, name, names[len(names)-1], paddock.Invalid)
			}
			if len(names) == namesMax {
				return nil, fmt.Errorf("list bucket %s: it has more than %d segments: %w", r.s3.b.Name, namesMax, paddock.Exhausted)
			}
			names = append(names, name)
		}
		if !l.IsTruncated {
			return names, nil
		}
		token = l.Next
	}
	return nil, fmt.Errorf("list bucket %s: the list does not end: %w", r.s3.b.Name, paddock.Exhausted)
}

func (r *remote) page(token string) (listing, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {r.s3.b.Prefix + first}, "delimiter": {"/"}, "encoding-type": {"url"}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	answer, err := r.s3.send(r.ctx, http.MethodGet, "", query, nil)
	if err != nil {
		return listing{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return listing{}, refused(answer.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, pageMax+1))
	if err != nil {
		return listing{}, errors.Join(reason(r.ctx), err)
	}
	if len(data) > pageMax {
		return listing{}, fmt.Errorf("the store's list is longer than any: %w", paddock.Invalid)
	}
	return readListing(data)
}

// open reads an object.
func (r *remote) open(name string) (io.ReadCloser, error) {
	answer, err := r.s3.send(r.ctx, http.MethodGet, r.s3.b.Prefix+name, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, refused(answer.StatusCode)), answer.Body.Close())
	}
	return &object{r: r, name: name, body: answer.Body, sum: sha256.New()}, nil
}

// An object is being read.
type object struct {
	r    *remote
	name string
	body io.ReadCloser
	sum  hash.Hash
	size int64
}

func (o *object) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.sum.Write(p[:n])
	o.size += int64(n)
	switch {
	case o.size > most:
		return n, fmt.Errorf("it is larger than any segment: %w", paddock.Invalid)
	case errors.Is(err, io.EOF):
		sum := [sha256.Size]byte(o.sum.Sum(nil))
		if before, again := o.r.sums[o.name]; again && before != sum {
			return n, fmt.Errorf("the store served another object of that name a moment before: %w", paddock.Conflict)
		}
		o.r.sums[o.name] = sum
	case err != nil:
		err = errors.Join(reason(o.r.ctx), err)
	}
	return n, err
}

func (o *object) Close() error { return o.body.Close() }
