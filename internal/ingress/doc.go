// Package ingress carries HTTP requests from outside to ports inside sandboxes. Package
// egress is the other direction.
//
// # The story
//
// A [Proxy] carries one request to one [Target]: a port that is reached by
// paddock.Sandbox.Dial. Whoever builds the target decides beforehand which port it is and
// whether the caller may reach it; see package access.
//
// # The boundary, and who attacks it
//
// The program that listens inside is hostile to its callers, to the server and to other
// sandboxes. The caller of a public port is hostile too. So:
//
//   - The guest learns no secret of the server. The proxy removes the server's own headers
//     and cookies from requests, and writes the headers that say where a request came from
//     itself.
//   - A connection to a port serves one incarnation of one sandbox. [Proxy.Cut] cuts it,
//     and it ends with its sandbox.
//   - The proxy parses an answer and writes it anew. Headers, interim answers and trailers
//     have bounds. Wrong framing ends the answer.
//   - An answer on a host of its own ([Target.OwnHost]) may set cookies for that host, but
//     not for the domain that all sandboxes share, and may not clear the browser's data of
//     other hosts. On a host that the server also uses, an answer may set no cookie and,
//     in a browser, run no script. Otherwise a page from inside could use the server with
//     the rights of the person who looks at it.
//
// The proxy does not bound what a page from inside does to its own host: the browser runs
// it there, and keeps hosts apart. All hosts below one domain are one "site" to a browser.
// Such a page can set cookies for the whole domain unless the domain is on the public
// suffix list. So a cookie alone proves nothing about its sender.
package ingress
