package e2b

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// States of sandboxes in E2B's API.
const (
	running = "running"
	paused  = "paused"
)

// state returns the state of a sandbox, and whether it exists.
func state(rec record, st paddock.Status) (string, bool) {
	switch {
	case st.State == paddock.Dead:
		return "", false
	case st.State == paddock.Paused, rec.Paused:
		return paused, true
	}
	return running, true
}

// get handles GET /sandboxes/{id}.
func (c *call) get() error {
	b, rec, err := c.box()
	if err != nil {
		return err
	}
	name := paused
	if rec.Cold == "" {
		sb, err := c.caller.Driver.Open(c.ctx, rec.name())
		var st paddock.Status
		if err == nil {
			st, err = sb.Status(c.ctx)
		}
		if now, _ := b.record(); errors.Is(err, paddock.NotFound) && (now.Cold != "" || now.name() != rec.name()) {
			return c.get() // it was paused or restarted meanwhile
		}
		if err != nil {
			return b.lost(c.ctx, err)
		}
		var ok bool
		if name, ok = state(rec, st); !ok {
			return noSandbox(c.PathValue("id"))
		}
		rec.Limits = st.Limits
	}
	d := b.detail(rec, name)
	if c.caller.ReadOnly {
		d.EnvdAccessToken, d.Network = "", plain(d.Network) // a read-only caller could change everything with the token
	}
	return c.json(http.StatusOK, d)
}

// A found is a sandbox of a list.
type found struct {
	rec   record
	state string
}

// mine returns the caller's sandboxes, and deletes the records of those that are gone.
func (c *call) mine() ([]found, error) {
	own := map[*box]record{}
	for _, b := range c.h.all() { // before List, so that List includes all of them
		if rec, ok := b.record(); ok && rec.Tenant == c.caller.Tenant {
			own[b] = rec
		}
	}
	all, err := c.caller.Driver.List(c.ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[paddock.ID]paddock.Status, len(all))
	for _, st := range all {
		there[st.ID] = st
	}
	var list []found
	for b, was := range own {
		rec, ok := b.record()
		if !ok {
			continue
		}
		if rec.Cold != "" || was.Cold != "" || rec.name() != was.name() { // List may not have known its name
			name, _ := state(rec, paddock.Status{})
			list = append(list, found{rec, name})
			continue
		}
		st, ok := there[rec.name()]
		if !ok {
			if err := b.end(c.ctx); err != nil {
				return nil, err
			}
			continue
		}
		if name, ok := state(rec, st); ok {
			rec.Limits = st.Limits
			list = append(list, found{rec, name})
		}
	}
	return list, nil
}

// listRunning handles GET /sandboxes. It lists all running sandboxes.
func (c *call) listRunning() error {
	want, err := metadata(c.URL.Query().Get("metadata"))
	if err != nil {
		return err
	}
	list, err := c.mine()
	if err != nil {
		return err
	}
	answers := []listed{}
	order(list, "desc")
	for _, f := range list {
		if f.state == running && has(f.rec.Metadata, want) {
			answers = append(answers, c.h.listed(f.rec, f.state))
		}
	}
	return c.json(http.StatusOK, answers)
}

// A filter selects sandboxes of a list.
type filter struct {
	metadata map[string]string
	states   []string
	after    time.Time
	template string
	order    string
	from     cursor
	limit    int
}

func (c *call) filter() (filter, error) {
	q := c.URL.Query()
	f := filter{states: []string{running, paused}, template: q.Get("template"), order: cmp.Or(q.Get("order"), "desc")}
	var err error
	if f.metadata, err = metadata(q.Get("metadata")); err != nil {
		return f, err
	}
	if text := strings.Join(q["state"], ","); text != "" {
		f.states = strings.Split(text, ",")
		for _, s := range f.states {
			if s != running && s != paused {
				return f, invalid("state: %q is neither %s nor %s", dialect.Printable(s), running, paused)
			}
		}
	}
	if f.order != "asc" && f.order != "desc" {
		return f, invalid("order: %q is neither asc nor desc", dialect.Printable(f.order))
	}
	if text := q.Get("startedAfter"); text != "" {
		if f.after, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return f, invalid("startedAfter: %q is not a time", dialect.Printable(text))
		}
	}
	if f.limit, err = page(q); err != nil {
		return f, err
	}
	f.from, err = parseCursor(q.Get("nextToken"))
	return f, err
}

// page parses the page size.
func page(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return 0, invalid("limit: %q is not a number from 1 to 100", dialect.Printable(text))
	}
	return n, nil
}

func (f filter) keeps(x found) bool {
	return slices.Contains(f.states, x.state) && has(x.rec.Metadata, f.metadata) && !x.rec.Started.Before(f.after) &&
		(f.template == "" || x.rec.Template == f.template || x.rec.Alias == f.template)
}

// list handles GET /v2/sandboxes. It returns a page.
func (c *call) list() error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	all, err := c.mine()
	if err != nil {
		return err
	}
	order(all, f.order)
	answers, total := []listed{}, 0
	more := false
	for _, x := range all {
		if x.state == running {
			total++
		}
		if !f.keeps(x) || !f.from.before(x.rec, f.order) {
			continue
		}
		if len(answers) == f.limit {
			more = true
			continue
		}
		answers = append(answers, c.h.listed(x.rec, x.state))
	}
	if more {
		last := answers[len(answers)-1]
		c.w.Header().Set("X-Next-Token", cursor{last.StartedAt, last.SandboxID}.String())
	}
	c.w.Header().Set("X-Total-Running", strconv.Itoa(total))
	return c.json(http.StatusOK, answers)
}

// order sorts by start time.
func order(list []found, how string) {
	slices.SortFunc(list, func(a, b found) int {
		n := cmp.Or(a.rec.Started.Compare(b.rec.Started), cmp.Compare(a.rec.ID, b.rec.ID))
		if how == "desc" {
			return -n
		}
		return n
	})
}

// A cursor is a position in a list. The zero cursor is before everything.
type cursor struct {
	at time.Time
	id string
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.at.UTC().Format(time.RFC3339Nano) + "__" + c.id))
}

func parseCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(data), "__")
	when, bad := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok || bad != nil {
		return cursor{}, invalid("nextToken: not a token of this server")
	}
	return cursor{when, id}, nil
}

// before reports whether a sandbox comes after the cursor.
func (c cursor) before(r record, how string) bool {
	if c.id == "" {
		return true
	}
	n := cmp.Or(r.Started.Compare(c.at), cmp.Compare(string(r.ID), c.id))
	if how == "desc" {
		return n < 0
	}
	return n > 0
}

// metadata parses a filter: a form whose keys and values are escaped twice.
func metadata(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	form, err := url.ParseQuery(text)
	if err != nil {
		return nil, invalid("metadata: not a form")
	}
	want := map[string]string{}
	for name, values := range form {
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, invalid("metadata: a name is not escaped as it should be")
		}
		value, err := url.QueryUnescape(values[0])
		if err != nil {
			return nil, invalid("metadata: a value is not escaped as it should be")
		}
		want[name] = value
	}
	return want, nil
}

func has(all, want map[string]string) bool {
	for name, value := range want {
		if have, ok := all[name]; !ok || have != value {
			return false
		}
	}
	return true
}
