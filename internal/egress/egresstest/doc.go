// Package egresstest has the sandbox's end of a gateway's link for tests, with a network
// stack like that of a sandbox.
package egresstest
