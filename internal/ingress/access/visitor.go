package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A visitor is a request for a port that access control judges.
type visitor struct {
	control *Control
	r       *http.Request // a copy, without what is the server's
	id      paddock.ID
	port    int
	own     bool

	box   store.Sandbox // once it is found
	who   string        // what let it in
	keyed bool          // it was a key
	fresh string        // the text of a parameter that let it in
	until time.Time     // when that ends
}

// errPrivate is the answer to who shows nothing, whatever there is.
var errPrivate = fmt.Errorf("this port is private, if there is one: show a key, or ask its owner for a signed URL: %w", paddock.Denied)

// judge lets the request in, or says why not. What was shown is taken out of it.
func (v *visitor) judge() error {
	who, shown, err := v.key()
	if err != nil {
		return err
	}
	text, asked, header, err := v.shown()
	if err != nil {
		return err
	}
	cookie := v.cookie()
	box, said, err := v.find()
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	found := err == nil
	v.box = box
	mine := found && shown && who.Tenant == box.Tenant
	switch {
	case mine && !who.ReadOnly:
		v.who, v.keyed = who.Who, true
		return nil
	case found && said.Public:
		v.who = "public"
		return nil
	case asked && found:
		return v.signed(text, said, !header)
	case asked:
		return fmt.Errorf("the signature of the URL is not good for this port: %w", paddock.Denied)
	case mine:
		return fmt.Errorf("this key may only look: %w", paddock.Denied)
	case shown:
		return fmt.Errorf("sandbox %s: %w", v.id, paddock.NotFound)
	case cookie != "" && found && v.meant():
		return v.signed(cookie, said, false)
	}
	return errPrivate
}

// find tells whose the sandbox is, and what was said of the port.
func (v *visitor) find() (store.Sandbox, store.Port, error) {
	ctx := v.r.Context()
	box, err := v.control.o.Store.Owned(ctx, v.id)
	if err != nil {
		return store.Sandbox{}, store.Port{}, err
	}
	if box.State == store.Making {
		return store.Sandbox{}, store.Port{}, fmt.Errorf("sandbox %s: %w", v.id, paddock.NotFound)
	}
	said, err := v.control.o.Store.Port(ctx, box.Token, v.port)
	return box, said, err
}

// shown takes the signed text out of the request, wherever it is. One in a header does not become a cookie.
func (v *visitor) shown() (text string, asked, header bool, err error) {
	values := v.r.Header[PreviewHeader]
	delete(v.r.Header, PreviewHeader)
	text, asked, err = v.parameter()
	switch {
	case err != nil || len(values) == 0:
		return text, asked, false, err
	case asked || len(values) > 1:
		return "", false, false, fmt.Errorf("more than one signature is shown: %w", paddock.Invalid)
	}
	return values[0], true, true, nil
}

// key gives whose key is shown. A text in Authorization that is no key of the
// server's may be one of what runs inside, and stays.
func (v *visitor) key() (who Caller, shown bool, err error) {
	h := v.r.Header
	for _, name := range []string{KeyHeader, "X-Api-Key", "Authorization"} { // each value is looked up
		if n := len(h[name]); n > 1 {
			return Caller{}, false, fmt.Errorf("the header %s is there %d times: %w", name, n, paddock.Invalid)
		}
	}
	if keys := h[KeyHeader]; len(keys) > 0 {
		delete(h, KeyHeader)
		if who, err = v.holder(keys[0]); err != nil {
			return Caller{}, false, err
		}
		shown = true
	}
	if err := v.hide("X-Api-Key"); err != nil { // where clients of E2B show the same keys
		return Caller{}, false, err
	}
	scheme, text, ok := strings.Cut(h.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return who, shown, v.hide("Authorization")
	}
	other, err := v.holder(strings.TrimSpace(text))
	switch {
	case err == nil || !errors.Is(err, paddock.Denied):
		delete(h, "Authorization")
	default:
		return who, shown, nil
	}
	if shown {
		return who, true, nil
	}
	return other, err == nil, err
}

// holder tells whose a key is.
func (v *visitor) holder(text string) (Caller, error) {
	ask := &http.Request{Header: http.Header{"Authorization": {"Bearer " + text}}}
	return v.control.o.Caller(ask.WithContext(v.r.Context()))
}

// hide takes a header out that lets nobody in, if the guest would read a key in it.
func (v *visitor) hide(name string) error {
	text := v.r.Header.Get(name)
	if text == "" {
		return nil
	}
	if _, rest, ok := strings.Cut(text, " "); ok {
		text = strings.TrimSpace(rest)
	}
	switch _, err := v.holder(text); {
	case err == nil:
		delete(v.r.Header, name)
	case !errors.Is(err, paddock.Denied):
		return err
	}
	return nil
}

