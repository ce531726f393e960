// Package metric counts what a server does, for Prometheus.
//
// # What is counted
//
// Requests and their durations by route, code and tier; calls of drivers by
// operation, tier and result; what is there now, as its owners tell it when they
// are asked ([Sources]). docs/server/operations.md has each name with its type, unit and
// labels.
//
// # Labels
//
// Every label's values come from a list in this program: patterns of routes, codes,
// tiers, operations, kinds of errors. None is an ID, a path, or a text that a caller
// chose: such labels would tell tenants of each other, and grow until the server
// falls. What is not in a list is "other".
//
// # Who may see it
//
// How much is going on is no tenant's business either, so [Set.Handler] is not for
// the API's own address: it is served on a listener of its own.
package metric
