// Package chain makes a log of events tamper-evident. A [Writer] adds to each line its number and a SHA-256 over the
// line and the hash of the line before. At intervals it writes a head: a line signed with the user's [Key] (Ed25519),
// which vouches for all lines before it. [Verify] reads such a file and reports the first wrong line, and why.
//
// Without the key, nobody can change, remove, add or move a line before a head unnoticed. They can cut the file off
// after a head, and write anything after the last one: only a reader who has seen a later head notices. A holder of the
// key can write a whole new file. docs/security/audit.md explains this to users.
package chain
