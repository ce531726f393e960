package codeinterpreter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A still sandbox counts the calls of it.
type still struct {
	paddock.Sandbox
	asked int
}

func (s *still) Processes(context.Context) ([]paddock.ProcessInfo, error) {
	s.asked++
	return nil, nil
}

func (s *still) Status(context.Context) (paddock.Status, error) {
	s.asked++
	return paddock.Status{}, nil
}

// A held body has room for so many bytes beside its text.
type held struct {
	io.Reader
	left int64
}

func (*held) Close() error { return nil }

func (h *held) Hold(n int64) error {
	if h.left -= n; h.left < 0 {
		return fmt.Errorf("no room: %w", paddock.Exhausted)
	}
	return nil
}

// A short text may take much memory when it is decoded.
func TestACellOfAMillionVariablesIsRefusedBeforeItIsDecoded(t *testing.T) {
	const variables, room = 1_000_000, 32 << 20
	var text strings.Builder
	text.WriteString(`{"code":"1","env_vars":{`)
	for n := range variables {
		fmt.Fprintf(&text, `"a%d":"",`, n)
	}
	text.WriteString(`"z":""}}`)
	if text.Len() > maxBody {
		t.Fatalf("%d bytes", text.Len())
	}
	for _, path := range []string{"/execute", "/contexts"} {
		sb := &still{}
		b, err := New(Options{Sandbox: sb})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		body := &held{strings.NewReader(text.String()), room}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, body))
		if w.Code != http.StatusTooManyRequests || body.left >= 0 || sb.asked > 0 {
			t.Errorf("%s: %d %s, %d bytes of room are left, the sandbox was asked %d times", path, w.Code, w.Body, body.left, sb.asked)
		}
	}
}
