// Package protocol defines the messages between the host and the child process of a simulated
// computer: orders, replies and streams of files. The child trusts the host. The host treats
// replies as untrusted bytes.
package protocol
