// Package cli is the command line: the commands that make a sandbox here or call a server, and the
// helpers that all commands share. It imports only what these commands need, so that they start
// fast. Package serve has the commands that open a server's state, and package tools those that are
// rarely used. The tiers are values that the main package passes in.
package cli
