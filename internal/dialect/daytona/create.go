package daytona

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// Defaults and bounds, as Daytona's.
const (
	usualUser     = "user"
	daytonaUser   = "daytona"   // what programs ask for, and what this machine does not have
	usualAutoStop = 15          // minutes
	usualArchive  = 7 * 24 * 60 // minutes
	maxMinutes    = 366 * 24 * 60
	maxName       = 200
	maxLabels     = 64 << 10 // bytes
)

// A newSandbox is the body of a creation. Pointers distinguish missing fields.
type newSandbox struct {
	Name                string            `json:"name"`
	Snapshot            string            `json:"snapshot"`
	User                string            `json:"user"`
	Target              string            `json:"target"` // of a tier's name, that tier
	Env                 map[string]string `json:"env"`
	Labels              map[string]string `json:"labels"`
	Public              bool              `json:"public"`
	NetworkBlockAll     bool              `json:"networkBlockAll"`
	NetworkAllowList    string            `json:"networkAllowList"`
	DomainAllowList     string            `json:"domainAllowList"`
	OutboundProxyURL    string            `json:"outboundProxyUrl"`
	CPU                 float64           `json:"cpu"`
	GPU                 float64           `json:"gpu"`
	Memory              float64           `json:"memory"` // GiB
	Disk                float64           `json:"disk"`   // GiB
	AutoStopInterval    *int              `json:"autoStopInterval"`
	AutoPauseInterval   *int              `json:"autoPauseInterval"`
	AutoArchiveInterval *int              `json:"autoArchiveInterval"`
	AutoDeleteInterval  *int              `json:"autoDeleteInterval"`
	TTLMinutes          *int              `json:"ttlMinutes"`
	Volumes             []json.RawMessage `json:"volumes"`
	Secrets             []json.RawMessage `json:"secrets"`
	BuildInfo           json.RawMessage   `json:"buildInfo"`
	LinkedSandbox       string            `json:"linkedSandbox"`
}

// create handles POST /api/sandbox. It answers when a command can run.
func (c *call) create() error {
	var q newSandbox
	if err := c.body(&q, true); err != nil {
		return err
	}
	rec, err := c.plan(q)
	if err != nil {
		return err
	}
	if usual(q.Snapshot) {
		return c.begun(rec, nil)
	}
	from, err := c.snapshot(q.Snapshot)
	if err != nil {
		return err
	}
	for name, value := range from.Env {
		if _, own := rec.Env[name]; !own {
			if rec.Env == nil {
				rec.Env = map[string]string{}
			}
			rec.Env[name] = value
		}
	}
	return c.begun(rec, &from)
}

// begun makes a planned sandbox, of the server's system or from a snapshot, and answers with it.
func (c *call) begun(rec record, from *snapshot) error {
	_, release, err := c.h.reserve(named{"Sandbox", rec.Tenant, rec.Name})
	if err != nil {
		return err
	}
	defer release()
	if err := c.free(rec.Name); err != nil { // another one may have got it before it was reserved
		return err
	}
	p, err := rec.Network.policy()
	if err != nil {
		return err
	}
	spec := paddock.Spec{
		ID: rec.ID, Tier: rec.Tier, User: rec.User, Env: rec.Env, Limits: rec.Limits, Policy: paddock.Policy{Network: p},
		Labels: map[string]string{"daytona.name": rec.Name},
	}
	if from != nil {
		spec.Root, spec.Tier, spec.Sudo = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: from.ID}, from.Tier, from.Sudo
		spec.User = ""
		if from.Memory { // its kernel has them
			spec.Env = nil
		}
		if spec.Limits == (paddock.Limits{Disk: c.h.o.Disk}) {
			spec.Limits = paddock.Limits{}
		}
	}
	if c.caller.Check != nil {
		if err := c.caller.Check(spec); err != nil {
			return err
		}
	}
	sb, err := c.made(&spec, rec.terms())
	if err != nil {
		return err
	}
	st, err := paddock.FirstStatus(c.ctx, sb)
	if err == nil {
		rec.Tier, rec.Limits, rec.User, rec.Dir, rec.Home, rec.Sudo = st.Tier, st.Limits, st.User, st.Dir, st.Dir, spec.Sudo
		if from != nil {
			rec.User, rec.Dir, rec.Home = from.User, from.Dir, from.Home
		}
		err = c.h.keep(context.WithoutCancel(c.ctx), rec)
	}
	if err == nil && rec.Public {
		if err = c.share(rec, true); err != nil {
			err = errors.Join(err, c.h.o.Store.Forget(context.WithoutCancel(c.ctx), kindSandbox, rec.Tenant, string(rec.ID)))
		}
	}
	if err != nil {
		return errors.Join(err, sb.Remove(context.WithoutCancel(c.ctx)))
	}
	c.h.mu.Lock()
	c.h.boxes[rec.ID] = newBox(rec)
	c.h.mu.Unlock()
	return c.json(http.StatusOK, c.answerOf(rec, st.State))
}

