package segment

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// BucketHint says how the address of a bucket is written.
const BucketHint = "write https://HOST/BUCKET or https://HOST/BUCKET/PREFIX/"

// ParseBucket takes the address of a bucket apart: https://HOST/BUCKET/PREFIX. The
// bucket's region and keys are those of the environment that lookup reads.
func ParseBucket(address string, lookup func(name string) (string, bool)) (Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Bucket{}, fmt.Errorf("it is no address: %w", paddock.Invalid)
	}
	name, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	value := func(name string) string { text, _ := lookup(name); return text }
	return Bucket{
		Endpoint: u.Scheme + "://" + u.Host, Name: name, Prefix: prefix,
		Region: value("AWS_REGION"), AccessKey: value("AWS_ACCESS_KEY_ID"), SecretKey: value("AWS_SECRET_ACCESS_KEY"),
	}, nil
}
