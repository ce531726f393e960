//go:build !race

package client_test

// unmeasured is empty without the race detector.
func unmeasured() map[string]string { return nil }
