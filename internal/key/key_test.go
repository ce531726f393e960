package key_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

// A clock stands still until it is set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func ring(t *testing.T) (*key.Ring, *store.Store, *clock) {
	t.Helper()
	s := storetest.SQLite().New(t)
	if err := s.AddTenant(t.Context(), store.Tenant{ID: "acme"}); err != nil {
		t.Fatal(err)
	}
	c := &clock{time.Unix(1_900_000_000, 0)}
	return key.New(s, c.now), s, c
}

func denied(t *testing.T, v interface {
	Verify(ctx context.Context, text string) (key.Principal, error)
}, text, words string) {
	t.Helper()
	who, err := v.Verify(t.Context(), text)
	if paddock.KindOf(err) != paddock.Denied || err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want Denied with %q", err, words)
	}
	if who.Tenant != "" || who.Key != "" || len(who.Scopes) != 0 {
		t.Errorf("told who it was: %+v", who)
	}
	if err != nil && len(text) > 30 && strings.Contains(err.Error(), text[30:]) {
		t.Errorf("the secret is in the error: %v", err)
	}
}

func TestAKeyLetsItsTenantIn(t *testing.T) {
	r, _, _ := ring(t)
	text, made, err := r.Make(t.Context(), key.Grant{Tenant: "acme", Name: "ci", Scopes: []key.Scope{key.Write, key.Read, key.Read}})
	if err != nil {
		t.Fatal(err)
	}
	who, err := r.Verify(t.Context(), text)
	if err != nil || who.Tenant != "acme" || who.Key != made.ID {
		t.Fatalf("%+v, %v", who, err)
	}
	for scope, want := range map[key.Scope]bool{key.Read: true, key.Write: true, key.Admin: false} {
		if who.May(scope) != want {
			t.Errorf("%s: %v", scope, !want)
		}
	}
	if (key.Principal{}).May(key.Read) {
		t.Error("no scope allows something")
	}
	if !(key.Principal{Scopes: []key.Scope{key.Admin}}).May(key.Write) {
		t.Error("admin is not all")
	}
}

func TestAKeyInTheGrammarOfE2BLetsItsTenantIn(t *testing.T) {
	r, _, _ := ring(t)
	text, made, err := r.Make(t.Context(), key.Grant{Tenant: "acme", Scopes: []key.Scope{key.Read}, E2B: true})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile("^e2b_[0-9a-f]+$").MatchString(text) {
		t.Errorf("E2B's clients do not take %q", text)
	}
	if who, err := r.Verify(t.Context(), text); err != nil || who.Tenant != "acme" || who.Key != made.ID {
		t.Errorf("%+v, %v", who, err)
	}
	last := "0"
	if strings.HasSuffix(text, last) {
		last = "1"
	}
	for _, bad := range []string{text[:len(text)-2], strings.ToUpper(text), text[:len(text)-1] + last, text + "00"} {
		denied(t, r, bad, "this is not a key")
	}
}

func TestAWrongSecretAnUnknownKeyAndAnothersAreOneAnswer(t *testing.T) {
	r, _, _ := ring(t)
	ours, _, err := r.Make(t.Context(), key.Grant{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	other, _, _ := ring(t)
	denied(t, other, ours, "is not valid")
	for _, text := range []string{"", "pk_", ours[1:], ours + "a", strings.ToUpper(ours), " " + ours[1:], strings.Replace(ours, "pk_", "kp_", 1)} {
		denied(t, r, text, "this is not a key")
	}
	last := byte('a')
	if ours[len(ours)-1] == 'a' {
		last = 'q'
	}
	denied(t, r, ours[:len(ours)-1]+string(last), "mistyped")
}

func TestAKeyEnds(t *testing.T) {
	r, _, c := ring(t)
	text, _, err := r.Make(t.Context(), key.Grant{Tenant: "acme", Expires: c.at.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Hour - 1)
	if _, err := r.Verify(t.Context(), text); err != nil {
		t.Error(err)
	}
	c.at = c.at.Add(1)
	denied(t, r, text, "expired")

	text, made, err := r.Make(t.Context(), key.Grant{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Revoke(t.Context(), "acme", made.ID); err != nil {
			t.Fatal(err)
		}
		denied(t, r, text, "revoked")
	}
	if list, err := r.List(t.Context(), "acme"); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := r.Revoke(t.Context(), "other", made.ID); paddock.KindOf(err) != paddock.NotFound {
		t.Errorf("another tenant's key: %v", err)
	}
}

func TestAKeyThatMeansNothingIsNotMade(t *testing.T) {
	r, _, c := ring(t)
	for _, g := range []key.Grant{
		{Tenant: "acme", Scopes: []key.Scope{"all"}},
		{Tenant: "acme", Expires: c.at},
	} {
		if _, _, err := r.Make(t.Context(), g); paddock.KindOf(err) != paddock.Invalid || err == nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
	if _, _, err := r.Make(t.Context(), key.Grant{Tenant: "nobody"}); paddock.KindOf(err) != paddock.NotFound {
		t.Errorf("got %v", err)
	}
}

func TestTheLastUseIsKnownToAMinute(t *testing.T) {
	r, s, c := ring(t)
	text, made, err := r.Make(t.Context(), key.Grant{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	start := c.at
	for _, tt := range []struct{ after, want int64 }{{0, 0}, {59, 0}, {60, 60}, {100, 60}, {10_000, 10_000}} {
		c.at = time.Unix(start.Unix()+tt.after, 0)
		if _, err := r.Verify(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if k, err := s.Key(t.Context(), made.ID); err != nil || k.Used.Unix() != start.Unix()+tt.want {
			t.Errorf("after %d s: %v, %v", tt.after, k.Used, err)
		}
	}
}

func TestNoSecretIsInTheStore(t *testing.T) {
	s := storetest.SQLite()
	place := s.Place(t)
	db := storetest.Open(t, place)
	if err := db.AddTenant(t.Context(), store.Tenant{ID: "acme"}); err != nil {
		t.Fatal(err)
	}
	text, made, err := key.New(db, nil).Make(t.Context(), key.Grant{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(place), "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	all := ""
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	if !strings.Contains(all, made.ID) || strings.Contains(all, text[20:40]) {
		t.Error("the key is not kept, or its secret is")
	}
	if told, err := json.Marshal(made); err != nil || strings.Contains(string(told), made.Hash) {
		t.Errorf("the sum is told: %s, %v", told, err)
	}
}

func TestAStaticKeyIsOneText(t *testing.T) {
	s, err := key.NewStatic("dev", key.Principal{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := s.Verify(t.Context(), "dev"); err != nil || who.Tenant != "acme" {
		t.Errorf("%+v, %v", who, err)
	}
	denied(t, s, "de", "not the key")
	denied(t, key.Static{}, "", "not the key")
	if _, err := key.NewStatic("", key.Principal{}); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("an empty key: %v", err)
	}
}
