package daytona

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A call is a request from an identified caller.
type call struct {
	*http.Request
	w      http.ResponseWriter
	h      *Handler
	caller dialect.Caller
	place  dialect.Place
	ctx    context.Context
}

// A route is a method with a path, and its handler.
type route struct {
	pattern string
	answer  func(*call) error
}

// controlTable returns the routes of the control plane.
func controlTable() []route {
	const box = "/api/sandbox/{id}"
	return []route{
		{"GET /api/config", (*call).config},
		{"POST /api/sandbox", (*call).create},
		{"GET /api/sandbox", (*call).list},
		{"GET /api/sandbox/paginated", (*call).list},
		{"GET " + box, (*call).get},
		{"DELETE " + box, (*call).remove},
		{"POST " + box + "/start", (*call).start},
		{"POST " + box + "/stop", (*call).stop},
		{"POST " + box + "/pause", (*call).pause},
		{"POST " + box + "/resume", (*call).start},
		{"POST " + box + "/recover", (*call).start},
		{"PUT " + box + "/labels", (*call).setLabels},
		{"POST " + box + "/autostop/{n}", (*call).autoStop},
		{"POST " + box + "/autopause/{n}", (*call).autoPause},
		{"POST " + box + "/autoarchive/{n}", (*call).autoArchive},
		{"POST " + box + "/autodelete/{n}", (*call).autoDelete},
		{"POST " + box + "/ttl/{n}", (*call).ttl},
		{"POST " + box + "/public/{is}", (*call).public},
		{"POST " + box + "/last-activity", (*call).activity},
		{"POST " + box + "/network-settings", (*call).setNetwork},
		{"POST " + box + "/resize", (*call).resize},
		{"GET " + box + "/toolbox-proxy-url", (*call).toolboxURL},
		{"POST " + box + "/snapshot", (*call).makeSnapshot},
		{"POST " + box + "/fork", (*call).fork},
		{"GET /api/snapshots", (*call).listSnapshots},
		{"GET /api/snapshots/{id}", (*call).getSnapshot},
		{"DELETE /api/snapshots/{id}", (*call).removeSnapshot},
		{"POST /api/snapshots/{id}/activate", (*call).getSnapshot},
		{"GET /api/volumes", (*call).none},
		{"GET /api/secret", (*call).none},
		{"GET /api/warm-pools", (*call).none},
	}
}

// toolboxTable returns the routes of a sandbox's toolbox, below its path.
func toolboxTable() []route {
	return []route{
		{"POST /process/execute", (*call).execute},
		{"POST /process/code-run", (*call).codeRun},
		{"GET /process/session", (*call).sessions},
		{"POST /process/session", (*call).makeSession},
		{"GET /process/session/{sid}", (*call).session},
		{"DELETE /process/session/{sid}", (*call).removeSession},
		{"POST /process/session/{sid}/exec", (*call).sessionExec},
		{"GET /process/session/{sid}/command/{cid}", (*call).command},
		{"GET /process/session/{sid}/command/{cid}/logs", (*call).commandLogs},
		{"POST /process/session/{sid}/command/{cid}/input", (*call).commandInput},
		{"GET /process/pty", (*call).listPTY},
		{"POST /process/pty", (*call).makePTY},
		{"GET /process/pty/create-connect", (*call).createConnectPTY},
		{"GET /process/pty/{sid}", (*call).getPTY},
		{"DELETE /process/pty/{sid}", (*call).removePTY},
		{"POST /process/pty/{sid}/resize", (*call).resizePTY},
		{"GET /process/pty/{sid}/connect", (*call).connectPTY},
		{"GET /files", (*call).listFiles},
		{"DELETE /files", (*call).removeFile},
		{"GET /files/info", (*call).fileInfo},
		{"POST /files/folder", (*call).makeFolder},
		{"POST /files/move", (*call).moveFile},
		{"POST /files/permissions", (*call).setPermissions},
		{"GET /files/search", (*call).searchFiles},
		{"GET /files/find", (*call).findInFiles},
		{"POST /files/replace", (*call).replaceInFiles},
		{"GET /files/download", (*call).download},
		{"POST /files/upload", (*call).upload},
		{"POST /files/upload-v2", (*call).upload},
		{"POST /files/bulk-upload", (*call).bulkUpload},
		{"POST /files/bulk-download", (*call).bulkDownload},
		{"GET /work-dir", (*call).workDir},
		{"GET /user-home-dir", (*call).homeDir},
		{"GET /project-dir", (*call).workDir},
		{"GET /version", (*call).version},
		{"GET /system/metrics", (*call).metrics},
	}
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range controlTable() {
		mux.HandleFunc(r.pattern, h.known(fromAPI, r.answer))
	}
	for _, r := range slices.Concat(toolboxTable(), gitTable(), interpretTable()) {
		method, path, _ := strings.Cut(r.pattern, " ")
		for _, base := range []string{"/toolbox/{id}", "/api/toolbox/{id}/toolbox"} {
			mux.HandleFunc(method+" "+base+path, h.known(fromDaemon, r.answer))
		}
	}
	missing := func(source, text string) http.HandlerFunc {
		return h.known(source, func(c *call) error { return cannot("%s %s: %s", c.Method, dialect.Printable(c.URL.Path), text) })
	}
	mux.HandleFunc("/api/socket.io/", func(w http.ResponseWriter, r *http.Request) { // clients poll at once
		h.fail(w, r, fromAPI, refuse(404, paddock.NotFound, "this server has no events"))
	})
	mux.HandleFunc("/api/", missing(fromAPI, "this server does not have that part of Daytona's API"))
	mux.HandleFunc("/toolbox/", missing(fromDaemon, "sandboxes of this server do not have that part of Daytona's toolbox"))
	return mux
}

