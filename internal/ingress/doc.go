// Package ingress is the way in: from an HTTP request of the outside to a port
// that listens inside a sandbox. It is to what package egress is for the way out.
//
// # The story
//
// A [Proxy] carries one request to one [Target]: a port, reached by
// paddock.Sandbox.Dial. Whose port that is, and whether the caller may, is decided
// before, by whoever fills in the target.
//
// # The boundary, and who attacks it
//
// What listens inside is hostile to whoever asks it, to the server and to other
// sandboxes; so is a caller of a public port. So:
//
//   - The guest learns no secret of the server's: headers and cookies whose names
//     are the server's own are taken out of requests, and whatever
//     tells where a request came from is written by the server, never believed.
//   - A connection to a port is used for one incarnation of one sandbox, and for no other. It is
//     cut with [Proxy.Cut], and ends with its sandbox.
//   - An answer is parsed and written anew: its head, interim answers and trailers
//     have bounds, and what is wrongly framed is the end of it.
//   - An answer on a host of its own ([Target.OwnHost]) may set cookies for that host, never for
//     the domain that all sandboxes share, and says nothing of the browser's data of other hosts. On
//     a host that is also the server's, it may set no cookie and, in a browser, run no script:
//     otherwise a page from inside could use the server as whoever looks at it.
//
// What a page from inside does to its own host is not bounded here: whoever opens it runs what the
// sandbox says, in a browser that keeps hosts apart. All hosts below one domain are one "site" to a
// browser: such a page can set cookies for the whole domain unless that is on the public suffix
// list, and cookies alone prove nothing of who asked.
package ingress
