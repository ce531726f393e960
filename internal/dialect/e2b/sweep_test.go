package e2b

import (
	"context"
	"testing"
	"time"
)

// A cupboard has one image, and a build comes when a sweep of it has begun.
type cupboard struct {
	come func()
	kept bool
}

func (*cupboard) Pull(context.Context, Pull) (Image, error) { return Image{ID: "one"}, nil }

func (c *cupboard) Sweep(_ string, used func(string) bool) error {
	c.come()
	c.kept = used("one")
	return nil
}

func TestASweepLeavesWhatABuildBeganWithMeanwhile(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for what, want := range map[string]bool{"nobody": false, "who pulls": true, "who pulled": true, "who ended": false, "another tenant": false} {
		h := &Handler{idle: map[string]time.Time{"acme\x00one": long}, builds: map[string]*build{}}
		c := &cupboard{}
		c.come = func() {
			b := &build{caller: Caller{Tenant: "acme"}, status: building, image: "one"}
			switch what {
			case "nobody":
				return
			case "who pulls":
				b.image, b.pulls = "", true
			case "who ended":
				b.status = ready
			case "another tenant":
				b.caller.Tenant = "other"
			}
			h.mu.Lock()
			h.builds["b"] = b
			h.mu.Unlock()
		}
		h.o.Images = c
		h.sweepImages(time.Now())
		if c.kept != want {
			t.Errorf("%s: kept: %v", what, c.kept)
		}
	}
}
