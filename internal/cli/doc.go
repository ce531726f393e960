// Package cli is the command line: the commands that make a sandbox here or speak to
// a server, and what all commands share. It imports only what these need to start
// fast; commands that need more are in package serve, which opens a server's state,
// and package tools. It knows tiers as values that package main hands to it.
package cli
