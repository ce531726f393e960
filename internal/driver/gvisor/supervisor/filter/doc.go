//go:build linux

// Package filter embeds the seccomp programs of gVisor's processes, compiled at build time.
//
// The published module of gVisor leaves them out and compiles them at every boot, which takes longer
// than anything else that a boot does. [Install] puts the embedded programs where gVisor looks for
// them. gVisor compiles a missing program as before, so a missing or stale file costs time but never a
// rule.
//
// The files programs-GOARCH.gz are made by the command in generate, for one architecture each, on that
// architecture:
//
//	go run ./internal/driver/gvisor/supervisor/filter/generate
package filter
