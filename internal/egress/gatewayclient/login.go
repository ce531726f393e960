package gatewayclient

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
)

// A Login keeps the tokens of logins with the owner of a sandbox, so that neither the sandbox nor a file of its state has
// them. The gateway asks it about each inspected request over TLS to one of its hosts. Its methods are called concurrently.
type Login interface {
	// Hosts returns the hosts, each with its port, that requests are asked about. It always returns the same.
	Hosts() []string
	// Login answers about one request. ctx ends when the answer is no longer needed.
	Login(ctx context.Context, r LoginRequest) LoginAnswer
}

// A LoginRequest is a request of the sandbox to a host of a [Login]. All in it is the sandbox's.
type LoginRequest struct {
	Host   string `json:"host"`
	Port   uint16 `json:"port"`
	Method string `json:"method"`
	Path   string `json:"path"` // as sent
	Query  string `json:"query,omitempty"`

	// Whole says that the rest is there, because the first answer asked for it.
	Whole       bool   `json:"whole,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	UserAgent   string `json:"user_agent,omitempty"`
	Body        []byte `json:"body,omitempty"`
}

// A LoginAnswer is what becomes of a request. The zero LoginAnswer leaves it as it is.
type LoginAnswer struct {
	Tokens []LoginToken `json:"tokens,omitempty"` // to put into it

	// Whole asks for the whole request. Its destination does not get it: the owner answers, and Name is the name of the
	// login that it uses.
	Whole bool   `json:"whole,omitempty"`
	Name  string `json:"name,omitempty"`

	// Of a whole request: the answer, or why there is none.
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	Body        []byte `json:"body,omitempty"`
	Refused     string `json:"refused,omitempty"`
}

// A LoginToken replaces placeholders by a value in the named headers of one request, and the value by the last
// placeholder in its answer.
type LoginToken struct {
	Name         string   `json:"name"`
	Value        string   `json:"value"`
	Placeholders []string `json:"placeholders"`
	Headers      []string `json:"headers"`
}

// String returns the name without the value, so that a log never holds the value.
func (t LoginToken) String() string { return "token " + t.Name }

// GoString returns the same as String.
func (t LoginToken) GoString() string { return t.String() }

// Bounds of what is said about logins. A message has at most 160 KiB, and a body is a third longer in it.
const (
	LoginBodyMax  = 64 << 10 // bytes of a request, and of an answer
	loginTextMax  = 4 << 10  // of a path or a query
	loginTokenMax = 96 << 10 // of values and placeholders of one answer
)

// checkLogin checks a request that the gateway hands over. A path that was cut would be another.
func checkLogin(r *LoginRequest) error {
	if r == nil || len(r.Body) > LoginBodyMax || len(r.Path)+len(r.Query) > 2*loginTextMax {
		return fmt.Errorf("a request of a login that is not one: %w", paddock.Invalid)
	}
	for _, s := range []*string{&r.Host, &r.Method, &r.ContentType, &r.UserAgent} {
		*s = printable(*s, nameMax)
	}
	return nil
}

// CheckLoginText reports whether a path and a query are short enough to be asked about.
func CheckLoginText(path, query string) bool {
	return len(path) <= loginTextMax && len(query) <= loginTextMax
}

// fit makes an answer fit into a message.
func (a LoginAnswer) fit() LoginAnswer {
	size := 0
	for _, t := range a.Tokens {
		size += len(t.Name) + len(t.Value)
		for _, p := range append(t.Placeholders, t.Headers...) {
			size += len(p) + 3
		}
	}
	if size > loginTokenMax || len(a.Body) > LoginBodyMax {
		return LoginAnswer{Whole: a.Whole, Status: http.StatusBadGateway, Refused: "what the login answers is too long"}
	}
	a.Refused = printable(a.Refused, textMax)
	return a
}
