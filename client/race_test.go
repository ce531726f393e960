//go:build race

package client_test

// unmeasured lists promises that a build with the race detector cannot test, because the
// detector uses several bytes for each byte of the program.
func unmeasured() map[string]string {
	return map[string]string{"1 GB goes in and comes back in constant memory": "the race detector's own memory is measured too"}
}
