package main

import "github.com/paddock-sandbox/paddock/internal/driver/jail/inner"

// enter becomes the part that argv0 names, and does not return then.
func enter(argv0 string) bool {
	if argv0 != inner.Argv0 {
		return false
	}
	inner.Main()
	return true
}
