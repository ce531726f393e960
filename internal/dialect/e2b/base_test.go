package e2b_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// An order is a driver that is asked for roots which nothing of the tier sim has.
type order struct {
	lifetime.Lessor
	roots []paddock.Root
}

func (o *order) CreateWith(ctx context.Context, spec paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	o.roots = append(o.roots, spec.Root)
	spec.Root, spec.Policy = paddock.Root{}, paddock.Policy{}
	return o.Lessor.CreateWith(ctx, spec, t)
}

func TestBaseBeginsWithTheImageThatIsConfigured(t *testing.T) {
	image := paddock.Root{Kind: paddock.RootDir, Path: "/images/one/root"}
	for name, want := range map[string]paddock.Root{"base:sim": image, "BASE:sim": image, "code-interpreter-v1:sim": {}} {
		b := newBench(t)
		b.close()
		o := &order{Lessor: b.d}
		b.lessor, b.base = o, &e2b.Image{ID: "one", Dir: image.Path, Env: []string{"FROM=the image", "no variable", "A=b"}}
		b.check = func(spec paddock.Spec) error { // of a tenant that may name no directory
			if spec.Root.Kind == paddock.RootDir {
				return fmt.Errorf("%s: %w", spec.Root.Path, paddock.Denied)
			}
			return nil
		}
		b.open()
		code, v := b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"`+name+`","envVars":{"A":"c"}}`)
		if code != 201 || len(o.roots) == 0 || slices.ContainsFunc(o.roots, func(r paddock.Root) bool { return r != want }) {
			t.Errorf("%s: %d %v: asked for %+v", name, code, v, o.roots)
		}
		b.close()
	}
}