// parameter takes the signed text out of the query, and leaves the rest as it was
// written.
func (v *visitor) parameter() (text string, asked bool, err error) {
	if q := v.r.URL.RawQuery; !strings.Contains(q, "paddock") && !strings.Contains(q, PreviewParameter) && !strings.Contains(q, "%") {
		return "", false, nil
	}
	var kept []string
	for part := range strings.SplitSeq(v.r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name, bad := url.QueryUnescape(name); bad != nil || name != Parameter && name != PreviewParameter {
			kept = append(kept, part)
			continue
		}
		if asked {
			return "", false, fmt.Errorf("the parameter %s is there twice: %w", name, paddock.Invalid)
		}
		if text, err = url.QueryUnescape(value); err != nil {
			return "", false, fmt.Errorf("the parameter %s: %w: %w", name, err, paddock.Invalid)
		}
		asked = true
	}
	if asked {
		v.r.URL.RawQuery = strings.Join(kept, "&")
	}
	return text, asked, nil
}

// cookie gives the one that an earlier parameter became. It stays in the request: the
// proxy takes all of the server's out. Only a host of its own has one.
func (v *visitor) cookie() string {
	if !v.own {
		return ""
	}
	name := plainCookie
	if v.secure() {
		name = secureCookie
	}
	all := v.r.CookiesNamed(name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// secure tells whether the browser speaks to this host with encryption.
func (v *visitor) secure() bool { return v.r.TLS != nil || v.control.scheme == "https" }

// meant tells whether a browser that sends a cookie does so for the page of this
// host, or because a person goes there. Other hosts of the domain are the same site to it.
func (v *visitor) meant() bool {
	h := v.r.Header
	switch h.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
	default:
		return h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" && (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead)
	}
	// Without encryption no browser says it, and pictures and scripts come without an
	// Origin: then the page that asks is in the Referer, or a person goes there.
	if len(h["Origin"]) > 0 {
		return v.here(h["Origin"])
	}
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead || h.Get("Upgrade") != "" {
		return false
	}
	if len(h["Referer"]) > 0 {
		return v.here(h["Referer"])
	}
	return strings.Contains(h.Get("Accept"), "text/html")
}

// here tells whether an address is of the host that the request is for.
func (v *visitor) here(texts []string) bool {
	if len(texts) != 1 {
		return false
	}
	u, err := url.Parse(texts[0])
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, v.r.Host)
}

// signed lets in who shows a signature.
func (v *visitor) signed(text string, said store.Port, parameter bool) error {
	p, err := open(v.control.o.Key, v.claim(said), text, v.control.o.Now())
	if err != nil {
		return err
	}
	if !p.allows(v.r.URL) {
		return fmt.Errorf("the signed URL is for what is below %s alone: %w", p.path, paddock.Denied)
	}
	live, err := v.control.live.alive(v.r.Context(), holder{v.box.Tenant, p.key}, v.control.o.Now(), v.control.o.Live)
	switch {
	case err != nil:
		return err
	case !live:
		return fmt.Errorf("the signed URL ended with the key that it was made with: %w", paddock.Denied)
	}
	ended, err := v.control.o.Store.LinkEnded(v.r.Context(), v.box.Token, mark(text))
	switch {
	case err != nil:
		return err
	case ended:
		return fmt.Errorf("the signed URL was ended by its owner: %w", paddock.Denied)
	}
	v.who = "signed URL"
	if parameter {
		v.fresh, v.until = text, p.expires
	}
	return nil
}

func (v *visitor) claim(said store.Port) claim {
	return claim{id: v.id, token: v.box.Token, epoch: said.Epoch, port: v.port}
}

// redirect makes a cookie of a parameter. A browser that goes to a page is sent on to
// the same place without it, so that the page does not read it in its own address.
func (v *visitor) redirect(w http.ResponseWriter) bool {
	if v.fresh == "" || !v.own {
		return false
	}
	c := &http.Cookie{
		Name: plainCookie, Value: v.fresh, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: max(1, int(v.until.Sub(v.control.o.Now())/time.Second)),
	}
	if v.secure() {
		c.Name, c.Secure = secureCookie, true
	}
	http.SetCookie(w, c)
	h := v.r.Header
	page := h.Get("Sec-Fetch-Mode") == "navigate" || h.Get("Sec-Fetch-Mode") == "" && strings.Contains(h.Get("Accept"), "text/html")
	if !page || v.r.Method != http.MethodGet || h.Get("Upgrade") != "" {
		return false
	}
	to := url.URL{Path: v.r.URL.Path, RawPath: v.r.URL.RawPath, RawQuery: v.r.URL.RawQuery}
	text := to.EscapedPath()
	// What begins with two slashes would be another host.
	text = "/" + strings.TrimLeft(text, "/\\")
	if to.RawQuery != "" {
		text += "?" + to.RawQuery
	}
	w.Header().Set("Location", text)
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return true
}
