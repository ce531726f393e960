// Package attack tries to escape from every tier and compares the outcome of each attack with a golden
// matrix.
//
// A case is a row of the table in case_linux.go: the attempt, the claim that it fails, and the
// attacker. Most cases are programs that run inside a sandbox (see attack/attacker). Some are actions
// of a hostile workspace or a careless caller on Paddock's own interface. Each case runs as a root
// caller and as an unprivileged one, in a sandbox of its own. Beside it stands a small host of its
// own: canary files with random content in a home, a canary process, sockets, shared memory, keys, and
// descriptors that are left open on purpose.
//
// The attacker's report is one half of the evidence. The other half is the state that the host finds
// afterwards, which overrides the report. The outcome of every case is a cell of the golden matrix,
// which is also the table of docs/security/attack-matrix.md. A cell that escapes fails the test,
// golden or not.
//
// An attack that cannot succeed anywhere proves nothing. Therefore the same cases first run without a
// sandbox, and have to succeed there.
package attack
