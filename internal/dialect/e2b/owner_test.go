package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

const (
	testID    = "iaaaaaaaaaaaaaaaaaaaa"
	testToken = "ea_0123456789"
)

// A shelf is a store of one sandbox.
type shelf struct {
	dialect.Store
	rec record
}

func (s shelf) Each(_ context.Context, kind string, f func(tenant, id, data string) error) error {
	if kind != kindSandbox {
		return nil
	}
	data, err := json.Marshal(s.rec)
	if err != nil {
		return err
	}
	return f(s.rec.Tenant, string(s.rec.ID), string(data))
}

// An asked is a driver that notes whether anything was asked of it.
type asked struct {
	lifetime.Lessor
	terms   int
	revoked bool // the key write
}

func (a *asked) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return still{}, nil }

func (a *asked) Terms(context.Context, paddock.ID) (lifetime.Lease, error) {
	a.terms++
	return lifetime.Lease{}, fmt.Errorf("enough: %w", paddock.Unavailable)
}

// List fails, because the samples of a test that takes long are none of its business.
func (*asked) List(context.Context) ([]paddock.Status, error) { return nil, paddock.Unavailable }

type still struct{ paddock.Sandbox }

func (still) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{ID: testID, State: paddock.Ready}, nil
}

func handler(t *testing.T, rec record) (*Handler, *asked) {
	t.Helper()
	d := &asked{}
	rec.ID, rec.Tenant, rec.Token = testID, "acme", testToken
	h, err := New(t.Context(), Options{
		Caller: func(_ context.Context, key string) (dialect.Caller, error) {
			if key != "read" && key != "write" {
				return dialect.Caller{}, fmt.Errorf("no such key: %w", paddock.Denied)
			}
			return dialect.Caller{Tenant: "acme", Who: "key-" + key, Driver: d, ReadOnly: key == "read"}, nil
		},
		Live: func(_ context.Context, tenant, key string) (bool, error) {
			return tenant == "acme" && key == "key-write" && !d.revoked, nil
		},
		Tenant: func(context.Context, string) (lifetime.Lessor, error) { return d, nil },
		Store:  shelf{rec: rec}, Envd: func(Inside) (Port, error) { return nil, fmt.Errorf("none: %w", paddock.Unsupported) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, d
}

func ask(t *testing.T, h *Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAKeyThatMayOnlyLookGetsNothingThatMayDoMore(t *testing.T) {
	h, _ := handler(t, record{Network: &network{Rules: map[string][]rule{"api.example.com": {{Transform: &transform{Headers: map[string]string{"Authorization": "secret"}}}}}}})
	w := ask(t, h, "GET", "/sandboxes/"+testID, "X-Api-Key", "write")
	if text := w.Body.String(); w.Code != 200 || !strings.Contains(text, testToken) || !strings.Contains(text, "secret") {
		t.Errorf("the owner is told %d %s", w.Code, text)
	}
	w = ask(t, h, "GET", "/sandboxes/"+testID, "X-Api-Key", "read")
	if text := w.Body.String(); w.Code != 200 || strings.Contains(text, testToken) || strings.Contains(text, "secret") || !strings.Contains(text, "api.example.com") {
		t.Errorf("who may look is told %d %s", w.Code, text)
	}
	h.templates["t"] = &template{ID: "t", Tenant: "acme"}
	if w := ask(t, h, "GET", "/templates/t/files/"+strings.Repeat("a", 64), "X-Api-Key", "read"); w.Code != 403 {
		t.Errorf("who may look gets a URL to write to: %d %s", w.Code, w.Body)
	}
}

func TestOnlyWhoHasTheTokenWakesASandboxAtTheAgentsPort(t *testing.T) {
	h, d := handler(t, record{Paused: true, AutoResume: true})
	good := url.Values{"path": {"a"}}
	good.Set("signature", Signature(testToken, "GET", good))
	late := url.Values{"path": {"a"}, "signature_expiration": {"1"}}
	late.Set("signature", Signature(testToken, "GET", late))
	for _, c := range []struct {
		path   string
		header []string
		woken  int
	}{
		{"/health", nil, 0},
		{"/files?path=a&signature=v1_x", nil, 0},
		{"/files?" + late.Encode(), nil, 0},
		{"/health", []string{headerToken, "ea_wrong"}, 0},
		{"/files?" + good.Encode(), nil, 1},
		{"/health", []string{headerToken, testToken}, 1},
		{"/", []string{headerPort, "8080"}, 1},
	} {
		d.terms = 0
		w := ask(t, h, "GET", c.path, append([]string{headerID, testID}, c.header...)...)
		if w.Code != http.StatusBadGateway || d.terms != c.woken {
			t.Errorf("%s %v: answered %d, woken %d times; want %d", c.path, c.header, w.Code, d.terms, c.woken)
		}
	}
}

func TestALongLinkIsNotTriedOnEverySandbox(t *testing.T) {
	h, _ := handler(t, record{Ends: time.Now().Add(time.Hour)})
	for _, path := range []string{"/files?signature=x&path=" + strings.Repeat("a", 5000), "/files?signature=x&x=" + strings.Repeat("a", 60_000)} {
		if w := ask(t, h, "GET", path); w.Code != http.StatusRequestURITooLong {
			t.Errorf("%d bytes: %d %s", len(path), w.Code, w.Body)
		}
	}
}

func TestNoGuestReadsWhatIsItsOwnersOutside(t *testing.T) {
	h, _ := handler(t, record{})
	r := httptest.NewRequest("GET", "/", http.NoBody)
	for name, value := range map[string]string{
		headerToken: testToken, headerTraffic: "ta_x", headerID: testID, headerPort: "80", "X-Api-Key": "write", "Authorization": "bearer read", "X-Mine": "kept",
	} {
		r.Header.Set(name, value)
	}
	owner, looks, app := &visit{who: "public"}, &visit{who: "public"}, &visit{who: "public"}
	if err := h.hide(r, "acme", owner); err != nil || len(r.Header) != 1 || r.Header.Get("X-Mine") != "kept" {
		t.Errorf("the guest sees %v, %v", r.Header, err)
	}
	r.Header.Set("Authorization", "Bearer of-the-app")
	r.Header.Set("X-Api-Key", "of-the-app")
	if err := h.hide(r, "acme", app); err != nil || len(r.Header) != 3 {
		t.Errorf("of what is the app's own the guest sees %v, %v", r.Header, err)
	}
	r.Header.Add("Authorization", "Bearer write")
	if err := h.hide(r, "acme", app); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("two keys: %v", err)
	}
	r.Header = http.Header{"X-Api-Key": {"read"}}
	if err := h.hide(r, "acme", looks); err != nil || len(r.Header) != 0 {
		t.Errorf("the guest sees %v, %v", r.Header, err)
	}
	theirs := &visit{who: "public"}
	r.Header = http.Header{"X-Api-Key": {"write"}}
	if err := h.hide(r, "other", theirs); err != nil || len(r.Header) != 0 {
		t.Errorf("the guest sees %v, %v", r.Header, err)
	}
	if *owner != (visit{"key-write", true}) || *looks != (visit{"public", false}) || *theirs != *looks || *app != *looks {
		t.Errorf("who visits: %v, %v, %v, %v", *owner, *looks, *theirs, *app)
	}
}

func TestTheNameOfARepeatedRequestCannotBeGuessed(t *testing.T) {
	one, _ := handler(t, record{})
	other, _ := handler(t, record{})
	a, err := one.sandboxID("default", "1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := one.sandboxID("default", "1"); err != nil || again != a || !ours(string(a)) {
		t.Errorf("a repeated request makes %s, not %s: %v", again, a, err)
	}
	if b, err := other.sandboxID("default", "1"); err != nil || a == b {
		t.Errorf("two servers make the same name %s: %v", b, err)
	}
}

func TestATenantsBuildsWaitForEachOtherAndLeaveRoomForOthers(t *testing.T) {
	h, _ := handler(t, record{})
	begun, ends := make(chan string, 100), map[string]chan bool{}
	add := func(tenant string, i int) (*build, error) {
		b := &build{id: fmt.Sprint(tenant, i), status: waiting, caller: dialect.Caller{Tenant: tenant}}
		end := make(chan bool)
		ends[b.id] = end
		b.start = func() {
			begun <- b.id
			<-end
			b.mu.Lock()
			b.status = ready
			b.mu.Unlock()
		}
		return b, h.enqueue(b)
	}
	begins := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, <-begun)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("begun are %q, not %q", got, want)
		}
	}
	var all []*build
	for i := range maxOwnBuilds + maxOwnQueued {
		b, err := add("acme", i)
		if err != nil {
			t.Fatalf("build %d: %v", i, err)
		}
		all = append(all, b)
	}
	if _, err := add("acme", 99); paddock.KindOf(err) != paddock.Exhausted || faultOf(err).Code != 429 {
		t.Errorf("one more: %v", err)
	}
	if err := h.enqueue(all[3]); paddock.KindOf(err) != paddock.Conflict {
		t.Errorf("a build that waits already: %v", err)
	}
	begins("acme0", "acme1")
	for i := range 2 {
		if _, err := add("other", i); err != nil {
			t.Fatal(err)
		}
	}
	begins("other0") // the last place is not for a tenant that has one
	if _, err := add("third", 0); err != nil {
		t.Fatal(err)
	}
	begins("third0")
	if !all[2].in(waiting) || len(all[2].log) != 1 {
		t.Errorf("the third build of a tenant: %q, %v", all[2].status, all[2].log)
	}
	close(ends["other0"])
	begins("other1") // before the tenant's that waited longer
	close(ends["acme1"])
	close(ends["third0"])
	begins("acme2")
	close(ends["other1"])
	if _, err := add("fourth", 0); err != nil {
		t.Fatal(err)
	}
	begins("fourth0")
	for i := range 3*maxOwnQueued + 1 {
		if _, err := add(fmt.Sprint("crowd", i%3, "-"), i); err != nil {
			t.Fatalf("build %d of a crowd: %v", i, err)
		}
		if i == 0 {
			begins("crowd0-0")
		}
	}
	if _, err := add("acme", 98); err != nil {
		t.Error(err)
	}
	if n := len(h.queue); n != maxQueued {
		t.Fatalf("%d builds wait", n)
	}
	if _, err := add("crowd3", 0); err != nil {
		t.Errorf("the first build of a tenant, where the queue is full: %v", err)
	}
	if _, err := add("crowd3", 1); faultOf(err).Code != 429 {
		t.Errorf("its second: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	<-h.ctx.Done() // no other build begins
	for _, id := range []string{"acme0", "acme2", "fourth0", "crowd0-0"} {
		close(ends[id])
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if len(begun) > 0 || !all[3].in(waiting) {
		t.Errorf("after the end: %q, %d began", all[3].status, len(begun))
	}
}

func TestALinkToUploadToHoldsForATime(t *testing.T) {
	h, _ := handler(t, record{})
	hash, now := strings.Repeat("a", 64), time.Now()
	until := strconv.FormatInt(now.Add(time.Minute).Unix(), 10)
	q := url.Values{"until": {until}, "key": {"k"}, "pass": {h.pass("acme", "k", "t", hash, until)}}
	if !h.passes(q, "acme", "t", hash, now) {
		t.Error("a link that was just given does not hold")
	}
	longer := url.Values{"until": {until + "0"}, "key": {"k"}, "pass": q["pass"]}
	for what, holds := range map[string]bool{
		"its time is over":   h.passes(q, "acme", "t", hash, now.Add(time.Minute)),
		"another time":       h.passes(longer, "acme", "t", hash, now),
		"another tenant's":   h.passes(q, "other", "t", hash, now),
		"another key":        h.passes(url.Values{"until": {until}, "key": {"other"}, "pass": q["pass"]}, "acme", "t", hash, now),
		"another file":       h.passes(q, "acme", "t", strings.Repeat("b", 64), now),
		"it says no time":    h.passes(url.Values{"key": {"k"}, "pass": q["pass"]}, "acme", "t", hash, now),
		"a time without end": h.passes(url.Values{"until": {""}, "key": {"k"}, "pass": {h.pass("acme", "k", "t", hash, "")}}, "acme", "t", hash, now),
	} {
		if holds {
			t.Errorf("it holds though: %s", what)
		}
	}
}

func TestUploadsAtOnceShareTheRoomOfTheirTenant(t *testing.T) {
	h, _ := handler(t, record{})
	dir := directory(t)
	stores(t, dir, "one.tar")
	var release func()
	for range maxUploads/maxUpload - 1 {
		var err error
		if _, release, err = h.reserve("acme", dir, maxUpload); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := h.reserve("acme", dir, maxUpload); paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("more than there may be: %v", err)
	}
	if _, _, err := h.reserve("other", directory(t), maxUpload); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	release()
	if _, _, err := h.reserve("acme", dir, maxUpload); err != nil {
		t.Errorf("room that was given back: %v", err)
	}
	for i := 1; ; i++ {
		if _, _, err := h.reserve("third", directory(t), 0); err != nil {
			if i != ownUploads+1 || paddock.KindOf(err) != paddock.Exhausted {
				t.Errorf("file %d at once: %v", i, err)
			}
			break
		}
	}
}

func directory(t *testing.T) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// stores makes files of one byte.
func stores(t *testing.T, dir *os.Root, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := dir.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATenantStoresSoManyFilesForBuildsAndNoMore(t *testing.T) {
	h, _ := handler(t, record{})
	h.o.Uploads = t.TempDir()
	h.templates["t"] = &template{ID: "t", Tenant: "acme"}
	put := func(n int) *httptest.ResponseRecorder {
		t.Helper()
		var link struct{ URL string }
		w := ask(t, h, "GET", fmt.Sprintf("/templates/t/files/%064x", n), "X-API-KEY", "write")
		if err := json.Unmarshal(w.Body.Bytes(), &link); err != nil || link.URL == "" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PUT", link.URL, http.NoBody))
		return w
	}
	if w := put(0); w.Code != 200 {
		t.Fatalf("the first: %d %s", w.Code, w.Body)
	}
	dir, err := h.uploads("acme")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for n := range maxFiles - 2 {
		stores(t, dir, fmt.Sprintf("%064x.tar", n+1))
	}
	if w := put(maxFiles - 1); w.Code != 200 {
		t.Fatalf("the last: %d %s", w.Code, w.Body)
	}
	if w := put(maxFiles); w.Code != 429 || !strings.Contains(w.Body.String(), "1000 files of builds") {
		t.Errorf("one more: %d %s", w.Code, w.Body)
	}
}

func TestSmallFilesForBuildsTakeSpaceToo(t *testing.T) {
	dir := directory(t)
	stores(t, dir, "one.tar", "two.tar", "old.tar", "writing.part", "anothers.part", "lost.part")
	ages(t, dir, "old.tar", uploadKept+time.Hour)
	ages(t, dir, "two.tar", time.Hour)
	ages(t, dir, "lost.part", uploadTime+time.Hour)
	have, err := stored(dir, map[string]int64{"writing.part": maxUpload})
	if err != nil || have.files != 3 || have.bytes != 3*leastSize || have.name != "two.tar" {
		t.Errorf("%+v: %v", have, err)
	}
	for name, want := range map[string]bool{"one.tar": true, "old.tar": false, "writing.part": true, "anothers.part": true, "lost.part": false} {
		if _, err := dir.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ages makes a file as old as that.
func ages(t *testing.T, dir *os.Root, name string, age time.Duration) {
	t.Helper()
	if err := dir.Chtimes(name, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Fatal(err)
	}
}

func TestTheOldestFileForBuildsMakesRoomOnceNoBuildNeedsIt(t *testing.T) {
	h, _ := handler(t, record{})
	dir := directory(t)
	for n := range maxFiles {
		stores(t, dir, fmt.Sprintf("%064x.tar", n))
	}
	old := fmt.Sprintf("%064x.tar", maxFiles/2)
	for age, want := range map[time.Duration]bool{uploadUsed - time.Minute: false, uploadUsed + time.Minute: true} {
		ages(t, dir, old, age)
		_, release, err := h.reserve("acme", dir, 1)
		if (err == nil) != want {
			t.Errorf("the oldest is %v old: %v", age, err)
		}
		if err == nil {
			release()
		}
		if _, err := dir.Stat(old); (err != nil) != want {
			t.Errorf("the oldest is %v old: %v", age, err)
		}
		stores(t, dir, old)
	}
}

// Without a lock, each of them would find room for itself.
func TestUploadsAtOnceAreNotMoreFilesThanThereMayBe(t *testing.T) {
	h, _ := handler(t, record{})
	dir := directory(t)
	for n := range maxFiles - 3 {
		stores(t, dir, fmt.Sprintf("%064x.tar", n))
	}
	var wg sync.WaitGroup
	var kept atomic.Int32
	for n := range ownUploads {
		wg.Go(func() {
			part, release, err := h.reserve("acme", dir, 1)
			switch {
			case paddock.KindOf(err) == paddock.Exhausted:
				return
			case err != nil:
				t.Error(err)
				return
			}
			defer release()
			if err := put(dir, part, fmt.Sprintf("%064x", maxFiles+n), strings.NewReader("x"), 1); err != nil {
				t.Error(err)
			}
			kept.Add(1)
		})
	}
	wg.Wait()
	// One that has just ended may count twice for a moment, so that another is refused.
	now := int(kept.Load())
	if have, err := stored(dir, nil); err != nil || have.files > maxFiles || have.files != maxFiles-3+now || now == 0 {
		t.Errorf("%d files are stored, %d of them now: %v", have.files, now, err)
	}
	if len(h.intakes) != 0 {
		t.Errorf("held is %v", h.intakes)
	}
}

func TestAnUploadIsKeptWholeAndGivesItsRoomBack(t *testing.T) {
	h, _ := handler(t, record{})
	h.o.Uploads = t.TempDir()
	h.templates["t"] = &template{ID: "t", Tenant: "acme"}
	hash := strings.Repeat("a", 64)
	w := ask(t, h, "GET", "/templates/t/files/"+hash, "X-API-KEY", "write")
	var link struct{ URL string }
	if err := json.Unmarshal(w.Body.Bytes(), &link); err != nil || link.URL == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := httptest.NewRequestWithContext(t.Context(), "PUT", link.URL, strings.NewReader("data"))
	put := httptest.NewRecorder()
	h.ServeHTTP(put, r)
	if put.Code != 200 || len(h.intakes) != 0 {
		t.Errorf("%d %s, and held is %v", put.Code, put.Body, h.intakes)
	}
	if w := ask(t, h, "GET", "/templates/t/files/"+hash, "X-API-KEY", "write"); !strings.Contains(w.Body.String(), `"present":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestALinkToUploadToEndsWithItsKey(t *testing.T) {
	h, d := handler(t, record{})
	h.o.Uploads = t.TempDir()
	h.templates["t"] = &template{ID: "t", Tenant: "acme"}
	hash := strings.Repeat("a", 64)
	var link struct{ URL string }
	if w := ask(t, h, "GET", "/templates/t/files/"+hash, "X-API-KEY", "write"); json.Unmarshal(w.Body.Bytes(), &link) != nil || link.URL == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	d.revoked = true
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PUT", link.URL, strings.NewReader("data")))
	if w.Code != 403 || !strings.Contains(w.Body.String(), "key") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d.revoked = false
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PUT", link.URL, strings.NewReader("data")))
	if w.Code != 200 {
		t.Errorf("while the key lives: %d %s", w.Code, w.Body)
	}
}

func TestBuildsThatNobodyStartedAreNotKeptForEver(t *testing.T) {
	list := []built{{ID: "done", Status: ready}}
	for i := range 5 {
		list = append(list, built{ID: fmt.Sprint(i), Status: waiting})
	}
	var ids []string
	for _, b := range started(list, 2) {
		ids = append(ids, b.ID)
	}
	if got := strings.Join(ids, " "); got != "done 3 4" {
		t.Errorf("kept are %s", got)
	}
}
