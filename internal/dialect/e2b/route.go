package e2b

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A call is a request of the control plane from an identified caller.
type call struct {
	*http.Request
	w      http.ResponseWriter
	h      *Handler
	caller dialect.Caller
	place  dialect.Place
	ctx    context.Context
}

// A route is a method with a path, and its handler. With looks, the request changes
// nothing.
type route struct {
	pattern string
	answer  func(*call) error
}

// table returns every route of the control plane.
func table() []route {
	const box = "/sandboxes/{id}"
	list := []route{
		{"POST /sandboxes", (*call).createOld},
		{"POST /v2/sandboxes", (*call).create},
		{"GET /sandboxes", (*call).listRunning},
		{"GET /v2/sandboxes", (*call).list},
		{"GET /sandboxes/metrics", (*call).manyMetrics},
		{"GET " + box, (*call).get},
		{"DELETE " + box, (*call).kill},
		{"POST " + box + "/timeout", (*call).timeout},
		{"POST " + box + "/refreshes", (*call).refresh},
		{"POST " + box + "/pause", (*call).pause},
		{"POST " + box + "/resume", (*call).resume},
		{"POST " + box + "/connect", (*call).connectOld},
		{"POST /v2" + box + "/connect", (*call).connect},
		{"POST " + box + "/fork", (*call).fork},
		{"PUT " + box + "/network", (*call).setNetwork},
		{"POST " + box + "/snapshots", (*call).snapshot},
		{"GET /snapshots", (*call).snapshots},
		{"GET " + box + "/metrics", (*call).boxMetrics},
		{"GET " + box + "/logs", (*call).logsOld},
		{"GET /v2" + box + "/logs", (*call).logs},
		{"GET /teams", (*call).teams},
	}
	return append(append(list, templateTable()...), otherTable()...)
}

// otherTable returns the routes that only answer with an error message.
func otherTable() []route {
	return []route{
		{"GET /volumes", (*call).none},
		{"POST /volumes", (*call).noVolumes},
		{"GET /volumes/{id}", (*call).noVolume},
		{"DELETE /volumes/{id}", (*call).noVolume},
		{"/volumecontent/", (*call).noVolume},
		{"GET /secrets", (*call).none},
		{"POST /secrets", (*call).noSecrets},
		{"GET /secrets/{id}", (*call).noSecret},
		{"POST /secrets/{id}", (*call).noSecret},
		{"DELETE /secrets/{id}", (*call).noSecret},
	}
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range table() {
		mux.HandleFunc(r.pattern, h.known(r.answer))
	}
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("PUT /templates/{id}/files/{hash}", h.upload) // its URL is the credential
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		h.fail(w, refuse(404, paddock.NotFound, "there is no such path"))
	})
	return mux
}

// known makes a handler for identified callers.
func (h *Handler) known(f func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, h: h, ctx: r.Context()}
		if err := c.identify(); err != nil {
			h.fail(w, err)
			return
		}
		place, err := h.o.Enter(c.ctx, c.caller.Tenant)
		if err != nil {
			h.busy(w, err)
			return
		}
		defer place.Leave()
		c.place = place
		if err := f(c); err != nil {
			h.fail(w, err)
		}
	}
}

// identify checks the key. An invalid key is answered 401, so that clients report it.
func (c *call) identify() error {
	key := c.Header.Get("X-Api-Key")
	if key == "" {
		key, _ = strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	}
	if key == "" {
		return refuse(401, paddock.Denied, "the API key is missing: send it as X-API-KEY")
	}
	caller, err := c.h.o.Caller(c.ctx, key)
	switch {
	case errors.Is(err, paddock.Denied):
		return refuse(401, paddock.Denied, "the API key is not valid")
	case err != nil:
		return err
	case caller.ReadOnly && c.Method != http.MethodGet:
		return refuse(403, paddock.Denied, "this key may only look")
	}
	c.caller = caller
	c.ctx = c.h.o.Mark(c.ctx, c.Request, caller.Tenant, caller.Who)
	return nil
}

// box returns the caller's sandbox that the path names. Another tenant's is not found.
func (c *call) box() (*box, record, error) {
	id := c.PathValue("id")
	b, ok := c.h.find(id)
	if !ok {
		return nil, record{}, noSandbox(id)
	}
	rec, there := b.record()
	if !there || rec.Tenant != c.caller.Tenant {
		return nil, record{}, noSandbox(id)
	}
	return b, rec, nil
}

// json answers with a body in JSON. If the tenant's answers that are not sent yet are too large, it
// returns an error instead.
func (c *call) json(code int, v any) error {
	data, err := c.place.Encode(v)
	if errors.Is(err, paddock.Exhausted) {
		c.w.Header().Set("Retry-After", "1")
	}
	if err != nil {
		return err
	}
	dialect.Write(c.w, code, "application/json", data)
	return nil
}

// nothing answers without a body.
func (c *call) nothing() error {
	dialect.Hurry(c.w)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *call) none() error { return c.json(http.StatusOK, []struct{}{}) }

func (c *call) noVolumes() error {
	return cannot("volumes are not offered by this server: a sandbox's files are its own")
}

func (c *call) noVolume() error {
	return refuse(404, paddock.NotFound, "there is no such volume: this server offers none")
}

func (c *call) noSecrets() error {
	return cannot("secrets are not offered over this API: give them to a sandbox's network policy with paddock")
}

func (c *call) noSecret() error {
	return refuse(404, paddock.NotFound, "there is no such secret: this server offers none")
}

// teams answers with the caller's tenant as the only team.
func (c *call) teams() error {
	return c.json(http.StatusOK, []map[string]any{{"teamID": c.caller.Tenant, "name": c.caller.Tenant, "apiKey": "", "isDefault": true}})
}
