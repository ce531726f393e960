package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Page sizes of a list.
const (
	defaultPage = 100
	maxPage     = 500
)

// info handles GET /v1/info, with the parameter tier. It adds CanOutlive, because the
// server owns the sandboxes, so they outlive the client that made them. For the same reason it leaves out what only the
// process that opened a driver has.
func (q *request) info() error {
	info, err := q.caller.Driver.Info(q.Context(), paddock.Tier(q.URL.Query().Get("tier")))
	if err != nil {
		return err
	}
	info = info.ForClients()
	if !info.Can(paddock.CanOutlive) {
		info.Capabilities = append(info.Capabilities, paddock.CanOutlive)
	}
	return q.json(http.StatusOK, info)
}

// list handles GET /v1/sandboxes. It sends sandboxes in the order of creation, in pages.
func (q *request) list() error {
	keep, err := q.filter()
	if err != nil {
		return err
	}
	all, err := q.caller.Driver.List(q.Context())
	if err != nil {
		return err
	}
	limit, from := defaultPage, cursor{}
	if text := q.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return fmt.Errorf("limit: %q is not a number from 1 to %d: %w", text, maxPage, paddock.Invalid)
		}
	}
	if text := q.URL.Query().Get("cursor"); text != "" {
		if from, err = parseCursor(text); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(x, y paddock.Status) int { return cursorOf(x).compare(cursorOf(y)) })
	page := api.Page{Sandboxes: []paddock.Status{}}
	for _, st := range all {
		if from.compare(cursorOf(st)) >= 0 || !keep(st) || !q.visible(st.ID) {
			continue
		}
		if len(page.Sandboxes) == limit {
			page.Next = cursorOf(page.Sandboxes[limit-1]).String()
			break
		}
		page.Sandboxes = append(page.Sandboxes, st)
	}
	if err := q.out.hold(sizeOfStatuses(page.Sandboxes)); err != nil {
		return err
	}
	return q.json(http.StatusOK, page)
}

// sizeOfStatuses estimates the memory of statuses.
func sizeOfStatuses(list []paddock.Status) (n int64) {
	const status, label, refusal = 4096, 64, 256
	for _, st := range list {
		n += int64(status + len(st.Reason) + refusal*len(st.Refused))
		for name, value := range st.Labels {
			n += int64(label + len(name) + len(value))
		}
	}
	return n
}

// filter parses the conditions on the list.
func (q *request) filter() (func(paddock.Status) bool, error) {
	query := q.URL.Query()
	for name := range query {
		if !slices.Contains([]string{"label", "state", "tier", "limit", "cursor"}, name) {
			return nil, fmt.Errorf("unknown parameter %q: %w", name, paddock.Invalid)
		}
	}
	labels := map[string]string{}
	for _, text := range query["label"] {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("label: %q is not NAME=VALUE: %w", text, paddock.Invalid)
		}
		labels[name] = value
	}
	state, tier := paddock.State(query.Get("state")), paddock.Tier(query.Get("tier"))
	return func(st paddock.Status) bool {
		for name, value := range labels {
			if have, ok := st.Labels[name]; !ok || have != value {
				return false
			}
		}
		return (state == "" || st.State == state) && (tier == "" || st.Tier == tier)
	}, nil
}

// A cursor is a position in the order of creation.
type cursor struct {
	created int64
	id      paddock.ID
}

func cursorOf(st paddock.Status) cursor { return cursor{st.Created.UnixNano(), st.ID} }

func (c cursor) compare(d cursor) int {
	if c.created != d.created {
		if c.created < d.created {
			return -1
		}
		return 1
	}
	return strings.Compare(string(c.id), string(d.id))
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.created, 36) + " " + string(c.id)))
}

func parseCursor(text string) (cursor, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	created, id, ok := strings.Cut(string(data), " ")
	number, bad := strconv.ParseInt(created, 36, 64)
	if err != nil || bad != nil || !ok || !paddock.ID(id).Valid() {
		return cursor{}, fmt.Errorf("cursor: %q is not one of this server's: %w", text, paddock.Invalid)
	}
	return cursor{number, paddock.ID(id)}, nil
}

// status handles GET /v1/sandboxes/{id}. It always asks the driver.
func (q *request) status() error {
	id, err := q.sandboxID()
	if err != nil {
		return err
	}
	sb, err := q.caller.Driver.Open(q.Context(), id)
	if err != nil {
		q.account.boxes.forget(q.caller.Driver, id)
		return err
	}
	st, err := sb.Status(q.Context())
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, st)
}

// usage handles GET /v1/sandboxes/{id}/usage.
func (q *request) usage() error {
	return q.with(func(sb paddock.Sandbox) error {
		st, err := sb.Status(q.Context())
		if err != nil {
			return err
		}
		return q.json(http.StatusOK, st.Usage)
	})
}

// update handles PATCH /v1/sandboxes/{id}.
func (q *request) update() error {
	var u paddock.Update
	if err := q.body(&u); err != nil {
		return err
	}
	if u.Policy != nil {
		if err := q.caller.refusePolicy(*u.Policy); err != nil {
			return err
		}
	}
	return q.change(api.Updated, func(ctx context.Context, sb paddock.Sandbox) error { return sb.Update(ctx, u) })
}

