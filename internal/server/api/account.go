package api

import (
	"math/big"
	"time"
)

// A UsageQuery says what use to add up.
type UsageQuery struct {
	Since, Until time.Time         // full hours; zero is the begin of the month, and the end of the hour
	Label        map[string]string // only of sandboxes that had these
	By           string            // one line for each value of this label; empty is one line
	Each         bool              // one line for each sandbox
}

// A Usage is what a caller's sandboxes used within a time.
type Usage struct {
	Since time.Time   `json:"since"`
	Until time.Time   `json:"until"`
	Lines []UsageLine `json:"lines"`
}

// A UsageLine is one sum. Numbers have no bound.
type UsageLine struct {
	Sandbox     string   `json:"sandbox,omitempty"`    // where there is one line for each
	Label       string   `json:"label,omitempty"`      // the value of UsageQuery.By
	Sandboxes   int      `json:"sandboxes"`            // how many there were
	Wall        *big.Int `json:"wall"`                 // nanoseconds in which they existed
	Paused      *big.Int `json:"paused"`               // of that, in which they did not run
	CPU         *big.Int `json:"cpu"`                  // nanoseconds of processors that were used
	Memory      *big.Int `json:"memory"`               // byte-seconds that were used
	CPUAsked    *big.Int `json:"cpu_asked"`            // thousandths of processors times milliseconds, reserved while they ran
	MemoryAsked *big.Int `json:"memory_asked"`         // byte-seconds, reserved while they ran
	DiskAsked   *big.Int `json:"disk_asked"`           // byte-seconds, reserved
	NetIn       *big.Int `json:"net_in"`               // bytes
	NetOut      *big.Int `json:"net_out"`              // bytes
	Unmeasured  []string `json:"unmeasured,omitempty"` // what was not measured of some of it: cpu, memory, network
}

// A Key is what is known of a key. Its text is told once, when it is made.
type Key struct {
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero is never
	Used    time.Time `json:"used,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
	Text    string    `json:"key,omitempty"`
}

// Keys are all of a tenant's.
type Keys struct {
	Keys []Key `json:"keys"`
}

// A NewKey says what a key is to allow.
type NewKey struct {
	Name    string    `json:"name,omitempty"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires,omitzero"`
}
