// Package registryconf reads from which hosts the package clients of a user get their
// packages, out of the clients' own configuration. Paddock names none of these
// hosts itself: which ones are used is a matter of each machine.
//
// What is read belongs to the user, but is not trusted to be well-formed: files
// have a bound, lines that are not understood are passed over, and of a URL only
// its host and port are taken, never the credentials in it.
package registryconf
