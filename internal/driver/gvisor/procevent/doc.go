// Package procevent receives what gVisor's kernel, the sentry, tells of the processes
// in it, and makes events of it.
//
// Packets come over a socket whose other end the sentry holds; [Pair] makes both.
// The sentry's side is package tap. Each packet is a header of eight bytes and a
// message in the format of protocol buffers:
//
//	u16 size of the header · u16 type of the message · u32 packets lost so far
//
// The messages are those of gVisor's trace points, of which only the few fields
// that an event has are read, by number: linking the messages' own types would
// cost every program that decodes.
//
// A sentry that was taken over can write anything. Nothing that arrives is
// trusted: it can lie about what happened inside, but not about when the host
// heard of it, nor harm who reads, nor grow without bounds.
package procevent
