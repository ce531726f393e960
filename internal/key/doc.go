// Package key tells who a caller is.
//
// A key is text: pk_ID_SECRET. The ID is no secret; it names the key in lists and
// logs. The secret is 32 random bytes, and is shown once, when the key is made.
// Kept is its SHA-256 sum alone: of so much randomness no other function makes a
// better secret. Four bytes at the end of the text are a checksum, so that a key
// that was cut or mistyped is told from one that is wrong, and so that tools that
// look for leaked credentials find it without a doubt.
//
// The same key can be written as E2B's clients want theirs: e2b_ and digits of base
// 16, of the ID, the secret and the checksum.
//
// A key belongs to one tenant and has scopes; without any it allows nothing. It
// may expire, and can be revoked for good. Whoever does not know the secret learns
// nothing: a key that never was, another's, and a wrong one are one answer, given
// after the same work.
package key
