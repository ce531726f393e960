// Package packageregistry reads the configuration of a user's package clients and returns the registry
// hosts that they use. Paddock itself names none of these hosts, because each machine has its own.
//
// The files belong to the user, but may be malformed. Their size is bounded, and lines that the parser
// does not understand are skipped. Only the host and the port of a URL are returned, never its
// credentials.
package packageregistry
