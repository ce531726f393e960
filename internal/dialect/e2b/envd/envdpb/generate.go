// Package envdpb has the wire format of the API of E2B's agent, generated from
// process.proto and filesystem.proto. Only internal/dialect/e2b/envd imports it.
package envdpb

//go:generate ./generate.sh
