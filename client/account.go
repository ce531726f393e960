package client

import (
	"context"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A UsageQuery says what use to add up: of the caller's own sandboxes.
type UsageQuery struct {
	Since, Until time.Time         // full hours; zero is the first of the month, UTC, and the end of this hour
	Label        map[string]string // only of sandboxes that had these
	By           string            // one line for each value of this label; empty is one line
	Each         bool              // one line for each sandbox, and then By is empty
}

// A Usage is what sandboxes used within a time. What a server of now writes may be
// ten seconds old.
type Usage struct {
	Since, Until time.Time
	Lines        []UsageLine
}

// A UsageLine is one sum. Numbers have no bound, and are never nil.
type UsageLine struct {
	Sandbox     paddock.ID // of UsageQuery.Each
	Label       string     // the value of UsageQuery.By
	Sandboxes   int        // how many there were
	Wall        *big.Int   // nanoseconds in which they existed
	Paused      *big.Int   // of that, in which they did not run
	CPU         *big.Int   // nanoseconds of processors that were used
	Memory      *big.Int   // byte-seconds that were used
	CPUAsked    *big.Int   // thousandths of processors times milliseconds, reserved while they ran
	MemoryAsked *big.Int   // byte-seconds, reserved while they ran
	DiskAsked   *big.Int   // byte-seconds, reserved
	NetIn       *big.Int   // bytes
	NetOut      *big.Int
	Unmeasured  []string // what was not measured of some of it: cpu, memory, network
}

// Usage tells what the caller's sandboxes used. A server that does not count is
// paddock.Unsupported.
func (d *Driver) Usage(ctx context.Context, q UsageQuery) (Usage, error) {
	query := url.Values{}
	for name, t := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !t.IsZero() {
			query.Set(name, t.UTC().Format(time.RFC3339))
		}
	}
	for name, value := range q.Label {
		query.Add("label", name+"="+value)
	}
	if q.By != "" {
		query.Set("by", q.By)
	}
	if q.Each {
		query.Set("each", strconv.FormatBool(true))
	}
	var got api.Usage
	if err := d.call(ctx, call{method: "GET", path: "/v1/usage", query: query, answer: &got, repeat: true}); err != nil {
		return Usage{}, fmt.Errorf("usage: %w", err)
	}
	u := Usage{Since: got.Since, Until: got.Until}
	for _, l := range got.Lines {
		line := UsageLine{
			Sandbox: paddock.ID(l.Sandbox), Label: l.Label, Sandboxes: l.Sandboxes, Unmeasured: l.Unmeasured,
			Wall: l.Wall, Paused: l.Paused, CPU: l.CPU, Memory: l.Memory,
			CPUAsked: l.CPUAsked, MemoryAsked: l.MemoryAsked, DiskAsked: l.DiskAsked, NetIn: l.NetIn, NetOut: l.NetOut,
		}
		for _, n := range []**big.Int{&line.Wall, &line.Paused, &line.CPU, &line.Memory, &line.CPUAsked, &line.MemoryAsked, &line.DiskAsked, &line.NetIn, &line.NetOut} {
			if *n == nil {
				*n = new(big.Int)
			}
		}
		u.Lines = append(u.Lines, line)
	}
	return u, nil
}

// A Key is what is known of a key of the caller's tenant.
type Key struct {
	ID      string
	Name    string   // for people
	Scopes  []string // read, write, admin
	Created time.Time
	Expires time.Time // zero is never
	Used    time.Time // the last time, to a minute; zero is never
	Revoked time.Time // zero is not
}

func keyOf(k api.Key) Key {
	return Key{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Created: k.Created, Expires: k.Expires, Used: k.Used, Revoked: k.Revoked}
}

// Keys lists the keys of the caller's tenant, oldest first, with those that ended.
// It takes a key of the scope admin, as the methods beside it do.
func (d *Driver) Keys(ctx context.Context) ([]Key, error) {
	var got api.Keys
	if err := d.call(ctx, call{method: "GET", path: "/v1/keys", answer: &got, repeat: true}); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	list := make([]Key, len(got.Keys))
	for i, k := range got.Keys {
		list[i] = keyOf(k)
	}
	return list, nil
}

// A NewKey says what a key is to allow.
type NewKey struct {
	Name    string
	Scopes  []string  // none that the caller's own key has not
	Expires time.Time // zero is never
}

// MakeKey makes a key of the caller's tenant, and gives its text, which cannot be
// had again.
func (d *Driver) MakeKey(ctx context.Context, k NewKey) (text string, made Key, err error) {
	var got api.Key
	err = d.call(ctx, call{method: "POST", path: "/v1/keys", body: api.NewKey{Name: k.Name, Scopes: append([]string{}, k.Scopes...), Expires: k.Expires}, answer: &got})
	if err != nil {
		return "", Key{}, fmt.Errorf("make a key: %w", err)
	}
	return got.Text, keyOf(got), nil
}

// RevokeKey ends a key of the caller's tenant, for good. Twice is fine.
func (d *Driver) RevokeKey(ctx context.Context, id string) error {
	if id == "" || id == "." || id == ".." {
		return fmt.Errorf("revoke key %q: not a name: %w", id, paddock.Invalid)
	}
	if err := d.call(ctx, call{method: "DELETE", path: "/v1/keys/" + url.PathEscape(id), repeat: true}); err != nil {
		return fmt.Errorf("revoke key %q: %w", id, err)
	}
	return nil
}
