package e2b

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// allowOrigin lets pages of any origin ask and read what they are told: who may do
// what is decided by a key, which no browser sends by itself.
func allowOrigin(w http.ResponseWriter) {
	anyOrigin(w.Header())
}

func anyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

// preflight tells whether a browser asks beforehand whether a page may make a request.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// forSandbox tells whether what a browser asks about will name a sandbox: the question
// itself has no such header.
func forSandbox(r *http.Request) bool {
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if strings.EqualFold(strings.TrimSpace(name), headerID) {
			return preflight(r)
		}
	}
	return false
}

// permit answers what a browser asks beforehand.
func permit(w http.ResponseWriter, r *http.Request) {
	allowOrigin(w)
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}

// sorry answers in the place of what listens inside: a browser gets a page, by the
// sign that E2B's proxy goes by, and a program what it can read.
func sorry(w http.ResponseWriter, r *http.Request, m missing, title string) {
	if !strings.Contains(r.UserAgent(), "Mozilla/") {
		answer(w, m.Code, m)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors *")
	head.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(m.Code)
	where := "sandbox " + m.SandboxID
	if m.Port != 0 {
		where += fmt.Sprintf(", port %d", m.Port)
	}
	fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><head><title>%s</title></head>\n<body><h1>%s</h1><p>%s.</p><p>%s</p></body></html>\n",
		html.EscapeString(title), html.EscapeString(title), html.EscapeString(m.Message), html.EscapeString(where))
}
