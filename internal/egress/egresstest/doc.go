// Package egresstest is the sandbox's end of a gateway's link, for tests: a network stack as a sandbox has one.
package egresstest
