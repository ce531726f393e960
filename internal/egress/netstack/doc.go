// Package netstack is the gateway's end of a sandbox's network. It has three parts:
//
//   - A [Link] ends the sandbox's only network interface in a user-space TCP/IP stack (gVisor's). It turns packets into
//     connections, flows of datagrams and pings. It forwards no packet: a [Handler] decides about each connection. All that
//     the sandbox sends is hostile, so the numbers of connections, half-open connections, flows and fragments are bounded,
//     and so is the memory that each takes.
//   - A [DNSServer] answers the sandbox's DNS queries. It gives each name a synthetic address from a [NameTable], so no
//     answer waits for a lookup on the host or causes one. A name that the rules allow has an address of each family.
//     All other record types of it are empty, and so are the services below it ("_http._tcp.example.com"), so nothing
//     points past the name. The server refuses a name that the rules do not allow, with the reason where the client can
//     read one (RFC 8914). A name of one label is a name like any other. "localhost" and the names below it are the
//     sandbox itself, whatever the rules say.
//   - A [Dialer] connects to hosts. It checks which addresses of the host's network the sandbox may reach
//     (decide.CheckAddress), resolves a name, and dials exactly the addresses that it checked.
package netstack