// made makes a sandbox, with sudo where the tier has it, as Daytona's have. Where this machine gives no network to
// sandboxes, one for which nothing is allowed has none.
func (c *call) made(spec *paddock.Spec, t lifetime.Terms) (paddock.Sandbox, error) {
	d := c.caller.Driver
	fixed := spec.Root.Kind == paddock.RootSnapshot // which has sudo, or not
	spec.Sudo = spec.Sudo || !fixed
	sb, err := d.CreateWith(c.ctx, *spec, t)
	if errors.Is(err, paddock.Unsupported) && !fixed {
		spec.Sudo = false
		sb, err = d.CreateWith(c.ctx, *spec, t)
	}
	if n := &spec.Policy.Network; errors.Is(err, paddock.Unsupported) && len(n.Rules) == 0 {
		n.Mode = paddock.NetworkNone
		return d.CreateWith(c.ctx, *spec, t)
	}
	return sb, err
}

// plan checks a request and returns the record that is known before the creation.
func (c *call) plan(q newSandbox) (record, error) {
	for _, x := range []struct {
		asked bool
		words string
	}{
		{len(q.Volumes) > 0, "volumes: this server offers none to Daytona's clients"},
		{len(q.Secrets) > 0, "secrets: this server offers none to Daytona's clients"},
		{given(q.BuildInfo), "an image or a Dockerfile: this server begins sandboxes of Daytona's clients with its own system"},
		{q.OutboundProxyURL != "", "outboundProxyUrl: this server has none"},
		{q.GPU > 0, "gpu: this server has none"},
		{q.LinkedSandbox != "", "linkedSandbox: sandboxes of this server are not linked"},
	} {
		if x.asked {
			return record{}, cannot("%s", x.words)
		}
	}
	if q.Public && c.h.o.Ports == nil {
		return record{}, cannot("public: this server leads nobody to ports")
	}
	rec := record{
		ID: newID(), Tier: tierOf(q.Target), Tenant: c.caller.Tenant, Name: q.Name, Labels: q.Labels, Env: q.Env, User: q.User, Snapshot: q.Snapshot, Public: q.Public,
		Network:  network{q.NetworkBlockAll, q.NetworkAllowList, q.DomainAllowList},
		AutoStop: usualAutoStop, AutoArchive: usualArchive, AutoDelete: -1, Created: c.h.now(),
	}
	rec.Updated = rec.Created
	if rec.User == "" || rec.User == daytonaUser {
		rec.User = usualUser
	}
	for _, x := range []struct {
		name  string
		asked *int
		least int
		to    *int
	}{
		{"autoStopInterval", q.AutoStopInterval, 0, &rec.AutoStop}, {"autoPauseInterval", q.AutoPauseInterval, 0, &rec.AutoPause},
		{"autoArchiveInterval", q.AutoArchiveInterval, 0, &rec.AutoArchive}, {"autoDeleteInterval", q.AutoDeleteInterval, -1, &rec.AutoDelete}, {"ttlMinutes", q.TTLMinutes, 0, &rec.TTL},
	} {
		if x.asked == nil {
			continue
		}
		if err := minutes(x.name, *x.asked, x.least); err != nil {
			return rec, err
		}
		*x.to = *x.asked
	}
	if err := checkTexts(q.Labels, q.Env); err != nil {
		return rec, err
	}
	var err error
	if rec.Limits, err = limits(q.CPU, q.Memory, q.Disk); err != nil {
		return rec, err
	}
	if rec.Limits.Disk == 0 {
		rec.Limits.Disk = c.h.o.Disk
	}
	return rec, c.named(&rec)
}

// named checks the name of a new sandbox, which is its ID if it has none.
func (c *call) named(rec *record) error {
	if rec.Name == "" {
		rec.Name = string(rec.ID)
		return nil
	}
	if len(rec.Name) > maxName || strings.ContainsFunc(rec.Name, func(r rune) bool { return r < ' ' || r == '/' || r == 0x7f }) {
		return invalid("the name has more than %d characters, or one that a name cannot have", maxName)
	}
	return c.free(rec.Name)
}

// free refuses a name that a sandbox of the caller's has.
func (c *call) free(name string) error {
	if _, _, err := c.find(name); err == nil {
		return refuse(http.StatusConflict, paddock.Exists, "Sandbox with name %s already exists", dialect.Printable(name))
	}
	return nil
}

