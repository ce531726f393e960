package daytona

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Ports leads to ports of sandboxes from outside. It knows who may, and how access is signed.
type Ports interface {
	// URL returns the address of a port at a host of its own, or empty if the server has no hosts for ports.
	URL(ctx context.Context, tenant string, id paddock.ID, port int) (string, error)

	// Public lets everybody reach all ports of a sandbox, or only who shows a key or a signature.
	Public(ctx context.Context, tenant string, id paddock.ID, public bool) error

	// Sign returns a text that lets in whoever shows it, until it ends or the key with the ID who does.
	Sign(ctx context.Context, tenant, who string, id paddock.ID, port int, life time.Duration) (string, error)

	// End ends a signed text.
	End(ctx context.Context, tenant string, id paddock.ID, port int, text string) error

	// Serve answers a request for a port, from whoever shows what lets it in.
	Serve(w http.ResponseWriter, r *http.Request, id paddock.ID, port int)
}

// Lifetimes of what is signed.
const (
	previewLife       = 24 * time.Hour // Daytona's tokens end with the sandbox
	usualSignedLife   = time.Minute    // as Daytona's
	longestSignedLife = 24 * time.Hour // as Daytona's
)

// parameter shows a signature in a URL, as Daytona's proxy takes it.
const parameter = "DAYTONA_SANDBOX_AUTH_KEY"

// previewTable returns the routes of addresses of ports. What they answer lets people in, so none of them only looks.
func previewTable() []route {
	const port = "/api/sandbox/{id}/ports/{port}/"
	return []route{
		{"GET " + port + "preview-url", (*call).preview, false},
		{"GET " + port + "signed-preview-url", (*call).signedPreview, false},
		{"POST " + port + "signed-preview-url/{token}/expire", (*call).expirePreview, false},
	}
}

// portOf returns the sandbox and the port that the path names.
func (c *call) portOf() (record, int, error) {
	_, rec, err := c.box()
	if err != nil {
		return rec, 0, err
	}
	if c.h.o.Ports == nil {
		return rec, 0, cannot("preview URLs: this server leads nobody to ports")
	}
	port, ok := portNumber(c.PathValue("port"))
	if !ok {
		return rec, 0, invalid("a port is a number from 1 to 65535")
	}
	return rec, port, nil
}

func portNumber(text string) (int, bool) {
	port, err := strconv.Atoi(text)
	return port, err == nil && port >= 1 && port <= 65535 && strconv.Itoa(port) == text
}

// share makes all ports of a sandbox public, or private.
func (c *call) share(rec record, public bool) error {
	switch {
	case c.h.o.Ports != nil:
		return c.h.o.Ports.Public(c.ctx, rec.Tenant, rec.ID, public)
	case public:
		return cannot("public: this server leads nobody to ports")
	}
	return nil
}

// signed returns where a port is reached, and a text that lets in whoever shows it. The address is a host of its own, or
// one of this server's, where programs reach the port and browsers do not.
func (c *call) signed(rec record, port int, life time.Duration) (at, token string, err error) {
	if at, err = c.h.o.Ports.URL(c.ctx, rec.Tenant, rec.ID, port); err != nil {
		return "", "", err
	}
	if at == "" {
		at = c.toolboxBase() + "/" + string(rec.ID) + "/proxy/" + strconv.Itoa(port) + "/"
	}
	token, err = c.h.o.Ports.Sign(c.ctx, rec.Tenant, c.caller.Who, rec.ID, port, life)
	return at, token, err
}

// preview handles GET …/preview-url. The token is for a header.
func (c *call) preview() error {
	rec, port, err := c.portOf()
	if err != nil {
		return err
	}
	at, token, err := c.signed(rec, port, previewLife)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"sandboxId": rec.ID, "url": strings.TrimSuffix(at, "/"), "token": token})
}

// signedPreview handles GET …/signed-preview-url.
func (c *call) signedPreview() error {
	rec, port, err := c.portOf()
	if err != nil {
		return err
	}
	life := usualSignedLife
	if text := c.URL.Query().Get("expiresInSeconds"); text != "" {
		n, err := strconv.Atoi(text)
		if life = time.Duration(n) * time.Second; err != nil || n < 1 || n > int(longestSignedLife/time.Second) {
			return invalid("expiresInSeconds: %s is not a number of seconds from 1 to %d", text, longestSignedLife/time.Second)
		}
	}
	at, token, err := c.signed(rec, port, life)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"sandboxId": rec.ID, "port": port, "token": token, "url": at + "?" + parameter + "=" + url.QueryEscape(token)})
}

// expirePreview handles POST …/signed-preview-url/{token}/expire.
func (c *call) expirePreview() error {
	rec, port, err := c.portOf()
	if err != nil {
		return err
	}
	if err := c.h.o.Ports.End(c.ctx, rec.Tenant, rec.ID, port, c.PathValue("token")); err != nil {
		return err
	}
	return c.nothing(http.StatusOK)
}

// proxy carries a request to a port, below a path of the toolbox. Who may is for Ports to say: a signature needs no key.
// Only an ID names the sandbox here, because a name is one of a tenant.
func (h *Handler) proxy(w http.ResponseWriter, r *http.Request) {
	id, text := paddock.ID(r.PathValue("id")), r.PathValue("port")
	port, ok := portNumber(text)
	if h.o.Ports == nil || !ok || !id.Valid() {
		h.fail(w, r, fromDaemon, invalid("/toolbox/ID/proxy/PORT names a port of a sandbox by its ID, and a number from 1 to 65535"))
		return
	}
	// The rest keeps its spelling, which the program inside may read in its own way.
	_, path, found := strings.Cut(r.URL.EscapedPath(), "/proxy/"+text)
	inside, err := url.PathUnescape(path)
	if !found || err != nil {
		h.fail(w, r, fromDaemon, invalid("the port is written without escapes"))
		return
	}
	to := r.Clone(r.Context())
	to.URL.Path, to.URL.RawPath = inside, path
	if inside == "" {
		to.URL.Path, to.URL.RawPath = "/", ""
	}
	h.o.Ports.Serve(w, to, id, port)
}
