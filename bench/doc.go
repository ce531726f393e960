// Command bench measures what docs/PROMISES.md promises, beside the peers and
// in the same run: bubblewrap with the closest equivalent of the jail, and
// Anthropic's sandbox-runtime (srt). It prints a table for that document.
//
// Commands that are compared take turns (A B C A B C …) after a warm-up, so
// that what disturbs the machine disturbs all of them alike, and the ratios
// hold where the absolute numbers do not.
package main
