package envd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAConnectionWhoseReadingWasCutHasNoOtherRequest(t *testing.T) {
	for what, begins := range map[string]func(http.ResponseWriter){
		"before its answer": func(http.ResponseWriter) {},
		"within its answer": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") },
	} {
		t.Run(what, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/cut" {
					if r.Context().Err() != nil {
						w.WriteHeader(http.StatusInternalServerError)
					}
					return
				}
				out := &answer{ResponseWriter: w, b: &Box{ctx: t.Context()}, alone: true}
				defer out.release()
				begins(out)
				out.cut()
				<-r.Context().Done()
				if !out.begun.Load() {
					out.WriteHeader(http.StatusBadGateway)
				}
			}))
			defer s.Close()
			if res, err := s.Client().Get(s.URL + "/cut"); err == nil { // it may be cut
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			} else if what == "before its answer" {
				t.Error(err)
			}
			res, err := s.Client().Get(s.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("the next request is told to end: %s", res.Status)
			}
		})
	}
}
