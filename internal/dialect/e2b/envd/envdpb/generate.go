// Package envdpb is the wire format of E2B's in-box API, generated from
// process.proto and filesystem.proto. It leaves internal/dialect/e2b/envd nowhere.
package envdpb

//go:generate ./generate.sh
