package client

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Escalation options are those of [Driver.Escalate].
type Escalation struct {
	Tier paddock.Tier // of the new sandbox

	// ID is that of the new sandbox. Empty lets the server choose one.
	ID paddock.ID

	// End accepts that processes which run now end. Without it they are [paddock.Conflict].
	End bool

	// Weaker permits a tier that isolates less than the present one. Without it that is [paddock.Denied].
	Weaker bool
}

// Escalate moves a sandbox to another tier: the server makes a new one with its files, labels, policy, secrets, mounts and
// the rest of its terms, and removes the former one when the new one can run commands. Processes do not go along. After an
// error the former sandbox is as it was. left says why the former one could not be removed; it is to be removed then.
func (d *Driver) Escalate(ctx context.Context, id paddock.ID, e Escalation) (sb paddock.Sandbox, left string, err error) {
	if !id.Valid() {
		return nil, "", fmt.Errorf("escalate: sandbox %q: invalid name: %w", string(id), paddock.Invalid)
	}
	var got api.Escalated
	from := &sandbox{d: d, id: id}
	if err := from.call(ctx, "escalate", call{method: "POST", path: "/escalate", body: api.Escalation(e), answer: &got}); err != nil {
		return nil, "", err
	}
	if err := named("sandbox", string(got.Sandbox.ID)); err != nil {
		return nil, "", fmt.Errorf("escalate: %w", err)
	}
	if got.Left == "" {
		d.removed(id)
	}
	return &sandbox{d: d, id: got.Sandbox.ID, born: &got.Sandbox}, got.Left, nil
}
