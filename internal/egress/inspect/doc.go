// Package inspect reads the traffic of connections that the rules inspect. A [PeekConn] finds out how a connection
// begins without consuming it: a TLS ClientHello with its server name, an HTTP request with its host, or something
// else. A [Proxy] terminates TLS with the sandbox's own certificate authority, asks its [Backend] to decide each HTTP
// request, changes the request as its rule says, puts secrets in and takes them out of answers.
//
// Everything that it reads comes from the sandbox, so it is bounded in size and time. HTTP/1 passes a strict reader
// first, so that the gateway and the destination see the same requests. HTTP itself, in both versions and on both
// sides, is the standard library's.
package inspect
