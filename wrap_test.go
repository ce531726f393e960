package paddock_test

import (
	"context"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

type counter interface{ Count() int }

type driver struct {
	paddock.Driver
	n int
}

func (d driver) Count() int { return d.n }

// A clear wrapper can be passed by.
type clear struct{ paddock.Driver }

func (c clear) Unwrap() paddock.Driver { return c.Driver }

// An opaque wrapper embeds a driver, and cannot.
type opaque struct{ paddock.Driver }

type sandbox struct {
	paddock.Sandbox
	asked bool
}

func (*sandbox) Count() int                   { return 3 }
func (*sandbox) Born() (paddock.Status, bool) { return paddock.Status{ID: "a"}, true }
func (s *sandbox) Status(context.Context) (paddock.Status, error) {
	s.asked = true
	return paddock.Status{ID: "b"}, nil
}

// An open sandbox is one that Open found.
type open struct{ *sandbox }

func (open) Born() (paddock.Status, bool) { return paddock.Status{}, false }
func (o open) Unwrap() paddock.Sandbox    { return o.sandbox }

type box struct{ paddock.Sandbox }

func (b box) Unwrap() paddock.Sandbox { return b.Sandbox }

func TestAsFindsTheOutermostLayerAndStopsAtAnOpaqueOne(t *testing.T) {
	for _, row := range []struct {
		name string
		v    any
		want int // 0 is none
	}{
		{"a driver", driver{n: 1}, 1},
		{"below two clear wrappers", clear{clear{driver{n: 1}}}, 1},
		{"the outermost of two", driver{clear{driver{n: 1}}, 2}, 2},
		{"below an opaque wrapper", opaque{driver{n: 1}}, 0},
		{"below a clear one around an opaque one", clear{opaque{driver{n: 1}}}, 0},
		{"a sandbox", box{box{&sandbox{}}}, 3},
		{"nothing", nil, 0},
		{"around nothing", clear{}, 0},
	} {
		c, ok := paddock.As[counter](row.v)
		if ok != (row.want != 0) || ok && c.Count() != row.want {
			t.Errorf("%s: found %v, %v", row.name, c, ok)
		}
	}
}

func TestTheFirstStatusIsAskedForOnlyWhereNoneWasCaptured(t *testing.T) {
	sb := &sandbox{}
	if st, err := paddock.FirstStatus(t.Context(), sb); err != nil || st.ID != "a" || sb.asked {
		t.Errorf("of one that was created: %v, %v, asked: %v", st.ID, err, sb.asked)
	}
	if st, err := paddock.FirstStatus(t.Context(), open{sb}); err != nil || st.ID != "b" || !sb.asked {
		t.Errorf("of one that was opened: %v, %v, asked: %v", st.ID, err, sb.asked)
	}
}
