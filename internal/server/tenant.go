package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Keys manages the keys of one tenant.
type Keys interface {
	List(ctx context.Context) ([]api.Key, error)
	// Make makes a key. Its text cannot be retrieved again. Its scopes must be scopes of
	// its maker.
	Make(ctx context.Context, k api.NewKey) (api.Key, error)
	Revoke(ctx context.Context, id string) error
}

// sums handles GET /v1/usage.
func (q *request) sums() error {
	if q.caller.Usage == nil {
		return fmt.Errorf("this server does not count usage: %w", paddock.Unsupported)
	}
	asked, err := usageQuery(q.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	lines, err := q.caller.Usage(q.Context(), asked)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, api.Usage{Since: asked.Since, Until: asked.Until, Lines: append([]api.UsageLine{}, lines...)})
}

// usageQuery parses the parameters of a request.
func usageQuery(v url.Values, now time.Time) (u api.UsageQuery, err error) {
	now = now.UTC()
	u.Since, u.Until = time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), now.Truncate(time.Hour).Add(time.Hour)
	for name, values := range v {
		if !slices.Contains([]string{"since", "until", "label", "by", "each"}, name) {
			return u, fmt.Errorf("unknown parameter %q: %w", name, paddock.Invalid)
		}
		if len(values) > 1 && name != "label" {
			return u, fmt.Errorf("parameter %s is given twice: %w", name, paddock.Invalid)
		}
	}
	for _, part := range []struct {
		name string
		to   *time.Time
	}{{"since", &u.Since}, {"until", &u.Until}} {
		if text := v.Get(part.name); text != "" {
			if *part.to, err = time.Parse(time.RFC3339, text); err != nil {
				return u, fmt.Errorf("%s: %q is not a time such as 2026-11-01T13:00:00Z: %w", part.name, text, paddock.Invalid)
			}
		}
	}
	for _, text := range v["label"] {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return u, fmt.Errorf("label: %q is not NAME=VALUE: %w", text, paddock.Invalid)
		}
		if u.Label == nil {
			u.Label = map[string]string{}
		}
		u.Label[name] = value
	}
	u.By = v.Get("by")
	if text := v.Get("each"); text != "" {
		if u.Each, err = strconv.ParseBool(text); err != nil {
			return u, fmt.Errorf("each: %q is neither true nor false: %w", text, paddock.Invalid)
		}
	}
	if u.Each && u.By != "" {
		return u, fmt.Errorf("each and by exclude each other: %w", paddock.Invalid)
	}
	return u, nil
}

// ownKeys returns the caller's keys, if the caller may manage them.
func (q *request) ownKeys() (Keys, error) {
	if q.caller.Keys == nil {
		return nil, fmt.Errorf("managing keys needs a key of a tenant with the scope admin: %w", paddock.Denied)
	}
	return q.caller.Keys, nil
}

// keys handles GET /v1/keys.
func (q *request) keys() error {
	k, err := q.ownKeys()
	if err != nil {
		return err
	}
	list, err := k.List(q.Context())
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, api.Keys{Keys: append([]api.Key{}, list...)})
}

// makeKey handles POST /v1/keys.
func (q *request) makeKey() error {
	k, err := q.ownKeys()
	if err != nil {
		return err
	}
	var asked api.NewKey
	if err := q.body(&asked); err != nil {
		return err
	}
	made, err := k.Make(q.Context(), asked)
	if err != nil {
		return err
	}
	return q.json(http.StatusCreated, made)
}

// revokeKey handles DELETE /v1/keys/{key}.
func (q *request) revokeKey() error {
	k, err := q.ownKeys()
	if err != nil {
		return err
	}
	if err := k.Revoke(q.Context(), q.PathValue("key")); err != nil {
		return err
	}
	return q.none()
}
