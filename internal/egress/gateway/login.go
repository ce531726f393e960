package gateway

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

// loginsMax is the number of questions about logins at once. More wait.
const loginsMax = 8

// Login asks the owner about a request to a host of a login.
func (b backend) Login(ctx context.Context, f decide.Flow, r inspect.LoginRequest) (inspect.LoginAnswer, error) {
	g := b.g
	f, err := g.named(f)
	if err != nil {
		return inspect.LoginAnswer{}, err
	}
	if g.o.Login == nil || !slices.Contains(g.o.LoginHosts, net.JoinHostPort(f.Host.String(), strconv.Itoa(int(f.Port)))) {
		return inspect.LoginAnswer{}, nil
	}
	if !gatewayclient.CheckLoginText(r.Path, r.Query) {
		return inspect.LoginAnswer{}, &inspect.Refusal{Verdict: decide.Verdict{Rule: -1, Reason: "its address is too long for a host of a login"}}
	}
	select {
	case g.logins <- struct{}{}:
		defer func() { <-g.logins }()
	case <-ctx.Done():
		return inspect.LoginAnswer{}, fmt.Errorf("ask about the login: %w: %w", ctx.Err(), paddock.Canceled)
	}
	given := g.o.Login(ctx, gatewayclient.LoginRequest{
		Host: f.Host.String(), Port: f.Port, Method: r.Method, Path: r.Path, Query: r.Query,
		Whole: r.Whole, ContentType: r.ContentType, UserAgent: r.UserAgent, Body: r.Body,
	})
	if given == nil {
		return inspect.LoginAnswer{}, fmt.Errorf("nobody answered about the login: %w", paddock.Unavailable)
	}
	if given.Refused != "" {
		return inspect.LoginAnswer{}, &inspect.Refusal{Verdict: decide.Verdict{Rule: -1, Reason: given.Refused}}
	}
	a := inspect.LoginAnswer{Whole: given.Whole, Name: given.Name, Status: given.Status, ContentType: given.ContentType, Body: given.Body}
	for _, t := range given.Tokens {
		a.Tokens = append(a.Tokens, secret.Token(t))
	}
	return a, nil
}
