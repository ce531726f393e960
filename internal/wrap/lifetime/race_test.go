//go:build race

package lifetime_test

// unmeasured lists promises that a build with the race detector cannot show:
// it keeps several bytes of its own for each of the program's.
func unmeasured() map[string]string {
	return map[string]string{"1 GB goes in and comes back in constant memory": "the race detector's own memory is measured too"}
}
