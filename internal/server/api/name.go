package api

// Headers and parameters.
const (
	// LeaseHeader names the client's lease, to which its ephemeral sandboxes belong.
	LeaseHeader = "Paddock-Lease"
	// CreationHeader names a creation, so that the client can repeat or undo it.
	CreationHeader = "Paddock-Creation"
	// RequestHeader has the ID of the request, in every answer.
	RequestHeader = "X-Request-Id"
	// EventHeader has the id of the last text event that the client has.
	EventHeader = "Last-Event-ID"
	// ErrorTrailer holds an Error in JSON after the content of a file that could not be
	// read to its end.
	ErrorTrailer = "Paddock-Error"
	// PortProtocol is the protocol that a connection to a port is upgraded to.
	PortProtocol = "paddock-port"
)

// Token reports whether s can name a lease, a creation, an attachment or a writer: 16 to 64
// letters, digits and dashes.
func Token(s string) bool {
	if len(s) < 16 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
