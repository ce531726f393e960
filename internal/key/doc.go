// Package key authenticates callers by API keys.
//
// A key is text: pk_ID_SECRET. The ID is no secret; it names the key in lists and logs. The secret is 32 random bytes
// and is shown once, when the key is made. The store keeps only its SHA-256 hash: for a random secret of that length no
// slower hash is safer. The last four bytes of the text are a checksum, which distinguishes a cut or mistyped key from
// a wrong one, and lets scanners for leaked credentials find keys without doubt.
//
// The same key can be written in the form that E2B's clients need: e2b_ and hexadecimal digits of the ID, the secret
// and the checksum.
//
// A key belongs to one tenant and has scopes; without scopes it allows nothing. It may expire and can be revoked for
// good. A caller without the secret learns nothing: an unknown key, another tenant's key and a wrong secret get the
// same answer, after the same work.
package key
