package codeinterpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// lines writes a stream of JSON objects, one per line.
type lines struct {
	w http.ResponseWriter
	c *http.ResponseController

	mu    sync.Mutex
	began bool      // guarded by mu
	last  time.Time // guarded by mu; time of the last line
}

// started reports whether a line was sent.
func (s *lines) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

func (s *lines) send(v map[string]any) error {
	if v == nil {
		return nil
	}
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false) // a result has the size that counts in Options.Room
	if err := encoder.Encode(v); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		s.began = true
		s.w.Header().Set("Content-Type", "application/x-ndjson")
		s.w.WriteHeader(http.StatusOK)
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(stall)) // not every server supports it
	if _, err := s.w.Write(line.Bytes()); err != nil {
		return err
	}
	s.last = time.Now()
	return s.c.Flush()
}

// live sends an alive line in times without events, until ctx ends. If the client does not
// accept it, live calls gone.
func (s *lines) live(ctx context.Context, every time.Duration, gone func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.mu.Lock()
			quiet := now.Sub(s.last) >= every-every/10
			s.mu.Unlock()
			if !quiet {
				continue
			}
			if err := s.send(map[string]any{"type": "keepalive"}); err != nil {
				gone()
				return
			}
		}
	}
}

// forms returns E2B's keys for media types.
func forms() map[string]string {
	return map[string]string{
		"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png",
		"image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex", "application/json": "json",
		"application/javascript": "javascript", interpreter.TypeData: "data", interpreter.TypeChart: "chart",
	}
}

// translate returns E2B's line for an event, or nil if there is none.
func translate(e interpreter.Event) map[string]any {
	switch e.Kind {
	case interpreter.Begun:
		return map[string]any{"type": "number_of_executions", "execution_count": e.Count}
	case interpreter.Stdout, interpreter.Stderr:
		return map[string]any{"type": string(e.Kind), "text": e.Text, "timestamp": e.Time.Format(time.RFC3339Nano)}
	case interpreter.Failed:
		return map[string]any{"type": "error", "name": e.Error.Name, "value": e.Error.Value, "traceback": e.Error.Traceback}
	case interpreter.Ended:
		return map[string]any{"type": "end_of_execution"}
	case interpreter.Shown:
		return result(e.Result)
	}
	return nil
}

func result(r *interpreter.Result) map[string]any {
	line := map[string]any{"type": "result", "is_main_result": r.Main}
	extra := map[string]json.RawMessage{}
	keys := forms()
	for kind, value := range r.Data {
		switch key, known := keys[kind]; {
		case !known:
			extra[kind] = value
		case key == "text":
			line[key] = unquoted(r.Text())
		default:
			line[key] = value
		}
	}
	if len(extra) > 0 {
		line["extra"] = extra
	}
	return line
}

// unquoted removes the quotes around a text, as E2B does for every text.
func unquoted(s string) string {
	for _, q := range []string{"'", `"`} {
		if len(s) >= 2 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[1 : len(s)-1]
		}
	}
	return s
}
