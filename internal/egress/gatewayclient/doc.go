// Package gatewayclient is the host's side of a gateway, for the process that owns the sandbox. It starts the gateway
// process of one sandbox, sends it rules and the sandbox's network link, receives its decisions, and keeps what the next
// gateway of the sandbox needs. It also defines the messages between the two processes.
//
// The gateway is a child process of the owner, one for each sandbox. The owner does not trust it: it bounds and cleans
// every message, and when the gateway ends the sandbox has no network. The package has no network stack and inspects
// no traffic, because every process that owns a sandbox links it.
package gatewayclient
