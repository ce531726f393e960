//go:build !race

package client_test

// unmeasured is nothing without the race detector.
func unmeasured() map[string]string { return nil }
