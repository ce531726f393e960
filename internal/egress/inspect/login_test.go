package inspect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func TestARequestForTokensIsAnsweredByTheBackend(t *testing.T) {
	var reached atomic.Int32
	w := secure(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	w.login = func(_ context.Context, _ decide.Flow, r LoginRequest) (LoginAnswer, error) {
		switch {
		case r.Path != "/token":
			return LoginAnswer{}, nil
		case !r.Whole:
			return LoginAnswer{Whole: true, Name: "subscription"}, nil
		case string(r.Body) == "refuse":
			return LoginAnswer{}, &Refusal{Verdict: decide.Verdict{Rule: -1, Reason: "it is refused"}}
		case string(r.Body) == "fail":
			return LoginAnswer{}, fmt.Errorf("nobody answered: %w", paddock.Unavailable)
		case string(r.Body) == "hint":
			return LoginAnswer{Status: http.StatusEarlyHints}, nil
		}
		return LoginAnswer{Status: http.StatusTeapot, ContentType: "text/x", Body: []byte(r.ContentType + " " + r.UserAgent + " " + string(r.Body))}, nil
	}
	for _, http2 := range []bool{false, true} {
		client := w.client(http2)
		ask := func(path, body string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "POST", w.url(path), strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("User-Agent", "agent")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			return answer.StatusCode, string(got)
		}
		if code, body := ask("/token", "{}"); code != http.StatusTeapot || body != "application/json agent {}" {
			t.Errorf("%d %q", code, body)
		}
		if got := w.last(); got.Status != http.StatusTeapot || !slices.Contains(got.Secrets, "subscription") {
			t.Errorf("it was told as %+v", got)
		}
		if code, body := ask("/token", "refuse"); code != 403 || !strings.Contains(body, "it is refused") {
			t.Errorf("%d %q", code, body)
		}
		for _, body := range []string{"fail", "hint"} {
			if code, got := ask("/token", body); code != 502 {
				t.Errorf("%s: %d %q", body, code, got)
			}
		}
		if code, _ := ask("/token", strings.Repeat("x", loginBodyMax+1)); code != http.StatusRequestEntityTooLarge && code != 403 {
			t.Errorf("a long request: %d", code)
		}
		if n := reached.Load(); n != 0 {
			t.Fatalf("the destination got %d requests for tokens", n)
		}
		if code, _ := ask("/other", ""); code != 200 || reached.Swap(0) != 1 {
			t.Errorf("another request: %d", code)
		}
	}
}
