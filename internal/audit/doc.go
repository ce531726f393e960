// Package audit defines the events that describe a sandbox's actions. An [Event] reports that a process ran a program,
// opened a file, connected, forked or ended, or that the sandbox's network made a decision. A [Sink] keeps events.
//
// Processes beside hostile programs report the events, and the texts are those programs' own: names, paths and
// arguments may be chosen to deceive the reader of the log. So every text is bounded, valid UTF-8, and escaped so that
// it cannot end a line or drive a terminal. Lost events are counted and reported. No field holds values of environment
// variables or queries of URLs, because these are often secrets.
//
// An event is a record, not a proof: see the promises of the tier that reports it.
package audit
