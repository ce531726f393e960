package daytona

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Sources of an error. Clients choose the class of an exception by source and code.
const (
	fromAPI    = "DAYTONA_API"
	fromDaemon = "DAYTONA_DAEMON"
)

// Codes of errors that clients have a class for.
const (
	codeFileNotFound     = "FILE_NOT_FOUND"
	codeFileDenied       = "FILE_ACCESS_DENIED"
	codeFilePath         = "INVALID_FILE_PATH"
	codeFileRead         = "FILE_READ_FAILED"
	codeExecutionTimeout = "PROCESS_EXECUTION_TIMEOUT"
	codeProcessNotFound  = "PROCESS_NOT_FOUND"
	codeSessionEnded     = "SESSION_ENDED"
	codeCommandCompleted = "COMMAND_ALREADY_COMPLETED"
	codeUnsupported      = "NOT_SUPPORTED"
)

func refuse(status int, kind paddock.Kind, format string, args ...any) error {
	return dialect.Refuse(status, kind, format, args...)
}

// coded is refuse with a code of the daemon.
func coded(status int, code string, kind paddock.Kind, format string, args ...any) error {
	return &dialect.Refusal{Status: status, Code: code, Text: fmt.Sprintf(format, args...), Kind: kind}
}

func invalid(format string, args ...any) error { return refuse(400, paddock.Invalid, format, args...) }

// cannot returns an error for a feature of Daytona that this server does not have. It is no 404, which programs read as
// a missing sandbox.
func cannot(format string, args ...any) error {
	return coded(501, codeUnsupported, paddock.Unsupported, format, args...)
}

func noSandbox(id string) error {
	return refuse(404, paddock.NotFound, "Sandbox with ID or name %s not found", dialect.Printable(id))
}

// A fault is the body of an error.
type fault struct {
	StatusCode int    `json:"statusCode"`
	Message    string `json:"message"`
	Code       string `json:"code,omitempty"`
	Source     string `json:"source"`
	Timestamp  string `json:"timestamp"`
	Path       string `json:"path"`
	Method     string `json:"method"`
}

// faultOf returns the body that a caller gets for an error.
func faultOf(err error) fault {
	var r *dialect.Refusal
	if errors.As(err, &r) {
		return fault{StatusCode: r.Status, Code: r.Code, Message: jsonbody.Short(r.Text)}
	}
	f := fault{StatusCode: paddock.KindOf(err).Translate().HTTP, Message: jsonbody.Short(err.Error())}
	switch paddock.KindOf(err) {
	case paddock.Unsupported:
		f.StatusCode, f.Code = 501, codeUnsupported
	case paddock.Canceled, paddock.Timeout:
		f.StatusCode = 408
	}
	return f
}

// fail answers with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, source string, err error) {
	f := faultOf(err)
	if f.StatusCode >= 500 && f.StatusCode != 501 {
		h.log.Warn("daytona", "error", jsonbody.Short(err.Error()))
		if paddock.KindOf(err) == paddock.Internal {
			f.Message = "a fault of the server; its log says more"
		}
	}
	if errors.Is(err, paddock.Exhausted) {
		w.Header().Set("Retry-After", "1")
	}
	f.Source, f.Timestamp, f.Path, f.Method = source, h.now().Format(time.RFC3339), jsonbody.Short(r.URL.Path), r.Method
	data, marshalled := json.Marshal(f)
	if marshalled != nil {
		data = []byte(`{"statusCode":500,"message":"the answer is not JSON"}`)
	}
	dialect.Write(w, f.StatusCode, "application/json", append(data, '\n'))
}
