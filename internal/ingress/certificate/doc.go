// Package certificate gives a server its certificates: from files that somebody
// renews, from an authority of the server's own, or by ACME.
//
// # The boundary, and who attacks it
//
// An authority that a person trusts can speak for every host that it may name. That of
// [OpenOwn] may name the server's own domain and addresses and nothing else, by a constraint
// that is critical: who steals its key has no other site. The key is readable by
// the server's user alone, and never leaves the directory.
//
// With ACME a certificate is asked for when a host is first connected to, and authorities count
// them. So only hosts that the caller of [NewACME] agrees to have one, and no more than
// a few new ones a day: a tenant that names many hosts does not use up what the domain may have.
package certificate
