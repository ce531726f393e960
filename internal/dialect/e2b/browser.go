package e2b

import (
	"fmt"
	"html"
	"net/http"
	"strings"
)

// allowOrigin permits pages of any origin to make requests and read answers. Access is
// decided by a key, which no browser sends by itself.
func allowOrigin(w http.ResponseWriter) {
	anyOrigin(w.Header())
}

func anyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

// preflight reports whether a request is a browser's CORS preflight.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// forSandbox reports whether the announced request will name a sandbox. The preflight
// itself does not have the header.
func forSandbox(r *http.Request) bool {
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if strings.EqualFold(strings.TrimSpace(name), headerID) {
			return preflight(r)
		}
	}
	return false
}

// permit answers a preflight.
func permit(w http.ResponseWriter, r *http.Request) {
	allowOrigin(w)
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "7200")
	w.WriteHeader(http.StatusNoContent)
}

// sorry answers instead of a port's listener. It sends a page to a browser, recognised as
// E2B's proxy does, and JSON to a program.
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
