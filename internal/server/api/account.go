package api

import (
	"math/big"
	"time"
)

// A UsageQuery selects which usage to add up.
type UsageQuery struct {
	Since, Until time.Time         // full hours; zero is the start of the month, and the end of the hour
	Label        map[string]string // count only sandboxes with these labels
	By           string            // one line for each value of this label; empty is one line
	Each         bool              // one line for each sandbox
}

// A Usage is the usage of a caller's sandboxes within a period.
type Usage struct {
	Since time.Time   `json:"since"`
	Until time.Time   `json:"until"`
	Lines []UsageLine `json:"lines"`
}

// A UsageLine is one sum. Its numbers have no upper bound.
type UsageLine struct {
	Sandbox     string   `json:"sandbox,omitempty"`    // with UsageQuery.Each
	Label       string   `json:"label,omitempty"`      // the value of UsageQuery.By
	Sandboxes   int      `json:"sandboxes"`            // the number of sandboxes
	Wall        *big.Int `json:"wall"`                 // nanoseconds in which they existed
	Paused      *big.Int `json:"paused"`               // nanoseconds of Wall in which they were paused
	CPU         *big.Int `json:"cpu"`                  // nanoseconds of processor time
	Memory      *big.Int `json:"memory"`               // byte-seconds in use
	CPUAsked    *big.Int `json:"cpu_asked"`            // thousandths of a processor times milliseconds, while running
	MemoryAsked *big.Int `json:"memory_asked"`         // byte-seconds, reserved while running
	DiskAsked   *big.Int `json:"disk_asked"`           // byte-seconds, reserved
	NetIn       *big.Int `json:"net_in"`               // bytes
	NetOut      *big.Int `json:"net_out"`              // bytes
	Unmeasured  []string `json:"unmeasured,omitempty"` // not measured for some sandboxes: cpu, memory, network
}

// A Key describes a key. The text of a key is sent once, in the answer to its creation.
type Key struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero means never
	Used    time.Time `json:"used,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Text    string    `json:"key,omitempty"`
}

// Keys lists all keys of a tenant.
type Keys struct {
	Keys []Key `json:"keys"`
}

// A NewKey describes a key to make.
type NewKey struct {
	Name    string    `json:"name,omitempty"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires,omitzero"`
}
