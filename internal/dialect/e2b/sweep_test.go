package e2b

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A cupboard has one image, and a build comes when a sweep of it has begun.
type cupboard struct {
	of   string // the image's tenant
	come func()
	kept bool
}

func (*cupboard) Pull(context.Context, Pull) (Image, error) { return Image{ID: "one"}, nil }

func (c *cupboard) Sweep(tenant string, used func(string) bool) error {
	if tenant == c.of {
		c.come()
		c.kept = used("one")
	}
	return nil
}

func TestASweepLeavesWhatABuildBeganWithMeanwhile(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for what, want := range map[string]bool{"nobody": false, "who pulls": true, "who pulled": true, "who ended": false, "another tenant": false} {
		h := &Handler{idle: map[string]time.Time{"acme\x00one": long}, builds: map[string]*build{}}
		c := &cupboard{of: "acme"}
		c.come = func() {
			b := &build{caller: dialect.Caller{Tenant: "acme"}, status: building, image: "one"}
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

func TestAnImageOfBaseIsKeptForWhoBeganWithIt(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for what, want := range map[string]bool{"nobody": false, "base itself": true, "who builds": true, "a template": true, "a tenant's own": false} {
		h := &Handler{idle: map[string]time.Time{"\x00one": long}, builds: map[string]*build{}, templates: map[string]*template{}}
		c := &cupboard{come: func() {}}
		h.o.Images = c
		switch what {
		case "base itself":
			h.o.Base = &Image{ID: "one"}
		case "who builds":
			h.builds["b"] = &build{caller: dialect.Caller{Tenant: "acme"}, status: building, image: shared + "one"}
		case "a template":
			h.templates["t"] = &template{Tenant: "acme", Builds: []built{{Image: shared + "one"}}}
		case "a tenant's own":
			h.builds["b"] = &build{caller: dialect.Caller{Tenant: "acme"}, status: building, image: "one"}
		}
		h.sweepImages(time.Now())
		if c.kept != want {
			t.Errorf("%s: kept: %v", what, c.kept)
		}
	}
}
