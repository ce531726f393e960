// Package emitter is the sentry's side of package trace: a sink of gVisor's trace
// points, linked into the program that runs as the sentry, which writes packets
// to a socket that it was handed.
//
// gVisor has a sink that writes such packets, and it can be blinded from inside:
// a name, argument or variable that is not UTF-8 makes a message that cannot be
// encoded, which is passed over without being counted; a large environment makes
// one that no socket takes; and openat2 has no point with its path. This one cuts
// and repairs every text first, never sends the environment, reads the path of a
// file that was opened from the file, and counts whatever it cannot send.
package emitter
