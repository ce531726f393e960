// Package monitor judges what a sandbox is about to do and what it did: before a command starts, before the first
// connection to a host, before a secret is used, when files were removed or written, and before a review is applied.
//
// A [Monitor] has rules of its own about measured effects, which are deterministic, and at most one [Judge] beside them:
// a program of the host, an HTTP endpoint, or a language model. The stricter of both verdicts counts. A judge that is late,
// cannot be reached or answers something else than a verdict denies.
//
// A monitor is no boundary. It sees names and counts, not intentions, and who knows its rules can avoid them. What a
// sandbox cannot do is decided by its policy and its tier, whatever a monitor says.
//
// Texts that a sandbox chose are data. In an [Input] they are all below members named "guest", bounded, valid UTF-8 and
// without the values of secrets. No text of a judge or of a sandbox goes anywhere but to the judge, the terminal and the
// record.
package monitor