func (q *request) pause() error {
	return q.change(api.Paused, func(ctx context.Context, sb paddock.Sandbox) error { return sb.Pause(ctx) })
}

func (q *request) resume() error {
	return q.change(api.Resumed, func(ctx context.Context, sb paddock.Sandbox) error { return sb.Resume(ctx) })
}

// change runs an operation on a sandbox, publishes it, and answers with the new status.
func (q *request) change(what api.NewsKind, do func(context.Context, paddock.Sandbox) error) error {
	return q.with(func(sb paddock.Sandbox) error {
		if err := do(q.Context(), sb); err != nil {
			return err
		}
		q.account.news.tell(what, sb.ID())
		st, err := sb.Status(q.Context())
		if err != nil {
			return err
		}
		return q.json(http.StatusOK, st)
	})
}

// remove handles DELETE /v1/sandboxes/{id}. Removing a sandbox that does not exist is not
// an error.
func (q *request) remove() error {
	id, err := q.sandboxID()
	var sb paddock.Sandbox
	if err == nil { // opened again, because the request means the present holder of the name
		sb, err = q.caller.Driver.Open(q.Context(), id)
	}
	if errors.Is(err, paddock.NotFound) {
		q.account.boxes.forget(q.caller.Driver, id)
		return q.none()
	}
	if err != nil {
		return err
	}
	// Continue if the client goes, because a partial removal helps nobody.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.Context()), 5*time.Minute)
	defer cancel()
	if err := sb.Remove(ctx); err != nil {
		return err
	}
	q.account.removed(q.caller.Driver, sb.ID())
	return q.none()
}

// snapshot handles POST /v1/sandboxes/{id}/snapshots.
func (q *request) snapshot() error {
	var o paddock.SnapshotOptions
	if err := q.body(&o); err != nil {
		return err
	}
	return q.with(func(sb paddock.Sandbox) error {
		id, err := sb.Snapshot(q.Context(), o)
		if err != nil {
			return err
		}
		q.account.news.tell(api.Snapshotted, sb.ID())
		return q.json(http.StatusCreated, api.Snapshot{ID: id})
	})
}

func (q *request) removeSnapshot() error {
	if err := q.caller.Driver.RemoveSnapshot(q.Context(), paddock.SnapshotID(q.PathValue("snapshot"))); err != nil {
		return err
	}
	return q.none()
}

// fork handles POST /v1/sandboxes/{id}/fork.
func (q *request) fork() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var f api.Fork
	if err := q.body(&f); err != nil {
		return err
	}
	if f.Spec.Root != (paddock.Root{}) {
		return fmt.Errorf("fork: root must be empty, because it is the source's: %w", paddock.Invalid)
	}
	return q.with(func(sb paddock.Sandbox) error {
		return q.made(func(ctx context.Context) (paddock.Sandbox, paddock.Status, error) {
			return q.forked(ctx, sb, f)
		}, func(st paddock.Status) error {
			q.w.Header().Set("Location", "/v1/sandboxes/"+string(st.ID))
			return q.json(http.StatusCreated, api.Forked{Sandbox: st, Memory: f.Memory})
		})
	})
}

// forked takes a snapshot, makes a sandbox from it, and removes the snapshot.
func (q *request) forked(ctx context.Context, sb paddock.Sandbox, f api.Fork) (_ paddock.Sandbox, _ paddock.Status, err error) {
	from, err := sb.Status(ctx)
	if err != nil {
		return nil, paddock.Status{}, err
	}
	id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: f.Memory})
	if err != nil {
		return nil, paddock.Status{}, err
	}
	defer func() {
		if failed := q.caller.Driver.RemoveSnapshot(context.WithoutCancel(ctx), id); failed != nil {
			q.s.log.Error("remove the snapshot of a fork", "id", q.id, "error", failed.Error())
		}
	}()
	spec := inherit(f.Spec, from, q.caller.Trusted)
	spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	return q.build(ctx, spec, f.Terms)
}

// inherit fills zero fields of a spec from the sandbox that it is forked from. It does not
// inherit the policy, because the zero policy is the safest. Only a trusted caller may accept
// the weakness of a limit.
func inherit(spec paddock.Spec, from paddock.Status, trusted bool) paddock.Spec {
	spec.InheritLimits(from, trusted)
	spec.Tier = cmp.Or(spec.Tier, from.Tier)
	spec.User = cmp.Or(spec.User, from.User)
	spec.Dir = cmp.Or(spec.Dir, from.Dir)
	if spec.Labels == nil {
		spec.Labels = from.Labels
	}
	if from.Undo != nil {
		spec.Undo = cmp.Or(spec.Undo, from.Undo.Mode)
	}
	if from.Monitor != nil && spec.Monitor == nil {
		judged := from.Monitor.Settings
		spec.Monitor = &judged
	}
	return spec
}
