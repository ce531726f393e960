package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

const (
	idleTime    = 30 * time.Minute // after which a sandbox of a request over HTTP is removed
	removeTime  = 2 * time.Minute  // bounds the removal of a sandbox that nobody waits for
	mostListed  = 50
	forkUnknown = "a fork shows and reaches what its origin does; make it with sandbox_create to choose"
)

type createIn struct {
	Name      string   `json:"name"`
	Directory string   `json:"directory"`
	Hosts     []string `json:"hosts"`
	Secrets   []string `json:"secrets"`
	Keep      bool     `json:"keep"`
}

type boxOut struct {
	Sandbox   string `json:"sandbox"`
	Tier      string `json:"tier"`
	State     string `json:"state"`
	Directory string `json:"directory"`
	Undo      bool   `json:"undo"`
}

func boxOf(st paddock.Status) boxOut {
	return boxOut{Sandbox: string(st.ID), Tier: string(st.Tier), State: string(st.State), Directory: st.Dir, Undo: st.Undo != nil && st.Undo.Failed == ""}
}

func create(ctx context.Context, c *call, in createIn) (boxOut, error) {
	spec, err := c.offer.spec(wish{name: in.Name, directory: in.Directory, hosts: in.Hosts, secrets: in.Secrets})
	if err != nil {
		return boxOut{}, err
	}
	return c.made(ctx, spec, in.Keep)
}

// made makes a sandbox and tells of it.
func (c *call) made(ctx context.Context, spec paddock.Spec, keep bool) (boxOut, error) {
	b, err := c.make(ctx, spec, keep)
	if err != nil {
		return boxOut{}, err
	}
	st, err := paddock.FirstStatus(ctx, b)
	if err != nil {
		return boxOut{}, err
	}
	out := boxOf(st)
	c.text = fmt.Sprintf("sandbox %s on tier %s; commands run in %s.", out.Sandbox, out.Tier, oneLine(out.Directory))
	switch {
	case keep:
		c.text += " It stays until sandbox_kill."
	case c.session:
		c.text += " It is removed when this session ends."
	default:
		c.text += fmt.Sprintf(" It is removed when nobody used it for %s.", idleTime)
	}
	if out.Undo {
		c.text += " Changes of its directory are recorded: sandbox_changes, sandbox_undo."
	}
	return out, nil
}

// make makes a sandbox: one that is kept, or one that ends with the client.
func (c *call) make(ctx context.Context, spec paddock.Spec, keep bool) (_ *box, err error) {
	var sb paddock.Sandbox
	switch {
	case keep:
		spec.Labels[labelOf] = c.offer.mark()
		sb, err = c.driver.Create(ctx, spec)
	case c.session:
		spec.Labels[labelOf], spec.Ephemeral = c.token, true
		sb, err = c.driver.Create(ctx, spec)
	default:
		spec.Labels[labelOf] = "http"
		sb, err = c.driver.CreateWith(ctx, spec, client.Terms{IdleRemove: idleTime})
	}
	if err != nil {
		return nil, err
	}
	st, err := paddock.FirstStatus(ctx, sb)
	if err != nil {
		gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		return nil, errors.Join(err, sb.Remove(gone))
	}
	return c.keep(sb, st), nil
}

type listOut struct {
	Sandboxes []boxOut `json:"sandboxes"`
	More      int      `json:"more"`
}

func list(ctx context.Context, c *call, _ struct{}) (listOut, error) {
	all, err := c.driver.List(ctx)
	if err != nil {
		return listOut{}, err
	}
	out := listOut{Sandboxes: []boxOut{}}
	var text strings.Builder
	for _, st := range slices.Backward(all) { // the newest first
		switch {
		case !c.mine(st):
		case len(out.Sandboxes) == mostListed:
			out.More++
		default:
			b := boxOf(st)
			out.Sandboxes = append(out.Sandboxes, b)
			fmt.Fprintf(&text, "%s %s, tier %s, directory %s, made %s\n", b.Sandbox, b.State, b.Tier, cmp.Or(st.Labels[labelDirectory], shownNone), st.Created.UTC().Format(time.RFC3339))
		}
	}
	switch {
	case out.More > 0:
		fmt.Fprintf(&text, "and %d older ones\n", out.More)
	case len(out.Sandboxes) == 0:
		text.WriteString("there are none; sandbox_create makes one")
	}
	c.text = text.String()
	return out, nil
}

type sandboxIn struct {
	Sandbox string `json:"sandbox"`
}

type killOut struct {
	Sandbox string `json:"sandbox"`
}

func kill(ctx context.Context, c *call, in sandboxIn) (killOut, error) {
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return killOut{}, err
	}
	if err := b.Remove(ctx); err != nil {
		return killOut{}, err
	}
	c.forget(b.ID())
	c.text = fmt.Sprintf("sandbox %s is gone.", b.ID())
	return killOut{string(b.ID())}, nil
}

type forkIn struct {
	Sandbox string `json:"sandbox"`
	Name    string `json:"name"`
	Keep    bool   `json:"keep"`
}

// fork makes a sandbox with the files of another one. Its private files are copied. Of the directory it has an overlay,
// where its origin could write, so that what it tries stays in it.
func fork(ctx context.Context, c *call, in forkIn) (_ boxOut, err error) {
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return boxOut{}, err
	}
	st, err := b.Status(ctx)
	if err != nil {
		return boxOut{}, err
	}
	w := again(b.labels)
	if w.directory == shownWrite {
		w.directory = shownOverlay
	}
	w.name = in.Name
	spec, err := c.offer.spec(w)
	if err != nil {
		return boxOut{}, fmt.Errorf("%w; %s", err, forkUnknown)
	}
	id, err := b.Snapshot(ctx, paddock.SnapshotOptions{})
	if errors.Is(err, paddock.Unsupported) {
		return boxOut{}, fmt.Errorf("%w; sandboxes of tier %s cannot be forked, those of gvisor can", err, st.Tier)
	}
	if err != nil {
		return boxOut{}, err
	}
	defer func() {
		gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
		defer cancel()
		err = errors.Join(err, c.driver.RemoveSnapshot(gone, id))
	}()
	spec.Tier, spec.Root = st.Tier, paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	spec.InheritLimits(st, false)
	return c.made(ctx, spec, in.Keep)
}
