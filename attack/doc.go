// Package attack tries to get out of every tier.
//
// A case is a row of the table in case.go: what is tried, the claim that it
// fails, and who tries it. Most are programs that run inside a sandbox (see
// attack/attacker); some are things that a hostile workspace or a careless
// caller does to our own interface. Each runs as a root caller and as an
// unprivileged one, in a sandbox of its own, beside a small host of its own:
// canary files with random content in a home, a canary process, sockets, shared
// memory, keys, descriptors that are left open on purpose.
//
// What the attacker says it saw is one half of the evidence. The other half is
// what the host finds afterwards, and that overrides it. The outcome of every
// case is a cell of a golden matrix, which also is the table of
// docs/security/attack-matrix.md. A cell that escapes fails the test, golden or not.
//
// An attack that cannot succeed anywhere proves nothing. So the same cases run
// without a sandbox first, and have to succeed there.
package attack
