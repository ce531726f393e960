// Package metric counts what a server does, for Prometheus.
//
// # Metrics
//
// It counts requests and their durations by route, code and tier, and calls of drivers by
// operation, tier and result. Gauges read the current state from their owners at each
// scrape ([Sources]). docs/server/operations.md lists each metric with type, unit and
// labels.
//
// # Labels
//
// Every label value comes from a list in this program: routes, codes, tiers, operations,
// kinds of errors. Any other value is "other". No label holds an ID, a path or a text that
// a caller chose, because it would show tenants to each other and grow without a bound.
//
// # Access
//
// The amount of work is confidential to the operator. So [Set.Handler] has a listener of
// its own, apart from the API.
package metric
