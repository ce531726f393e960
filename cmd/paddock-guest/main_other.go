//go:build !linux

package main

// enter knows no boundary on this system.
func enter(string) bool { return false }
