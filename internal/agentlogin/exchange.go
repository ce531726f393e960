package agentlogin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

const (
	answerMax    = 64 << 10         // bytes of an answer of an endpoint
	exchangeTime = 60 * time.Second // of one exchange
	lifetimeMax  = 10 * 365 * 24 * time.Hour
)

// client returns the client for exchanges. It follows no redirect, because a token goes nowhere else.
func client(c *http.Client) *http.Client {
	var own http.Client
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Jar = nil
	return &own
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// A grant is what is read of a request for tokens. Nothing else of it is sent on: not the scope, because a box that
// asks for less would leave the host with less.
type grant struct {
	kind    string
	refresh string
	client  string
	secret  string // of a client that is a program, and so no secret
	form    bool
}

// parseGrant reads the body of a request for tokens. No error quotes it.
func parseGrant(contentType string, body []byte) (grant, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return grant{}, errors.New("the request for tokens has no content type")
	}
	var g grant
	switch kind {
	case "application/json":
		var all struct {
			Kind    string `json:"grant_type"`
			Refresh string `json:"refresh_token"`
			Client  string `json:"client_id"`
			Secret  string `json:"client_secret"`
		}
		if err := json.Unmarshal(body, &all); err != nil {
			return grant{}, errors.New("the request for tokens is not JSON as agents send it")
		}
		g = grant{kind: all.Kind, refresh: all.Refresh, client: all.Client, secret: all.Secret}
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return grant{}, errors.New("the request for tokens is not a form")
		}
		for _, v := range values {
			if len(v) > 1 {
				return grant{}, errors.New("the request for tokens has a field twice")
			}
		}
		g = grant{kind: values.Get("grant_type"), refresh: values.Get("refresh_token"), client: values.Get("client_id"), secret: values.Get("client_secret"), form: true}
	default:
		return grant{}, errors.New("the request for tokens is neither JSON nor a form")
	}
	for _, s := range []string{g.client, g.secret} {
		if len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return grant{}, errors.New("the client of the request for tokens is not one")
		}
	}
	return g, nil
}

// encode writes the request with the real refresh token.
func (g grant) encode(refresh string) (contentType string, body []byte, err error) {
	fields := map[string]string{"grant_type": "refresh_token", "refresh_token": refresh}
	if g.client != "" {
		fields["client_id"] = g.client
	}
	if g.secret != "" {
		fields["client_secret"] = g.secret
	}
	if !g.form {
		body, err = marshal(fields, false)
		return "application/json", body, err
	}
	values := url.Values{}
	for name, v := range fields {
		values.Set(name, v)
	}
	return "application/x-www-form-urlencoded", []byte(values.Encode()), nil
}

// exchange answers a request for tokens.
func (l *Login) exchange(ctx context.Context, at []place, r gatewayclient.LoginRequest) gatewayclient.LoginAnswer {
	l.busy.RLock()
	defer l.busy.RUnlock()
	if l.closed {
		return failure("the box is ending")
	}
	// A box that goes away must not end an exchange whose refresh token is used up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchangeTime)
	defer cancel()
	g, err := parseGrant(r.ContentType, r.Body)
	if err != nil {
		return refusal("invalid_request", err.Error())
	}
	s := at[0].h.section
	if g.kind != "refresh_token" {
		return refusal("access_denied", fmt.Sprintf("Paddock lets nobody log in inside of a box; log in outside, and start the box again: %s", s.Login))
	}
	i := slices.IndexFunc(at, func(p place) bool { return p.h.gave(g.refresh) })
	switch {
	case i < 0 && !slices.ContainsFunc(at, func(p place) bool { return p.h.vault != nil }):
		return refusal("invalid_grant", fmt.Sprintf("there is no %s on this machine; log in outside, and start the box again: %s", s.Name, s.Login))
	case i < 0:
		return refusal("invalid_grant", "the refresh token is not the placeholder of this box")
	case !at[i].h.allows(g):
		return refusal("invalid_client", "the client is not the one of this login")
	}
	return l.refresh(ctx, at[i], g, r.UserAgent)
}

// allows reports whether a client may refresh: one of the profile, or the one that the agent wrote outside. The box could
// else have the server revoke the login, as one that a stranger uses.
func (h *held) allows(g grant) bool {
	if g.secret != "" && !slices.Contains(h.section.Secrets, digest(g.secret)) {
		return false
	}
	if slices.Contains(h.section.Clients, g.client) {
		return true
	}
	if h.section.Client == "" || g.client == "" {
		return false
	}
	d, err := h.vault.read()
	return err == nil && d.text(h.section.Client) == g.client
}

