// Package daytona implements the API of Daytona on sandboxes of Paddock, so that programs written for Daytona's SDKs run
// here unmodified: the control plane below /api, and what works inside a sandbox (the toolbox) below /toolbox/ID. It only
// translates. A driver with lease terms makes the sandboxes, a function identifies the callers, and a store keeps what the
// driver does not know.
//
// # Callers
//
// Every call shows a key of a tenant, also those of a toolbox, and uses the driver of that tenant. A sandbox of another
// tenant gets the same answer as one that never existed.
//
// # Defences
//
// Keys are compared by whoever identifies the caller, and never logged. An ID or name of a caller is only looked up. Paths
// of files are the sandbox's own, and are resolved inside. Bodies, outputs and logs are bounded, in memory by the tenant's
// share of the server. What runs inside is hostile: what it writes is text and bytes to pass on, nothing else.
//
// # State
//
// The driver has the sandbox, its terms and its processes. The store has a record of what Daytona's clients set and ask
// for. A shell session lives inside: its commands, their output and their exits are files there, so that a restart of the
// server loses nothing of it.
package daytona
