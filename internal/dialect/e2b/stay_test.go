package e2b_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
)

// A staying port holds each request until its sandbox is cut, and its handlers stay much longer: as when the
// sandbox takes nothing of a file.
type staying struct{}

const stay = 1000 * time.Hour

func (staying) Close() error {
	time.Sleep(stay)
	return nil
}

func (staying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	<-r.Context().Done()
	time.Sleep(stay)
}

// hold makes a request that its sandbox holds.
func (w *watch) hold(id, token string) {
	go func() {
		defer func() { _ = recover() }() // a cut stream ends with a panic
		r := httptest.NewRequestWithContext(w.Context(), "GET", "/hold", http.NoBody)
		r.Header.Set("E2b-Sandbox-Id", id)
		r.Header.Set("X-Access-Token", token)
		w.h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	synctest.Wait()
}

func TestNoSandboxIsHeldByRequestsThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where a request that waits for ever is a failure at once
		w := newWatch(t)
		defer w.end()
		w.close()
		w.envd = func(e2b.Inside) (e2b.Port, error) { return staying{}, nil }
		w.open()
		v := w.ask("POST", "/v2/sandboxes", `{"templateID":"base","allow_internet_access":false,"secure":true,"autoPause":true,"timeout":60}`, 201)
		id, _ := v["sandboxID"].(string)
		token, _ := v["envdAccessToken"].(string)
		if id == "" || token == "" {
			t.Fatalf("%v", v)
		}
		began := time.Now()
		at := "/sandboxes/" + id
		w.hold(id, token)
		w.pass(2 * time.Minute) // it is paused at its end
		w.ask("POST", at+"/connect", `{"timeout":3600}`, 201)
		w.hold(id, token)
		w.ask("POST", at+"/pause", "", 204)
		w.ask("POST", at+"/connect", `{"timeout":3600}`, 201)
		w.hold(id, token)
		w.ask("POST", at+"/pause", `{"memory":false}`, 204)
		w.ask("POST", at+"/connect", `{"timeout":3600}`, 201)
		w.hold(id, token)
		w.ask("DELETE", at, "", 204)
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
