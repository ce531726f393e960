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
	looks   bool // it only looks. A WebSocket that brings input, and what runs a program inside, do more, though they are a GET
}

// controlTable returns the routes of the control plane.
func controlTable() []route {
	const box = "/api/sandbox/{id}"
	return []route{
		{"GET /api/config", (*call).config, true},
		{"POST /api/sandbox", (*call).create, false},
		{"GET /api/sandbox", (*call).list, true},
		{"GET /api/sandbox/paginated", (*call).list, true},
		{"GET " + box, (*call).get, true},
		{"DELETE " + box, (*call).remove, false},
		{"POST " + box + "/start", (*call).start, false},
		{"POST " + box + "/stop", (*call).stop, false},
		{"POST " + box + "/pause", (*call).pause, false},
		{"POST " + box + "/resume", (*call).start, false},
		{"POST " + box + "/recover", (*call).start, false},
		{"PUT " + box + "/labels", (*call).setLabels, false},
		{"POST " + box + "/autostop/{n}", (*call).autoStop, false},
		{"POST " + box + "/autopause/{n}", (*call).autoPause, false},
		{"POST " + box + "/autoarchive/{n}", (*call).autoArchive, false},
		{"POST " + box + "/autodelete/{n}", (*call).autoDelete, false},
		{"POST " + box + "/ttl/{n}", (*call).ttl, false},
		{"POST " + box + "/public/{is}", (*call).public, false},
		{"POST " + box + "/last-activity", (*call).activity, false},
		{"POST " + box + "/network-settings", (*call).setNetwork, false},
		{"POST " + box + "/resize", (*call).resize, false},
		{"GET " + box + "/toolbox-proxy-url", (*call).toolboxURL, true},
		{"POST " + box + "/snapshot", (*call).makeSnapshot, false},
		{"POST " + box + "/fork", (*call).fork, false},
		{"GET /api/snapshots", (*call).listSnapshots, true},
		{"GET /api/snapshots/{id}", (*call).getSnapshot, true},
		{"DELETE /api/snapshots/{id}", (*call).removeSnapshot, false},
		{"POST /api/snapshots/{id}/activate", (*call).getSnapshot, false},
		{"GET /api/volumes", (*call).none, true},
		{"GET /api/secret", (*call).none, true},
		{"GET /api/warm-pools", (*call).none, true},
	}
}

// toolboxTable returns the routes of a sandbox's toolbox, below its path.
func toolboxTable() []route {
	return []route{
		{"POST /process/execute", (*call).execute, false},
		{"POST /process/code-run", (*call).codeRun, false},
		{"GET /process/session", (*call).sessions, true},
		{"POST /process/session", (*call).makeSession, false},
		{"GET /process/session/{sid}", (*call).session, true},
		{"DELETE /process/session/{sid}", (*call).removeSession, false},
		{"POST /process/session/{sid}/exec", (*call).sessionExec, false},
		{"GET /process/session/{sid}/command/{cid}", (*call).command, true},
		{"GET /process/session/{sid}/command/{cid}/logs", (*call).commandLogs, true},
		{"POST /process/session/{sid}/command/{cid}/input", (*call).commandInput, false},
		{"GET /process/pty", (*call).listPTY, true},
		{"POST /process/pty", (*call).makePTY, false},
		{"GET /process/pty/create-connect", (*call).createConnectPTY, false},
		{"GET /process/pty/{sid}", (*call).getPTY, true},
		{"DELETE /process/pty/{sid}", (*call).removePTY, false},
		{"POST /process/pty/{sid}/resize", (*call).resizePTY, false},
		{"GET /process/pty/{sid}/connect", (*call).connectPTY, false},
		{"GET /files", (*call).listFiles, true},
		{"DELETE /files", (*call).removeFile, false},
		{"GET /files/info", (*call).fileInfo, true},
		{"POST /files/folder", (*call).makeFolder, false},
		{"POST /files/move", (*call).moveFile, false},
		{"POST /files/permissions", (*call).setPermissions, false},
		{"GET /files/search", (*call).searchFiles, true},
		{"GET /files/find", (*call).findInFiles, true},
		{"POST /files/replace", (*call).replaceInFiles, false},
		{"GET /files/download", (*call).download, true},
		{"POST /files/upload", (*call).upload, false},
		{"POST /files/upload-v2", (*call).upload, false},
		{"POST /files/bulk-upload", (*call).bulkUpload, false},
		{"POST /files/bulk-download", (*call).bulkDownload, false},
		{"GET /work-dir", (*call).workDir, true},
		{"GET /user-home-dir", (*call).homeDir, true},
		{"GET /project-dir", (*call).workDir, true},
		{"GET /version", (*call).version, true},
		{"GET /system/metrics", (*call).metrics, true},
	}
}

func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range slices.Concat(controlTable(), previewTable(), signTable()) {
		mux.HandleFunc(r.pattern, h.known(fromAPI, r.looks, false, r.answer))
	}
	for _, r := range slices.Concat(toolboxTable(), gitTable(), interpretTable()) {
		method, path, _ := strings.Cut(r.pattern, " ")
		signed := r.pattern == "GET /files/download" || r.pattern == "POST /files/upload-v2"
		for _, base := range []string{"/toolbox/{id}", "/api/toolbox/{id}/toolbox"} {
			mux.HandleFunc(method+" "+base+path, h.known(fromDaemon, r.looks, signed, r.answer))
		}
	}
	for _, base := range []string{"/toolbox/{id}", "/api/toolbox/{id}/toolbox"} {
		mux.HandleFunc(base+"/proxy/{port}", h.proxy)
		mux.HandleFunc(base+"/proxy/{port}/", h.proxy)
	}
	missing := func(source, text string) http.HandlerFunc {
		return h.known(source, true, false, func(c *call) error { return cannot("%s %s: %s", c.Method, dialect.Printable(c.URL.Path), text) })
	}
	mux.HandleFunc("/api/socket.io/", func(w http.ResponseWriter, r *http.Request) { // clients poll at once
		h.fail(w, r, fromAPI, refuse(404, paddock.NotFound, "this server has no events"))
	})
	mux.HandleFunc("/api/", missing(fromAPI, "this server does not have that part of Daytona's API"))
	mux.HandleFunc("/toolbox/", missing(fromDaemon, "sandboxes of this server do not have that part of Daytona's toolbox"))
	return mux
}

// known makes a handler for identified callers. A key that may only look gets what looks. Where a signature counts, it
// does in the place of a key.
func (h *Handler) known(source string, looks, signed bool, f func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, h: h, ctx: r.Context()}
		if err := c.identify(looks, signed); err != nil {
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

// identify checks the key, or the signature.
func (c *call) identify(looks, signed bool) error {
	if signed && len(c.Header["Authorization"]) == 0 && c.URL.Query().Has("signature") {
		return c.bySignature()
	}
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
	case caller.ReadOnly && (!looks || c.Method != http.MethodGet):
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
