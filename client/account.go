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

// A UsageQuery selects which usage of the caller's own sandboxes to add up.
type UsageQuery struct {
	Since, Until time.Time         // full hours; zero is the start of the month in UTC, and the end of this hour
	Label        map[string]string // count only sandboxes with these labels
	By           string            // one line for each value of this label; empty is one line
	Each         bool              // one line for each sandbox; By must then be empty
}

// A Usage is the usage of sandboxes within a period. The server may count usage up to ten
// seconds late.
type Usage struct {
	Since, Until time.Time
	Lines        []UsageLine
}

// A UsageLine is one sum. Its numbers have no upper bound and are never nil.
type UsageLine struct {
	Sandbox     paddock.ID // with UsageQuery.Each
	Label       string     // the value of the label UsageQuery.By
	Sandboxes   int        // the number of sandboxes
	Wall        *big.Int   // nanoseconds in which they existed
	Paused      *big.Int   // nanoseconds of Wall in which they were paused
	CPU         *big.Int   // nanoseconds of processor time
	Memory      *big.Int   // byte-seconds in use
	CPUAsked    *big.Int   // thousandths of a processor times milliseconds, reserved while running
	MemoryAsked *big.Int   // byte-seconds, reserved while running
	DiskAsked   *big.Int   // byte-seconds, reserved
	NetIn       *big.Int   // bytes
	NetOut      *big.Int
	Unmeasured  []string // resources that were not measured for some sandboxes: cpu, memory, network
}

// Usage returns the usage of the caller's sandboxes. It returns paddock.Unsupported if the
// server does not count usage.
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

// A Key describes a key of the caller's tenant.
type Key struct {
	ID      string
	Name    string   // for display
	Scopes  []string // read, write, admin
	Created time.Time
	Expires time.Time // zero means never
	Used    time.Time // time of the last use, to the minute; zero means never
	Revoked time.Time // zero means not revoked
}

func keyOf(k api.Key) Key {
	return Key{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Created: k.Created, Expires: k.Expires, Used: k.Used, Revoked: k.Revoked}
}

// Keys lists the keys of the caller's tenant, oldest first, including expired and revoked
// keys. Like MakeKey and RevokeKey, it needs a key with the scope admin.
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

// A NewKey describes a key to make.
type NewKey struct {
	Name    string
	Scopes  []string  // each must be a scope of the caller's own key
	Expires time.Time // zero means never
}

// MakeKey makes a key for the caller's tenant and returns its text. The server does not
// return the text again.
func (d *Driver) MakeKey(ctx context.Context, k NewKey) (text string, made Key, err error) {
	var got api.Key
	err = d.call(ctx, call{method: "POST", path: "/v1/keys", body: api.NewKey{Name: k.Name, Scopes: append([]string{}, k.Scopes...), Expires: k.Expires}, answer: &got})
	if err != nil {
		return "", Key{}, fmt.Errorf("make a key: %w", err)
	}
	return got.Text, keyOf(got), nil
}

// RevokeKey revokes a key of the caller's tenant permanently. Revoking it again is not an
// error.
func (d *Driver) RevokeKey(ctx context.Context, id string) error {
	if id == "" || id == "." || id == ".." {
		return fmt.Errorf("revoke key %q: invalid name: %w", id, paddock.Invalid)
	}
	if err := d.call(ctx, call{method: "DELETE", path: "/v1/keys/" + url.PathEscape(id), repeat: true}); err != nil {
		return fmt.Errorf("revoke key %q: %w", id, err)
	}
	return nil
}
