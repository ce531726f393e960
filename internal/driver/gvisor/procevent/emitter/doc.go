// Package emitter sends the process events of gVisor's sentry to package procevent: a sink of gVisor's
// trace points, linked into the program that runs as the sentry, which writes packets to a socket that
// it was handed.
//
// gVisor's own sink writes such packets too, but a guest can blind it. A name, argument or variable
// that is not UTF-8 makes a message that cannot be encoded, and that sink skips it without counting
// it. A large environment makes a message that no socket accepts. openat2 has no trace point with its
// path. This sink cuts and repairs every text first, never sends the environment, reads the path of an
// opened file from the file, and counts each message that it cannot send.
package emitter
