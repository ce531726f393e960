// Package chain makes a file of events one that cannot be rewritten unnoticed. A
// [Writer] adds to each line its number and a SHA-256 over the line and the hash of
// the line before, and now and then writes a head: a line that is signed with the
// user's [Key] (Ed25519) and so vouches for all that stand before it. [Verify]
// reads such a file again and tells the first line that is wrong, and why.
//
// Who has not the key can change, remove, add or move no line that stands before a
// head without being noticed. They can cut the file off behind a head, and write
// what they like behind the last one: only who has seen a later head knows better.
// Who has the key can write a whole new file. docs/security/audit.md says so to users.
package chain