// gave reports whether a text is a placeholder of the refresh token.
func (h *held) gave(s string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.refresh.list, s)
}

// refresh gets new tokens: those that somebody else has got meanwhile, or else those of the endpoint.
func (l *Login) refresh(ctx context.Context, p place, g grant, agent string) gatewayclient.LoginAnswer {
	h := p.h
	lock, err := lockDir(ctx, h.lock)
	if err != nil {
		return failure("another box is refreshing the same login")
	}
	defer lock.Close()
	if err := h.save(nil, time.Now()); err != nil {
		return failure("the tokens could not be stored outside")
	}
	was, err := h.current()
	if err != nil && paddock.KindOf(err) != paddock.NotFound { // the agent may be writing the file
		return failure("the login outside cannot be read now")
	}
	if err != nil {
		return refusal("invalid_grant", fmt.Sprintf("the login outside cannot be read; log in there: %s", h.section.Login))
	}
	if h.newer(was) {
		return h.answer(was)
	}
	if a, ok := h.paced(was); ok {
		return a
	}
	space, err := h.reserve()
	if err != nil {
		return failure("new tokens could not be stored outside, so none are asked for; is the disk full?")
	}
	now, status, err := h.attempt(was, func() (tokens, int, error) { return l.ask(ctx, p.e, g, was, agent) })
	if err != nil {
		if space.drop() != nil {
			return failure("the directory of the login outside cannot be written")
		}
		// The host's agent, which knows no lock of ours, may have been faster.
		if t, failed := h.current(); failed == nil && h.newer(t) {
			return h.answer(t)
		}
		if status != 0 {
			return refused(status, err)
		}
		return failure(err.Error())
	}
	h.mu.Lock()
	h.unsaved, h.last = &change{was: was.refresh, now: now}, now
	h.mu.Unlock()
	if err := h.save(space, time.Now()); err != nil {
		return failure("the tokens could not be stored outside")
	}
	if now, err = h.current(); err != nil {
		return failure("the tokens could not be read outside")
	}
	return h.answer(now)
}

// newer reports whether tokens are valid, and others than those that the box's newest placeholder was made for.
func (h *held) newer(t tokens) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.access != h.access.real && (t.expires.IsZero() || time.Until(t.expires) > fresh)
}

// A change is an exchange of one refresh token.
type change struct {
	was string // the refresh token that was used
	now tokens
}

// reserve makes room for the file with the tokens of an exchange.
func (h *held) reserve() (*room, error) {
	d, err := h.vault.read()
	if err != nil {
		return nil, err
	}
	return h.vault.reserve(len(d.raw) + grown)
}

