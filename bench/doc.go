// Command bench measures the figures of docs/PROMISES.md beside the peers in the same run: bubblewrap
// with the closest equivalent of the jail, and Anthropic's sandbox-runtime (srt). It prints a table
// for that document.
//
// Compared commands take turns (A B C A B C …) after a warm-up, so that a disturbance of the machine
// affects all of them equally. The ratios hold even where the absolute numbers do not.
package main
