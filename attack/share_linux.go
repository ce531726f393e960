package attack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A shared sandbox serves several rows, one after the other, that only look from inside, on
// a tier where creation is slow. The host looks for evidence after each row, and evidence
// of an earlier row does not count again.
type shared struct {
	maker *trial // its maker
}

// shares reports whether a case uses a shared sandbox.
func (h Harness) shares(c Case) bool { return h.Tier == paddock.MicroVM && c.Shares }

// share makes a sandbox for c and later cases. It exists as long as t.
func (h Harness) share(t *testing.T, c Case, place, caller string) (*shared, error) {
	name := "shared"
	if c.way != nil {
		name = "shared-network"
	}
	w, err := newWorld(place, name+"-"+random()[:6], caller == "root")
	x := &trial{t: t, c: c, w: w, h: h, caller: caller}
	s := &shared{x}
	if err == nil && c.way != nil {
		err = w.online()
	}
	if err == nil {
		err = w.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the world: %w", err), w.close())
	}
	t.Setenv("HOME", w.brief.Home)
	t.Setenv("PADDOCK_CANARY_ENV", w.token("a variable of the caller"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	x.driver = h.New(t, w.brief.State)
	if x.info, err = x.driver.Info(ctx, paddock.Auto); err == nil {
		err = x.create(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create: %w", err), x.driver.Close(), w.close())
	}
	return s, nil
}

// try runs one case in the shared sandbox.
func (s *shared) try(t *testing.T, c Case) (res Result) {
	res = Result{ID: c.ID}
	w := s.maker.w
	x := &trial{t: t, c: c, w: w, h: s.maker.h, caller: s.maker.caller, driver: s.maker.driver, info: s.maker.info, sb: s.maker.sb}
	err := w.stock()
	if err == nil && c.way != nil {
		_, err = w.witness.take() // discard what was seen before this row
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err = x.watched(func() error { return x.attack(ctx) })
	}
	if err != nil {
		res.Broken = err.Error()
		return res
	}
	x.judge(&res)
	return res
}

// close removes the sandbox. Anything left of it is an escape.
func (s *shared) close() error {
	x := s.maker
	err := errors.Join(x.remove(), x.driver.Close())
	if left := x.w.leftovers(); len(left) > 0 {
		err = errors.Join(err, errors.New("ESCAPED: "+strings.Join(left, "; ")))
	}
	return errors.Join(err, x.w.close())
}

// A company has the shared sandboxes, with and without a network.
type company map[bool]*shared

// try runs a case in its shared sandbox, which it makes if needed. A sandbox without a
// verdict is not used again.
func (m company) try(outer, t *testing.T, h Harness, c Case, place, caller string) Result {
	online := c.way != nil
	if m[online] == nil {
		s, err := h.share(outer, c, place, caller)
		if err != nil {
			return Result{ID: c.ID, Broken: err.Error()}
		}
		m[online] = s
	}
	r := m[online].try(t, c)
	if r.Broken != "" {
		if err := m[online].close(); err != nil {
			t.Log("close what was shared:", err)
		}
		delete(m, online)
	}
	return r
}

func (m company) close(t *testing.T) {
	for _, s := range m {
		if err := s.close(); err != nil {
			t.Errorf("close what was shared: %v", err)
		}
	}
}
