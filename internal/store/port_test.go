package store_test

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func portsSaid(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	b := box("one", "acme")
	add(t, s, b)
	said := func(port int, want store.Port) {
		t.Helper()
		if got, err := s.Port(ctx, b.Token, port); err != nil || got != want {
			t.Errorf("port %d: %+v, %v; want %+v", port, got, err, want)
		}
	}
	said(80, store.Port{})
	must(t, s.NamePort(ctx, b.Token, 80))
	said(80, store.Port{Epoch: 1, Named: true})
	must(t, s.SetPort(ctx, b.Token, 80, true))
	must(t, s.NamePort(ctx, b.Token, 80))
	said(80, store.Port{Public: true, Epoch: 1, Named: true})
	said(81, store.Port{})
	must(t, s.SetPort(ctx, b.Token, 80, false))
	must(t, s.SetPort(ctx, b.Token, 80, false))
	said(80, store.Port{Epoch: 3, Named: true})
	must(t, s.SetPort(ctx, b.Token, 81, false))
	said(81, store.Port{Epoch: 1, Named: true})
	must(t, s.SetPort(ctx, b.Token, store.EveryPort, true))
	said(80, store.Port{Public: true, Epoch: 3, Named: true})
	said(82, store.Port{Public: true})
	must(t, s.SetPort(ctx, b.Token, store.EveryPort, false))
	said(80, store.Port{Epoch: 3, Named: true})
	for port := 1000; port < 1997; port++ {
		must(t, s.NamePort(ctx, b.Token, port))
	}
	wantKind(t, s.NamePort(ctx, b.Token, 5000), paddock.Exhausted)
	must(t, s.SetPort(ctx, b.Token, 80, true))

	wantKind(t, s.SetPort(ctx, "nothing", 80, true), paddock.NotFound)
	if got, err := s.Owned(ctx, "one"); err != nil || got.Tenant != "acme" || got.Token != b.Token {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := s.Owned(ctx, "two")
	wantKind(t, err, paddock.NotFound)
	must(t, s.ForgetSandbox(ctx, b.Token))
	said(80, store.Port{})
}

func linksEnded(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	b := box("one", "acme")
	add(t, s, b)
	ended := func(mark string, want bool) {
		t.Helper()
		if got, err := s.LinkEnded(ctx, b.Token, mark); err != nil || got != want {
			t.Errorf("%s: %v, %v", mark, got, err)
		}
	}
	now := time.Unix(1_000_000, 0)
	ended("a", false)
	must(t, s.EndLink(ctx, b.Token, "a", now.Add(time.Hour), now))
	must(t, s.EndLink(ctx, b.Token, "a", now.Add(time.Hour), now))
	ended("a", true)
	ended("b", false)
	for i := range 999 {
		must(t, s.EndLink(ctx, b.Token, strconv.Itoa(i), now.Add(time.Minute), now))
	}
	wantKind(t, s.EndLink(ctx, b.Token, "b", now.Add(time.Hour), now), paddock.Exhausted)
	must(t, s.EndLink(ctx, b.Token, "b", now.Add(time.Hour), now.Add(time.Minute))) // the others have expired
	ended("0", false)
	ended("a", true)
	wantKind(t, s.EndLink(ctx, "nothing", "a", now.Add(time.Hour), now), paddock.NotFound)
	must(t, s.ForgetSandbox(ctx, b.Token))
	ended("a", false)
}

func secretsKept(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	one, err := s.Secret(ctx, "ports")
	must(t, err)
	again, err := s.Secret(ctx, "ports")
	must(t, err)
	other, err := s.Secret(ctx, "others")
	must(t, err)
	if len(one) != 32 || !bytes.Equal(one, again) || bytes.Equal(one, other) || bytes.Equal(one, make([]byte, 32)) {
		t.Errorf("%x %x %x", one, again, other)
	}
	_, err = s.Secret(ctx, "")
	wantKind(t, err, paddock.Invalid)
}
