// Package audit is the vocabulary of what a sandbox did: an [Event] says that a
// process ran a program, opened a file, connected, forked or ended, or what the
// way out of the sandbox decided, and a [Sink] keeps events.
//
// Events are told by what runs beside hostile programs, and their texts are those
// programs' own: names, paths and arguments are chosen to deceive who reads the
// log. So every text has a bound, is valid UTF-8, and is written such that it
// cannot end a line or drive a terminal. What was lost is counted and told, never
// passed over. Values of environment variables and queries of URLs are secrets more
// often than not, and no field can hold them.
//
// An event is a record, not a proof: see the promises of the tier that tells it.
package audit