// known makes a handler for identified callers.
func (h *Handler) known(source string, f func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, h: h, ctx: r.Context()}
		if err := c.identify(); err != nil {
			h.fail(w, r, source, err)
			return
		}
		place, err := h.o.Enter(c.ctx, c.caller.Tenant)
		if err != nil {
			h.fail(w, r, source, err)
			return
		}
		defer place.Leave()
		c.place = place
		if err := f(c); err != nil {
			h.fail(w, r, source, err)
		}
	}
}

// identify checks the key.
func (c *call) identify() error {
	key, ok := strings.CutPrefix(c.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		return refuse(401, paddock.Denied, "the API key is missing: send it as Authorization: Bearer KEY")
	}
	caller, err := c.h.o.Caller(c.ctx, key)
	switch {
	case errors.Is(err, paddock.Denied):
		return refuse(401, paddock.Denied, "Invalid credentials")
	case err != nil:
		return err
	case caller.ReadOnly && c.Method != http.MethodGet:
		return refuse(403, paddock.Denied, "this key may only look")
	}
	c.caller = caller
	c.ctx = c.h.o.Mark(c.ctx, c.Request, caller.Tenant, caller.Who)
	return nil
}

func (c *call) body(v any, optional bool) error {
	return dialect.Body(c.w, c.Request, c.place, v, optional)
}

// json answers with a body in JSON. If the tenant's answers that are not sent yet are too large, it
// returns an error instead.
func (c *call) json(code int, v any) error {
	data, err := c.place.Encode(v)
	if err != nil {
		return err
	}
	dialect.Write(c.w, code, "application/json", data)
	return nil
}

// nothing answers without a body.
func (c *call) nothing(code int) error {
	dialect.Hurry(c.w)
	c.w.WriteHeader(code)
	return nil
}

func (c *call) none() error { return c.json(http.StatusOK, []struct{}{}) }

// config describes the server.
func (c *call) config() error {
	return c.json(http.StatusOK, map[string]any{
		"version": Version, "proxyTemplateUrl": "", "proxyToolboxUrl": c.toolboxBase(), "defaultSnapshot": "", "dashboardUrl": "", "maintananceMode": false, "environment": "paddock",
	})
}

// toolboxBase is where this request's client finds toolboxes: at the address that it used.
func (c *call) toolboxBase() string {
	scheme := "http"
	if c.TLS != nil || c.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + c.Host + strings.TrimSuffix(toolbox, "/")
}
