package execserver

import (
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Codes of errors, as Codex knows them.
const (
	invalidRequest = -32600
	unknownMethod  = -32601
	invalidParams  = -32602
	internalError  = -32603
	notFound       = -32004
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type success struct {
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result"`
}

type failure struct {
	ID    json.RawMessage `json:"id"`
	Error problem         `json:"error"`
}

type notification struct {
	Method string `json:"method"`
	Params any    `json:"params"`
}

// A problem is an error that the client is told.
type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (p problem) Error() string { return p.Message }

// problemOf gives the code of an error.
func problemOf(err error) problem {
	var p problem
	if errors.As(err, &p) {
		return p
	}
	code := internalError
	switch paddock.KindOf(err) {
	case paddock.NotFound:
		code = notFound
	case paddock.Invalid, paddock.Denied, paddock.Exists, paddock.Conflict:
		code = invalidRequest
	}
	text := err.Error()
	if len(text) > 4096 {
		text = text[:4096]
	}
	return problem{code, strings.ToValidUTF8(text, "?")}
}

// validID reports whether an id is a number or a text, which is sent back as it came.
func validID(id json.RawMessage) bool {
	return len(id) <= 256 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// filePath reads a file: URI as a path of the box. Bytes that are escaped need not be text.
func filePath(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme != "file" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", problem{invalidParams, "a path is not a file: URI"}
	case u.Host != "" && u.Host != "localhost":
		return "", problem{invalidParams, "a path is of another host"}
	case !path.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0) || len(u.Path) > 4096:
		return "", problem{invalidParams, "a path is not absolute, holds a NUL or is too long"}
	}
	return u.Path, nil
}

func fileURI(name string) string { return (&url.URL{Scheme: "file", Path: name}).String() }

// A wish is the sandbox that Codex asks for of its own. Nothing in a box makes it, so all but none is refused: who asked
// for less than the box gives must not get what the box gives.
type wish struct {
	Permissions struct {
		Type string `json:"type"`
	} `json:"permissions"`
}

func (w *wish) check() error {
	if w == nil || w.Permissions.Type == "disabled" {
		return nil
	}
	return problem{invalidRequest, "this box is the sandbox, and Codex asks for one of its own inside, which is not made: " +
		"start codex with --sandbox danger-full-access (sandbox_mode in its config.toml), and say with the flags of paddock exec-server what the box may do"}
}