// save stores tokens of an exchange, unless the host's file has got others meanwhile: those of whoever wrote them are as
// new, and the agent outside knows them. It takes the room over, and keeps it for the next try if it fails. The caller
// has the lock.
func (h *held) save(space *room, at time.Time) error {
	h.mu.Lock()
	if space != nil {
		h.room = space
	}
	c, space := h.unsaved, h.room
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	d, err := h.vault.read()
	if err != nil {
		return err
	}
	if t, ok := d.tokens(h.section); ok && t.refresh == c.was {
		if err := d.store(h.section, c.now, at); err != nil {
			return err
		}
		if err := space.write(d); err != nil {
			return err
		}
	} else if err := space.drop(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsaved, h.room = nil, nil
	return nil
}

// close stores what is still to be stored, and gives everything back.
func (h *held) close() error {
	if h.vault == nil {
		return nil
	}
	return errors.Join(h.finish(), h.vault.dir.Close())
}

// finish stores the tokens that could not be stored before. Without them the login is lost.
func (h *held) finish() error {
	h.mu.Lock()
	c := h.unsaved
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	lock, err := lockDir(ctx, h.lock)
	if err == nil {
		err = errors.Join(h.save(nil, time.Now()), lock.Close())
	}
	if err == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room != nil {
		err = errors.Join(err, h.room.drop())
	}
	return fmt.Errorf("%s: the new tokens of a refresh could not be stored, and the old ones are used up; log in again: %s: %w", h.section.Name, h.section.Login, err)
}

// errServer says that the endpoint refused. It holds the name of the error, if that is one.
type errServer struct{ name string }

func (e errServer) Error() string { return e.name }

// ask does one exchange. A status says that the endpoint answered an error.
func (l *Login) ask(ctx context.Context, e endpoint, g grant, was tokens, agent string) (now tokens, status int, err error) {
	contentType, body, err := g.encode(was.refresh)
	if err != nil {
		return tokens{}, 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return tokens{}, 0, errors.New("the endpoint of the login cannot be asked")
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", agent)
	response, err := l.client.Do(r)
	if err != nil {
		return tokens{}, 0, errors.New("the endpoint of the login cannot be reached from outside of the box") // the cause may quote
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, answerMax+1))
	switch {
	case err != nil:
		return tokens{}, 0, errors.New("the answer of the login's endpoint broke off")
	case response.StatusCode >= 400 && response.StatusCode < 600:
		return tokens{}, response.StatusCode, errServer{errorName(data)}
	case response.StatusCode != http.StatusOK:
		return tokens{}, 0, fmt.Errorf("the endpoint of the login answered with the status %d", response.StatusCode)
	case len(data) > answerMax:
		return tokens{}, 0, errors.New("the answer of the login's endpoint is too long")
	}
	now, err = parseAnswer(data, was, time.Now())
	return now, 0, err
}

// parseAnswer reads the tokens of an answer. What it does not say stays as it was. No error quotes it.
func parseAnswer(data []byte, was tokens, at time.Time) (tokens, error) {
	var a struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		ID      string  `json:"id_token"`
		Expires float64 `json:"expires_in"`
	}
	if json.Unmarshal(data, &a) != nil || !isToken(a.Access) || a.Refresh != "" && !isToken(a.Refresh) || a.ID != "" && !isToken(a.ID) {
		return tokens{}, errors.New("the answer of the login's endpoint holds no tokens")
	}
	now := was
	now.access, now.expires = a.Access, time.Time{}
	if a.Refresh != "" {
		now.refresh = a.Refresh
	}
	if a.ID != "" {
		now.id = a.ID
	}
	switch {
	case a.Expires > 0 && a.Expires <= lifetimeMax.Seconds():
		now.expires = at.Add(time.Duration(a.Expires * float64(time.Second)))
	case a.Expires != 0:
		return tokens{}, errors.New("the answer of the login's endpoint has a lifetime that is not one")
	default:
		now.expires = jwtExpiry(a.Access)
	}
	return now, nil
}

// errorName returns the name of an OAuth error, or a general one. The rest of the answer may quote the token.
func errorName(data []byte) string {
	var a struct {
		Error json.RawMessage `json:"error"`
	}
	var name string
	var object struct {
		Type string `json:"type"`
		Code string `json:"code"`
	}
	if json.Unmarshal(data, &a) == nil {
		if json.Unmarshal(a.Error, &name) != nil && json.Unmarshal(a.Error, &object) == nil {
			if name = object.Code; name == "" {
				name = object.Type
			}
		}
	}
	if !regexp.MustCompile(`^[a-z_]{3,32}$`).MatchString(name) {
		return "server_error"
	}
	return name
}

// answer gives the box placeholders of tokens.
func (h *held) answer(t tokens) gatewayclient.LoginAnswer {
	m, err := h.masked(t)
	if err != nil {
		return failure("a placeholder could not be made")
	}
	fields := map[string]any{"access_token": m.access, "token_type": "Bearer"}
	if m.refresh != "" {
		fields["refresh_token"] = m.refresh
	}
	if m.id != "" {
		fields["id_token"] = m.id
	}
	if m.scope != "" {
		fields["scope"] = m.scope
	}
	if !m.expires.IsZero() {
		fields["expires_in"] = max(0, int64(math.Floor(time.Until(m.expires).Seconds())))
	}
	return reply(http.StatusOK, fields)
}

// refusal answers as an endpoint that refuses.
func refusal(name, why string) gatewayclient.LoginAnswer {
	return reply(http.StatusBadRequest, map[string]any{"error": name, "error_description": why})
}

// refused passes on that the endpoint refused.
func refused(status int, err error) gatewayclient.LoginAnswer {
	var e errServer
	name := "server_error"
	if errors.As(err, &e) {
		name = e.name
	}
	return reply(status, map[string]any{"error": name, "error_description": fmt.Sprintf("the server of the login answered with the status %d", status)})
}

// failure answers that there is no answer.
func failure(why string) gatewayclient.LoginAnswer {
	return reply(http.StatusBadGateway, map[string]any{"error": "temporarily_unavailable", "error_description": why})
}

// reply makes an answer of fields.
func reply(status int, fields map[string]any) gatewayclient.LoginAnswer {
	body, err := marshal(fields, false)
	if err != nil {
		return gatewayclient.LoginAnswer{Refused: paddock.Unavailable.Error()}
	}
	return gatewayclient.LoginAnswer{Status: status, ContentType: "application/json", Body: body}
}
