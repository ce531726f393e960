// Package procevent receives the process events of gVisor's kernel, the sentry, and converts them to
// audit events.
//
// Packets arrive over a socket whose other end the sentry holds; [Pair] makes both ends. Package
// emitter is the sentry's side. Each packet is a header of eight bytes and a message in the format of
// protocol buffers:
//
//	u16 size of the header · u16 type of the message · u32 packets lost so far
//
// The messages are those of gVisor's trace points. Only the few fields that an event needs are
// decoded, by number, because the messages' own types would have to be linked into every program that
// decodes.
//
// A sentry that was taken over can write anything, so no packet is trusted. It can lie about the
// events inside, but not about the time at which the host received them. It can neither harm the
// reader nor make it grow without bound.
package procevent
