package ingress

import (
	"net"
	"net/http"
	"strings"
)

// Names that are the server's own, in requests and answers.
const (
	prefixHeader = "Paddock-"
	prefixCookie = "paddock-"
)

// ours tells whether a cookie is the server's: by its name, with or without
// what a browser holds it to.
func ours(cookie string) bool {
	name := strings.TrimLeft(lower(cookie), " \t")
	for _, prefix := range []string{"__host-", "__secure-", "__http-", "__host-http-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.HasPrefix(rest, prefixCookie) {
			return true
		}
	}
	return strings.HasPrefix(name, prefixCookie)
}

// cleanRequest takes out of a request what is for the server alone, and what tells
// of its way, which nobody outside is believed.
func cleanRequest(h http.Header) {
	for name := range h {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case strings.HasPrefix(canonical, prefixHeader),
			strings.HasPrefix(canonical, "X-Forwarded"),
			strings.HasPrefix(canonical, "E2b-"), // names the port, and lets in, in E2B's way
			canonical == "Proxy-Authorization", told(canonical),
			strings.ContainsRune(name, '_') && headerLike(name):
			delete(h, name)
		}
	}
	cleanCookies(h)
}

// headerLike tells whether a name with underlines is, to programs that take one
// for a dash, one of those that are written or taken out here.
func headerLike(name string) bool {
	canonical := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(canonical, prefixHeader) || strings.HasPrefix(canonical, "X-Forwarded") || told(canonical)
}

// told tells whether a header is one by which proxies say where a request came from, or
// that it is another than its first line says: programs inside may believe them.
func told(canonical string) bool {
	switch canonical {
	case "Forwarded", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Fastly-Client-Ip",
		"X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Original-Host", "X-Host",
		"X-Http-Method-Override", "X-Http-Method", "X-Method-Override":
		return true
	}
	return false
}

// cleanCookies takes the server's cookies out, and leaves the others as they were written.
func cleanCookies(h http.Header) {
	lines := h["Cookie"]
	if len(lines) == 0 {
		return
	}
	var kept []string
	for _, text := range lines {
		var parts []string
		for part := range strings.SplitSeq(text, ";") {
			if name, _, _ := strings.Cut(part, "="); !ours(strings.TrimSpace(name)) {
				parts = append(parts, strings.TrimSpace(part))
			}
		}
		if rest := strings.Join(parts, "; "); rest != "" {
			kept = append(kept, rest)
		}
	}
	if len(kept) == 0 {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = kept
}

// forwarded says where a request came from.
func forwarded(in, out *http.Request, encrypted bool) {
	from, _, err := net.SplitHostPort(in.RemoteAddr)
	if err == nil {
		out.Header.Set("X-Forwarded-For", from)
	}
	scheme := "http"
	if in.TLS != nil || encrypted {
		scheme = "https"
	}
	out.Header.Set("X-Forwarded-Host", in.Host)
	out.Header.Set("X-Forwarded-Proto", scheme)
}

// cleanAnswer takes out of an answer what would reach beyond its own host.
func cleanAnswer(h http.Header, own bool) {
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), prefixHeader) {
			delete(h, name)
		}
	}
	h.Del("Clear-Site-Data") // cookies of the whole domain would go
	h.Del("Alt-Svc")         // the host is the server's to move
	if own {
		cleanSetCookie(h)
		return
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
	for _, name := range []string{
		"Set-Cookie", "Strict-Transport-Security", "Service-Worker-Allowed", "Www-Authenticate", "Refresh", "Link",
		"Report-To", "Reporting-Endpoints", "Nel", "Accept-Ch", "Critical-Ch", "Origin-Agent-Cluster", "Origin-Trial",
		"Speculation-Rules", "Use-As-Dictionary",
	} {
		h.Del(name)
	}
	h.Add("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// cleanSetCookie keeps cookies to the host that sets them.
func cleanSetCookie(h http.Header) {
	lines := h["Set-Cookie"]
	if len(lines) == 0 {
		return
	}
	var kept []string
	for _, text := range lines {
		first, rest, more := strings.Cut(text, ";")
		name, _, named := strings.Cut(first, "=")
		if ours(strings.TrimSpace(name)) || !named && ours(strings.TrimSpace(first)) || strings.TrimSpace(name) == "" && named {
			continue
		}
		parts := []string{first}
		for part := range strings.SplitSeq(rest, ";") {
			if attribute, _, _ := strings.Cut(part, "="); more && lower(strings.TrimSpace(attribute)) != "domain" {
				parts = append(parts, part)
			}
		}
		kept = append(kept, strings.Join(parts, ";"))
	}
	h.Del("Set-Cookie")
	if len(kept) > 0 {
		h["Set-Cookie"] = kept
	}
}