// tierOf returns the tier that a target names; any other target, such as a region, leaves the choice to the server.
func tierOf(target string) paddock.Tier {
	switch t := paddock.Tier(target); t {
	case paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM:
		return t
	}
	return paddock.Auto
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// minutes checks an interval.
func minutes(name string, n, least int) error {
	if n < least || n > maxMinutes {
		return invalid("%s: %d is not a number of minutes from %d to %d", name, n, least, maxMinutes)
	}
	return nil
}

// checkTexts refuses labels and variables that nothing could have.
func checkTexts(labels, env map[string]string) error {
	size := func(list map[string]string) (n int) {
		for name, value := range list {
			n += len(name) + len(value)
		}
		return n
	}
	if n := size(labels); n > maxLabels {
		return invalid("labels have %d bytes, and the maximum is %d", n, maxLabels)
	}
	if n := size(env); n > paddock.MaxEnv {
		return invalid("env has %d bytes, and the maximum is %d", n, paddock.MaxEnv)
	}
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return invalid("env: %q is not a variable name", dialect.Printable(name))
		}
	}
	return nil
}

// limits converts sizes in GiB.
func limits(cpu, memory, disk float64) (paddock.Limits, error) {
	for name, n := range map[string]float64{"cpu": cpu, "memory": memory, "disk": disk} {
		if n < 0 || n > 1<<16 {
			return paddock.Limits{}, invalid("%s: %v is not a size", name, n)
		}
	}
	return paddock.Limits{CPUs: cpu, Memory: int64(memory * gib), Disk: int64(disk * gib)}, nil
}

// newID returns a random UUID, as Daytona's IDs are.
func newID() paddock.ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return paddock.ID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// get handles GET /api/sandbox/{id}.
func (c *call) get() error {
	b, rec, err := c.box()
	if err != nil {
		return err
	}
	sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
	var st paddock.Status
	if err == nil {
		st, err = sb.Status(c.ctx)
	}
	if err == nil && st.State == paddock.Dead {
		err = noSandbox(string(rec.ID))
	}
	if err != nil {
		return c.lost(b, rec, err)
	}
	rec.Limits = st.Limits
	return c.json(http.StatusOK, c.answerOf(rec, st.State))
}

// maxPage bounds a page of a list.
const (
	usualPage = 100
	maxPage   = 200
)

// list handles GET /api/sandbox.
func (c *call) list() error {
	q := c.URL.Query()
	var want map[string]string
	if text := q.Get("labels"); text != "" {
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return invalid("labels: it is not an object of texts in JSON")
		}
	}
	limit, err := number("limit", q.Get("limit"), usualPage, 1, maxPage)
	if err != nil {
		return err
	}
	all, err := c.mine()
	if err != nil {
		return err
	}
	states := slices.Concat(q["states"], q["state"])
	all = slices.DeleteFunc(all, func(a answer) bool {
		for name, value := range want {
			if a.Labels[name] != value {
				return true
			}
		}
		return len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return slices.Contains(strings.Split(s, ","), a.State) }) ||
			q.Get("name") != "" && !strings.HasPrefix(a.Name, q.Get("name")) || q.Get("id") != "" && !strings.HasPrefix(a.ID, q.Get("id"))
	})
	after := q.Get("cursor")
	if i := slices.IndexFunc(all, func(a answer) bool { return place(a) > after }); after != "" && i >= 0 {
		all = all[i:]
	} else if after != "" {
		all = nil
	}
	total := len(all)
	var next *string
	if len(all) > limit {
		all = all[:limit]
		last := place(all[limit-1])
		next = &last
	}
	if all == nil {
		all = []answer{}
	}
	return c.json(http.StatusOK, map[string]any{"items": all, "nextCursor": next, "total": total, "page": 1, "totalPages": (total + limit - 1) / limit})
}

// place orders sandboxes by their creation.
func place(a answer) string { return a.CreatedAt.Format(time.RFC3339Nano) + " " + a.ID }

// mine returns the caller's sandboxes in order, and forgets those that are gone.
func (c *call) mine() ([]answer, error) {
	c.h.mu.Lock()
	own := make([]*box, 0, len(c.h.boxes))
	for _, b := range c.h.boxes {
		own = append(own, b)
	}
	c.h.mu.Unlock()
	list, err := c.caller.Driver.List(c.ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[paddock.ID]paddock.Status, len(list))
	for _, st := range list {
		there[st.ID] = st
	}
	var all []answer
	for _, b := range own {
		rec, ok := b.record()
		if !ok || rec.Tenant != c.caller.Tenant {
			continue
		}
		st, ok := there[rec.ID]
		if !ok || st.State == paddock.Dead {
			c.h.forget(b, rec)
			continue
		}
		all = append(all, c.answerOf(rec, st.State))
	}
	slices.SortFunc(all, func(a, b answer) int { return strings.Compare(place(a), place(b)) })
	return all, nil
}
