//go:build !race

package lifetime_test

// unmeasured is nothing without the race detector.
func unmeasured() map[string]string { return nil }
